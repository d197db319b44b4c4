"""Increment all blocks with GNU parallel; its logs go where the rule's goes."""

from neurotier.bigbrain.engines.gnu_parallel import run_gnu_parallel
from neurotier.bigbrain.plan import BigBrainPlan
from neurotier.bigbrain.run_folder import take_up
from neurotier.run.scripting import script

with script(snakemake) as context:
    plan = context.input("plan")
    take_up(BigBrainPlan(context.settings, context.places), plan)
    joblog = run_gnu_parallel(plan, context.log.parent)
    context.write_json("finished", {"joblog": str(joblog)})
