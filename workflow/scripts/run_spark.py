"""Increment all blocks with Spark; its logs go where the rule's goes."""

from pathlib import Path

from neurotier.bigbrain.engines.spark import run_spark
from neurotier.bigbrain.plan import BigBrainPlan
from neurotier.bigbrain.run_folder import take_up, write_spark_end
from neurotier.run.scripting import Context, run_script


def main(context: Context) -> None:
    plan, asked = context.input("plan"), context.settings.bigbrain
    take_up(BigBrainPlan(context.settings, context.places), plan)
    logs = Path(context.snakemake.log[0]).parent
    driver = run_spark(plan, logs, asked.spark_master, asked.spark_options)
    write_spark_end(driver, context.output("finished"))


if __name__ == "__main__":
    run_script(snakemake, main)
