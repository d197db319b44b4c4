"""Draw the figures of the published experiment that its logs have something to show for."""

from pathlib import Path

from neurotier.pages.kit.figures import draw_all
from neurotier.pages.published.figures import FIGURES
from neurotier.pages.published.tables import replayed
from neurotier.published.replay import read_published
from neurotier.run.scripting import script

with script(snakemake) as context:
    predicted = context.read_table("predictions", "published_predictions")
    validation = context.read_table("validation", "published_validation")
    tables = replayed(read_published(Path(context.params.logs[0])), predicted, validation)
    draw_all("published", FIGURES, tables, context.output("figures"))
