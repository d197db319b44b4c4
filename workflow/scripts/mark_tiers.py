"""Write a file on each tier of this machine for a node to see, and note their texts: ``check/CLASS-marks.json``."""

from neurotier.run.node_check import mark_tiers
from neurotier.run.scripting import script

with script(snakemake) as context:
    context.write_json("marks", mark_tiers(context.settings, context.places))
