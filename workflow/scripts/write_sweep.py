"""Write the page on the sweep, ``sweep.html``, findings first."""

from neurotier.pages.sweep.figures import SweepTables
from neurotier.pages.sweep.page import write_page
from neurotier.run.scripting import script

with script(snakemake) as context:
    files = [context.input("points"), context.input("headlines")]
    write_page(SweepTables.read(*files), files, context.inputs("figures")[0].parent, context.output("page"))
    context.say(f"Report: {context.output('page')}")
