"""Measure the points of the sweep that are not there yet: ``sweep/sweep.tsv``, and ``sweep/headlines.tsv`` from it."""

from neurotier.run.scripting import Context, run_script
from neurotier.storage.sweep.walk import Sweep
from neurotier.storage.workload.walk import walk, write_tables


def main(context: Context) -> None:
    job = context.snakemake
    write_tables(walk(Sweep(context.settings, context.places), context.say, job.params.node_class), job.output)


if __name__ == "__main__":
    run_script(snakemake, main)
