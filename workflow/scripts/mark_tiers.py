"""Write a file on each tier of this machine, for a node to look for; ``check/CLASS-marks.json`` has their texts."""

from neurotier.run.node_check import mark_tiers
from neurotier.run.scripting import script

with script(snakemake) as context:
    context.write_json("marks", mark_tiers(context.settings, context.places))
