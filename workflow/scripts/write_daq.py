"""Write the page on the DAQ run, ``daq.html``, findings first, and say what it says."""

from neurotier.pages.daq.figures import DaqTables
from neurotier.pages.daq.page import write_page
from neurotier.run.scripting import script

with script(snakemake) as context:
    files = [context.input("points"), context.input("backlog")]
    tables = DaqTables.read(*files, context.settings.daq)
    for sentence in write_page(tables, files, context.inputs("figures")[0].parent, context.output("page")):
        context.say(sentence)
    context.say(f"Report: {context.output('page')}")
