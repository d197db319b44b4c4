"""Measure the points of the staging that are not there yet: ``staging/staging.tsv``, and what is published of it."""

from neurotier.core.tables import write_table
from neurotier.run.scripting import script
from neurotier.storage.staging.published import rows
from neurotier.storage.staging.walk import stage

with script(snakemake) as context:
    points = stage(context.settings, context.places, context.say, context.params.node_class)
    write_table(context.output("points"), "staging", points)
    write_table(context.output("published"), "published_staging", rows())
