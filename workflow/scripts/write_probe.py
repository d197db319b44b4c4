"""Write the report on the tiers: ``probe.html``."""

from neurotier.run.scripting import run_script
from neurotier.storage.probe import stages

if __name__ == "__main__":
    run_script(snakemake, stages.write_probe)
