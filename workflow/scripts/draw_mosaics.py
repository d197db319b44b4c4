"""Draw every brain mask as an outline on its T1w image, for quality control."""

from neurotier.pages.report.mosaics import draw_mosaics, pictures_of
from neurotier.run.scripting import script

with script(snakemake) as context:
    rows = context.read_table("group", "group")
    pictures = pictures_of(rows, context.places, context.settings)
    for line in draw_mosaics(pictures, context.places.mosaics, context.snakemake.threads, context.places.drawn):
        context.say(line)
