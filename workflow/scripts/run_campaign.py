"""Run every run of the campaign that is not there yet, in the order drawn."""

from neurotier.run.campaign import stages
from neurotier.run.scripting import run_script

if __name__ == "__main__":
    run_script(snakemake, stages.run_campaign)
