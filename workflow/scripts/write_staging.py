"""Write the page on the staging, ``staging.html``, findings first."""

from neurotier.pages.staging.figures import StagingTables
from neurotier.pages.staging.page import write_page
from neurotier.run.scripting import script

with script(snakemake) as context:
    files = [context.input("points"), context.input("published")]
    write_page(StagingTables.read(files[0]), files, context.inputs("figures")[0].parent, context.output("page"))
    context.say(f"Report: {context.output('page')}")
