"""Measure the points of the sweep that are not there yet, in the order drawn."""

from neurotier.run.scripting import run_script
from neurotier.storage.sweep import stages

if __name__ == "__main__":
    run_script(snakemake, stages.run_sweep)
