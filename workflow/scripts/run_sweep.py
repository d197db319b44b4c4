"""Measure the points of the sweep that are not there yet: ``sweep/sweep.tsv``, and ``sweep/headlines.tsv`` from it."""

from neurotier.run.scripting import script
from neurotier.storage.sweep.headlines import headline_rows
from neurotier.storage.sweep.walk import sweep

with script(snakemake) as context:
    rows = sweep(context.settings, context.places, context.say, context.params.node_class)
    context.write_table("points", "sweep", rows)
    context.write_table("headlines", "headlines", headline_rows(rows))
