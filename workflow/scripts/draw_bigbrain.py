"""Draw the figures of the incrementation."""

from neurotier.pages.bigbrain.figures import FIGURES
from neurotier.pages.bigbrain.tables import read_tables
from neurotier.pages.kit.figures import draw_all
from neurotier.run.scripting import script

with script(snakemake) as context:
    files = {name: context.input(name) for name in ("conditions", "runs", "phases", "spark")}
    tables = read_tables(**files, published=context.inputs_named("published_"))
    draw_all("bigbrain", FIGURES, tables, context.output("bigbrain_makespans").parent)
