"""Measure the points of the staging that are not there yet: ``staging/staging.tsv``, and what is published of it."""

from neurotier.run.scripting import script
from neurotier.storage.staging.walk import Staging
from neurotier.storage.workload.walk import walk, write_tables

with script(snakemake) as context:
    job = context.snakemake
    write_tables(walk(Staging(context.settings, context.places), context.say, job.params.node_class), job.output)
