"""Draw the figures of the probe."""

from neurotier.core.tables import read_table
from neurotier.pages.kit.figures import draw_all
from neurotier.pages.probe.figures import FIGURES
from neurotier.run.scripting import script

with script(snakemake) as context:
    draw_all("probe", FIGURES, read_table(context.input("table"), "probe"), context.output("concurrency").parent)
