"""Measure one tier with fio: ``probe/HOST/TIER.tsv``."""

from neurotier.run.scripting import run_script
from neurotier.storage.probe import stages

if __name__ == "__main__":
    run_script(snakemake, stages.probe_tier)
