"""Do all runs of the campaign that are still missing, in the planned order; then mark the plan as done."""

from neurotier.run.campaign import Campaign, plan_rows, walk
from neurotier.run.scripting import script

with script(snakemake) as context:
    campaign = Campaign.of_script(context)
    walk(campaign)
    context.write_table("done", "plan", plan_rows(campaign))
