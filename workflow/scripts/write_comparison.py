"""Write the comparison report."""

from neurotier.pages.comparison.page import write_page
from neurotier.run.campaign.comparing import lacking
from neurotier.run.compared import read_comparison_tables
from neurotier.run.scripting import script

with script(snakemake) as context:
    compared = read_comparison_tables(context.input("runs").parent)
    left = "".join(lacking(plan) for plan in context.inputs("campaign"))
    write_page(compared, context.input("makespan").parent, context.output("page"), left)
