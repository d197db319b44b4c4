"""Measure the points of the IOR run that are not there yet, here or over nodes of a cluster: ``ior/ior.tsv``."""

from neurotier.run.allocations import Allocations, asks_for_nodes
from neurotier.run.scripting import script
from neurotier.storage.ior.over_nodes import IorOverNodes
from neurotier.storage.ior.walk import Ior
from neurotier.storage.workload.walk import walk, write_tables

with script(snakemake) as context:
    settings, places, job = context.settings, context.places, context.snakemake
    if asks_for_nodes(settings.ior):
        workload = IorOverNodes(Allocations(places, job.resources), settings, places)
    else:
        workload = Ior(settings, places)
    write_tables(walk(workload, context.say, job.params.node_class), job.output)
