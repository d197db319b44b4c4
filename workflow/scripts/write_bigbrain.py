"""Draw the figures of the incrementation, and write its page: ``bigbrain.html``."""

from neurotier.pages.bigbrain.page import write_page
from neurotier.pages.bigbrain.tables import read_tables
from neurotier.run.scripting import script

with script(snakemake) as context:
    files = {name: context.input(name) for name in ("conditions", "runs", "phases", "spark")}
    tables = read_tables(**files, published=context.inputs_named("published_"))
    for line in write_page(tables, files["runs"].parent, context.output("page")).terminal_lines():
        context.say(line)
    context.say(f"Report: {context.output('page')}")
