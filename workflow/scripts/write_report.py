"""Write the self-contained run report, verdict first."""

from neurotier.pages.report.data import collect
from neurotier.pages.report.page import write_page
from neurotier.run.scripting import script

with script(snakemake) as context:
    write_page(collect(context.places, context.settings), context.output("page"))
