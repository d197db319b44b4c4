"""Draw the figures of the staging."""

from neurotier.pages.kit.figures import draw_all
from neurotier.pages.staging.figures import FIGURES, StagingTables
from neurotier.run.scripting import script

with script(snakemake) as context:
    tables = StagingTables.read(context.input("points"))
    draw_all("staging", FIGURES, tables, context.output("servers").parent)
