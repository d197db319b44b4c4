"""Measure the points of the DAQ run that are not there yet: ``daq/daq.tsv``, and ``daq/backlog.tsv`` of the same."""

from neurotier.core.tables import write_table
from neurotier.run.scripting import Context, run_script
from neurotier.storage.daq.walk import daq


def main(context: Context) -> None:
    rows, backlog = daq(context.settings, context.places, context.say, context.snakemake.params.node_class)
    write_table(context.output("points"), "daq", rows)
    write_table(context.output("backlog"), "backlog", backlog)


if __name__ == "__main__":
    run_script(snakemake, main)
