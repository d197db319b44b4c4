"""Increment all blocks with Spark; its logs go where the rule's goes."""

from neurotier.bigbrain.engines.spark import run_spark
from neurotier.bigbrain.plan import BigBrainPlan
from neurotier.bigbrain.run_folder import take_up, write_spark_end
from neurotier.run.scripting import script

with script(snakemake) as context:
    plan, asked = context.input("plan"), context.settings.bigbrain
    take_up(BigBrainPlan(context.settings, context.places), plan)
    logs = context.log.parent
    driver = run_spark(plan, logs, asked.spark_master, asked.spark_options)
    write_spark_end(driver, context.output("finished"))
