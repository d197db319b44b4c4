"""Draw every brain mask as an outline on its T1w image, for quality control."""

from neurotier.pages.report.mosaics import draw_all
from neurotier.run.scripting import script

with script(snakemake) as context:
    rows = context.read_table("group", "group")
    for line in draw_all(rows, context.places, context.settings, context.snakemake.threads):
        context.say(line)
