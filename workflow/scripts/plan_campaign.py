"""Plan the campaign: its runs in random order, and what they need on which tier; check that all are possible."""

from neurotier.run.campaign import Campaign, check_campaign, plan_rows
from neurotier.run.scripting import script

with script(snakemake) as context:
    campaign = Campaign.of_script(context)
    check_campaign(campaign)
    context.write_table("plan", "plan", plan_rows(campaign))
