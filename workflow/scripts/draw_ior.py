"""Draw the figures of the IOR run."""

from neurotier.pages.ior.figures import FIGURES
from neurotier.pages.kit.figures import draw_all
from neurotier.run.scripting import script

with script(snakemake) as context:
    draw_all("ior", FIGURES, context.read_table("table", "ior"), context.output("bandwidth").parent)
