"""Measure the points of the sweep that are not there yet: ``sweep/sweep.tsv``, and ``sweep/headlines.tsv`` from it."""

from neurotier.core.tables import write_table
from neurotier.run.scripting import Context, run_script
from neurotier.storage.sweep.headlines import headline_rows
from neurotier.storage.sweep.walk import sweep


def main(context: Context) -> None:
    rows = sweep(context.settings, context.places, context.say, context.snakemake.params.node_class)
    write_table(context.output("points"), "sweep", rows)
    write_table(context.output("headlines"), "headlines", headline_rows(rows))


if __name__ == "__main__":
    run_script(snakemake, main)
