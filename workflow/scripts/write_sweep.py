"""Write the self-contained page on the sweep, findings first."""

from neurotier.scripting import run_script
from neurotier.sweeps import stages

if __name__ == "__main__":
    run_script(snakemake, stages.write_sweep)
