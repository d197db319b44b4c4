"""Measure the points of the sweep that are not there yet, in the order drawn."""

from neurotier.scripting import run_script
from neurotier.sweeps import stages

if __name__ == "__main__":
    run_script(snakemake, stages.run_sweep)
