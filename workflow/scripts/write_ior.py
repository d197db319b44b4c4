"""Write the page on the IOR run, ``ior.html``, findings first, and say what it says."""

from neurotier.core.tables import read_table
from neurotier.pages.ior.page import write_page
from neurotier.run.scripting import script

with script(snakemake) as context:
    table = context.input("table")
    figures = context.inputs("figures")[0].parent
    for sentence in write_page(read_table(table, "ior"), table, figures, context.output("page")):
        context.say(sentence)
    context.say(f"Report: {context.output('page')}")
