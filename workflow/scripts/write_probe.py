"""Write the report on the tiers: ``probe.html``."""

from neurotier.probe import stages
from neurotier.scripting import run_script

if __name__ == "__main__":
    run_script(snakemake, stages.write_probe)
