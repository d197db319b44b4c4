"""Write the page on the tiers, ``probe.html``, and say what it says."""

from neurotier.core.tables import read_table
from neurotier.pages.kit.figures import figures_of
from neurotier.pages.probe.figures import FIGURES
from neurotier.pages.probe.page import write_page
from neurotier.run.scripting import script

with script(snakemake) as context:
    table = context.input("table")
    rows = read_table(table, "probe")
    write_page(rows, table, context.inputs("figures")[0].parent, context.output("page"))
    for figure in figures_of("probe", FIGURES, rows):
        context.say(f"{figure.finding.sentence}.")
    context.say(f"Report: {context.output('page')}")
