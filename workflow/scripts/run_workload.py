"""Measure the points of a storage workload that are still missing; write its tables, such as ``sweep/sweep.tsv``."""

from importlib import import_module

from neurotier.run.allocations import Allocations
from neurotier.run.scripting import script
from neurotier.storage.workload import walk, write_tables

with script(snakemake) as context:
    settings, places, job = context.settings, context.places, context.snakemake
    target = job.params.target
    if job.params.over_nodes:
        from neurotier.storage.ior.over_nodes import IorOverNodes

        workload = IorOverNodes(settings, places, Allocations(places, job.resources))
    else:
        workload = getattr(import_module(f"neurotier.storage.{target}.walk"), target.capitalize())(settings, places)
    write_tables(walk(workload, context.say, job.params.node_class), job.output)
