"""Measure the points of a storage workload that are not there yet: its tables, such as ``sweep/sweep.tsv``."""

from importlib import import_module

from neurotier.run.scripting import script
from neurotier.storage.workload.walk import walk, write_tables

with script(snakemake) as context:
    room, node_class = context.params.room, context.params.node_class
    workload = getattr(import_module(f"neurotier.storage.{room}.walk"), room.capitalize())
    write_tables(walk(workload(context.settings, context.places), context.say, node_class), context.snakemake.output)
