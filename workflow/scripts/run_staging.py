"""Measure the points of the staging that are not there yet: ``staging/staging.tsv``, and what is published of it."""

from dataclasses import asdict

from neurotier.core.tables import write_table
from neurotier.run.scripting import Context, run_script
from neurotier.storage.published import STAGING
from neurotier.storage.staging.walk import stage


def main(context: Context) -> None:
    points = stage(context.settings, context.places, context.say, context.snakemake.params.node_class)
    write_table(context.output("points"), "staging", points)
    write_table(context.output("published"), "published_staging", [asdict(number) for number in STAGING])


if __name__ == "__main__":
    run_script(snakemake, main)
