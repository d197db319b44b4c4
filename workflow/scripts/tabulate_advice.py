"""Predict what each placement will take."""

from neurotier.advice import stages
from neurotier.run.scripting import run_script

if __name__ == "__main__":
    run_script(snakemake, stages.tabulate_advice)
