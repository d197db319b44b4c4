"""Draw the figures of the probe."""

from neurotier.pages.kit.figures import draw_all
from neurotier.pages.probe.figures import FIGURES
from neurotier.run.scripting import script

with script(snakemake) as context:
    draw_all("probe", FIGURES, context.read_table("table", "probe"), context.output("concurrency").parent)
