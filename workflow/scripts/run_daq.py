"""Measure the points of the DAQ run that are not there yet: ``daq/daq.tsv``, and ``daq/backlog.tsv`` of the same."""

from neurotier.run.scripting import script
from neurotier.storage.daq.walk import daq

with script(snakemake) as context:
    rows, backlog = daq(context.settings, context.places, context.say, context.params.node_class)
    context.write_table("points", "daq", rows)
    context.write_table("backlog", "backlog", backlog)
