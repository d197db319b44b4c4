"""Measure the points of the DAQ run that are not there yet: ``daq/daq.tsv``, and ``daq/backlog.tsv`` of the same."""

from neurotier.run.scripting import script
from neurotier.storage.daq.walk import Daq
from neurotier.storage.workload.walk import walk, write_tables

with script(snakemake) as context:
    job = context.snakemake
    write_tables(walk(Daq(context.settings, context.places), context.say, job.params.node_class), job.output)
