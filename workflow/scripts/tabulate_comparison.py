"""Tabulate the runs that are compared, and their medians, differences and speed-ups."""

from neurotier.pages.comparison.summary import everything_compared, write_summary_tables
from neurotier.run.compared import write_comparison_tables
from neurotier.run.scripting import script

with script(snakemake) as context:
    campaign, params = context.inputs("campaign"), context.params
    compared = everything_compared(campaign[0] if campaign else None, params.compared, params.published)
    write_comparison_tables(compared, context.output("runs").parent)
    write_summary_tables(compared, context.output("makespans").parent)
