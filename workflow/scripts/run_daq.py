"""Measure the points of the DAQ run that are not there yet: ``daq/daq.tsv``, and ``daq/backlog.tsv`` of the same."""

from neurotier.core.tables import write_table
from neurotier.run.scripting import script
from neurotier.storage.daq.walk import daq

with script(snakemake) as context:
    rows, backlog = daq(context.settings, context.places, context.say, context.params.node_class)
    write_table(context.output("points"), "daq", rows)
    write_table(context.output("backlog"), "backlog", backlog)
