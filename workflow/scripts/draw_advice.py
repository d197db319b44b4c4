"""Draw the figures of the advice."""

from neurotier.pages.advice.figures import FIGURES
from neurotier.pages.kit.figures import draw_all
from neurotier.run.scripting import script

with script(snakemake) as context:
    draw_all("advice", FIGURES, context.read_table("table", "advice"), context.output("advised").parent)
