"""Do every run of the incrementation on this node of a cluster, and take over their tables."""

from pathlib import Path

from neurotier.run.bigbrain_job import run_here, take_over
from neurotier.run.scripting import Context, run_script


def main(context: Context) -> None:
    log = Path(context.snakemake.log[0]).with_name("snakemake.log")
    inner = run_here(context.snakemake.params.asked, context.settings, context.places, log)
    take_over(inner, [context.output(name) for name in ("phases", "runs", "spark", "predictions")])


if __name__ == "__main__":
    run_script(snakemake, main)
