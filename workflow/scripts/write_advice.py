"""Write the page of the advice: ``advice.html``."""

from neurotier.core.tables import read_table
from neurotier.pages.advice.page import write_page
from neurotier.run.scripting import script

with script(snakemake) as context:
    table = context.input("table")
    rows, basis = read_table(table, "advice"), context.read_json("basis")
    nodes = context.inputs_named("nodes")
    write_page(rows, basis, table, context.input("advised").parent, context.output("page"), nodes.get("nodes"))
