"""Run every run of the campaign that is not there yet, in the order drawn; then the plan is done."""

from neurotier.run.campaign import Campaign, plan_rows, walk
from neurotier.run.scripting import script

with script(snakemake) as context:
    campaign = Campaign.of_script(context)
    walk(campaign)
    context.write_table("done", "plan", plan_rows(campaign))
