"""Draw every brain mask as an outline on its T1w image, for quality control."""

from neurotier.pages.report.mosaics import Picture, draw_mosaics
from neurotier.run.scripting import script

with script(snakemake) as context:
    rows = context.read_table("group", "group")
    pictures = [Picture.of(row, context.places) for row in rows]
    draw_mosaics(pictures, context.places.mosaics, context.snakemake.threads, context.places.drawn)
