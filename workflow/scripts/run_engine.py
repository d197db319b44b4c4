"""Increment all blocks with GNU parallel or Spark, whose logs are put next to the rule's."""

from dataclasses import asdict

from neurotier.bigbrain.engines.gnu_parallel import run_gnu_parallel
from neurotier.bigbrain.engines.spark import run_spark
from neurotier.bigbrain.plan import BigBrainPlan
from neurotier.bigbrain.room import prepare_run
from neurotier.run.scripting import script

with script(snakemake) as context:
    plan, asked, logs = context.input("plan"), context.settings.bigbrain, context.log.parent
    prepare_run(BigBrainPlan(context.settings, context.places), plan)
    if context.snakemake.wildcards.run.startswith("spark/"):  # in a module the rule has another name
        left = {"driver": asdict(run_spark(plan, logs, asked.spark_master, asked.spark_options))}
    else:
        left = {"joblog": str(run_gnu_parallel(plan, logs))}
    context.write_json("finished", left)
