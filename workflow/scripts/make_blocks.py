"""Make the blocks of the incrementation on one tier, and their manifest."""

from dataclasses import asdict

from neurotier.bigbrain.plan import BigBrainPlan
from neurotier.bigbrain.room import fill_tier
from neurotier.run.scripting import script

with script(snakemake) as context:
    plan = BigBrainPlan(context.settings, context.places)
    blocks = fill_tier(plan, context.snakemake.wildcards.tier, context.say)
    context.write_table("manifest", "bigbrain_blocks", map(asdict, blocks))
