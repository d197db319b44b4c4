"""Measure the points of the staging that are not there yet: ``staging/staging.tsv``, and what is published of it."""

from neurotier.run.scripting import Context, run_script
from neurotier.storage.staging.walk import Staging
from neurotier.storage.workload.walk import walk, write_tables


def main(context: Context) -> None:
    job = context.snakemake
    write_tables(walk(Staging(context.settings, context.places), context.say, job.params.node_class), job.output)


if __name__ == "__main__":
    run_script(snakemake, main)
