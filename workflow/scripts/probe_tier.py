"""Measure one tier with fio: ``probe/HOST/TIER.tsv``."""

from neurotier.probe import stages
from neurotier.scripting import run_script

if __name__ == "__main__":
    run_script(snakemake, stages.probe_tier)
