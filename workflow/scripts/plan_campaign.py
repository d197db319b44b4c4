"""Plan the campaign: its runs in the order drawn, what they need on which tier, and that all of it can be done."""

from neurotier.run.campaign import stages
from neurotier.run.scripting import run_script

if __name__ == "__main__":
    run_script(snakemake, stages.plan_campaign)
