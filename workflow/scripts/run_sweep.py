"""Measure the points of the sweep that are not there yet: ``sweep/sweep.tsv``, and ``sweep/headlines.tsv`` from it."""

from neurotier.run.scripting import script
from neurotier.storage.sweep.walk import Sweep
from neurotier.storage.workload.walk import walk, write_tables

with script(snakemake) as context:
    job = context.snakemake
    write_tables(walk(Sweep(context.settings, context.places), context.say, job.params.node_class), job.output)
