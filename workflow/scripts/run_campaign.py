"""Do all runs of the campaign that are still missing, in the planned order; then mark the plan as done."""

from neurotier.run.campaign import Campaign, check_campaign, plan_rows, remove_inner_results, walk
from neurotier.run.scripting import script

with script(snakemake) as context:
    campaign = Campaign.of_script(context)
    remove_inner_results(campaign)
    # The plan may have been made on another node, or days ago; its rule has told the user what is planned.
    check_campaign(campaign._replace(say=context.step.note))
    walk(campaign)
    context.write_table("done", "plan", plan_rows(campaign))
