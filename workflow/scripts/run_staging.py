"""Measure the points of the staging that are not there yet: ``staging/staging.tsv``, and what is published of it."""

from neurotier.run.scripting import script
from neurotier.storage.staging.published import rows
from neurotier.storage.staging.walk import stage

with script(snakemake) as context:
    points = stage(context.settings, context.places, context.say, context.params.node_class)
    context.write_table("points", "staging", points)
    context.write_table("published", "published_staging", rows())
