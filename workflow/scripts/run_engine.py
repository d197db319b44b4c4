"""Increment all blocks with GNU parallel or Spark; its logs go where the rule's goes."""

from neurotier.bigbrain.engines.gnu_parallel import run_gnu_parallel
from neurotier.bigbrain.engines.spark import run_spark
from neurotier.bigbrain.plan import BigBrainPlan
from neurotier.bigbrain.run_folder import take_up, write_spark_end
from neurotier.run.scripting import script

with script(snakemake) as context:
    plan, asked, logs = context.input("plan"), context.settings.bigbrain, context.log.parent
    take_up(BigBrainPlan(context.settings, context.places), plan)
    if context.snakemake.wildcards.run.startswith("spark/"):  # in a module the rule has another name
        driver = run_spark(plan, logs, asked.spark_master, asked.spark_options)
        write_spark_end(driver, context.output("finished"))
    else:
        context.write_json("finished", {"joblog": str(run_gnu_parallel(plan, logs))})
