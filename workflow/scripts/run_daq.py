"""Measure the points of the DAQ run that are not there yet: ``daq/daq.tsv``, and ``daq/backlog.tsv`` of the same."""

from neurotier.run.scripting import Context, run_script
from neurotier.storage.daq.walk import Daq
from neurotier.storage.workload.walk import walk, write_tables


def main(context: Context) -> None:
    job = context.snakemake
    write_tables(walk(Daq(context.settings, context.places), context.say, job.params.node_class), job.output)


if __name__ == "__main__":
    run_script(snakemake, main)
