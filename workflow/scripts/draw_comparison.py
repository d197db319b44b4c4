"""Draw the figures of the comparison."""

from neurotier.pages.comparison.figures import FIGURES
from neurotier.pages.kit.figures import draw_all
from neurotier.run.compared import read_comparison_tables
from neurotier.run.scripting import script

with script(snakemake) as context:
    compared = read_comparison_tables(context.input("runs").parent)
    draw_all("comparison", FIGURES, compared, context.output("makespan").parent)
