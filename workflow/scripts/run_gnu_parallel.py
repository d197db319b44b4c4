"""Increment all blocks with GNU parallel; its logs go where the rule's goes."""

from pathlib import Path

from neurotier.bigbrain.engines.gnu_parallel import run_gnu_parallel
from neurotier.bigbrain.plan import BigBrainPlan
from neurotier.bigbrain.run_folder import take_up
from neurotier.core.files import write_json
from neurotier.run.scripting import Context, run_script


def main(context: Context) -> None:
    plan = context.input("plan")
    take_up(BigBrainPlan(context.settings, context.places), plan)
    joblog = run_gnu_parallel(plan, Path(context.snakemake.log[0]).parent)
    write_json(context.output("finished"), {"joblog": str(joblog)})


if __name__ == "__main__":
    run_script(snakemake, main)
