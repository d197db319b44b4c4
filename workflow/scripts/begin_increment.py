"""Begin a run of the incrementation: write the plan that its workers read."""

from neurotier.bigbrain.plan import BigBrainPlan
from neurotier.bigbrain.room import begin_run
from neurotier.run.scripting import script

with script(snakemake) as context:
    plan = BigBrainPlan(context.settings, context.places)
    begin_run(plan, context.snakemake.wildcards.run, context.output("plan"))
