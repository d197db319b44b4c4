"""Write the self-contained page on the sweep, findings first."""

from neurotier.run.scripting import run_script
from neurotier.storage.sweep import stages

if __name__ == "__main__":
    run_script(snakemake, stages.write_sweep)
