"""Draw the figures of the sweep."""

from neurotier.pages.kit.figures import draw_all
from neurotier.pages.sweep.figures import FIGURES, SweepTables
from neurotier.run.scripting import script

with script(snakemake) as context:
    tables = SweepTables.read(context.input("points"), context.input("headlines"))
    draw_all("sweep", FIGURES, tables, context.output("headlines").parent)
