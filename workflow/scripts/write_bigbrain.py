"""Write the page of the incrementation: ``bigbrain.html``."""

from neurotier.pages.bigbrain.page import write_page
from neurotier.pages.bigbrain.tables import read_tables
from neurotier.pages.bigbrain.verdict import judge
from neurotier.run.scripting import script

with script(snakemake) as context:
    files = {name: context.input(name) for name in ("conditions", "runs", "phases", "spark")}
    tables = read_tables(**files, published=context.inputs_named("published_"))
    verdict, page = judge(tables.conditions, tables.own_runs), context.output("page")
    write_page(tables, verdict, files["runs"].parent, context.input("bigbrain_makespans").parent, page)
    for line in verdict.terminal_lines():
        context.say(line)
    context.say(f"Report: {page}")
