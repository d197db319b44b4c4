"""Tabulate the runs that are compared, with their participants and bytes."""

from neurotier.pages.comparison.verdict import all_compared
from neurotier.run.compared import write_comparison_tables
from neurotier.run.scripting import script

with script(snakemake) as context:
    campaign, params = context.inputs("campaign"), context.params
    compared = all_compared(campaign[0] if campaign else None, params.compared, params.published)
    write_comparison_tables(compared, context.output("runs").parent)
