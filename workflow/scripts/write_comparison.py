"""Draw the figures of the comparison, and write its report."""

from neurotier.pages.comparison.figures import FIGURES
from neurotier.pages.comparison.page import write_page
from neurotier.pages.kit.figures import draw_all
from neurotier.run.campaign.comparing import lacking
from neurotier.run.compared import read_comparison_tables
from neurotier.run.scripting import script

with script(snakemake) as context:
    compared, figures = read_comparison_tables(context.input("runs").parent), context.output("makespan").parent
    draw_all("comparison", FIGURES, compared, figures)
    left = "".join(lacking(plan) for plan in context.inputs("campaign"))
    write_page(compared, figures, context.output("page"), left)
