"""Draw the figures of the DAQ run."""

from neurotier.pages.daq.figures import FIGURES, DaqTables
from neurotier.pages.kit.figures import draw_all
from neurotier.run.scripting import script

with script(snakemake) as context:
    tables = DaqTables.read(context.input("points"), context.input("backlog"), context.settings.daq)
    draw_all("daq", FIGURES, tables, context.output("held").parent)
