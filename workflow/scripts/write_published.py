"""Draw what the published logs have to show, and write the page about the published experiment."""

from pathlib import Path

from neurotier.core.tables import read_table
from neurotier.pages.published.page import Judged, headline, verdict, write_page
from neurotier.pages.published.tables import replayed
from neurotier.published.replay import read_published
from neurotier.run.scripting import script

with script(snakemake) as context:
    predictions, page = context.input("predictions"), context.output("page")
    validation = context.read_table("validation", "published_validation")
    judged = Judged(
        context.read_table("claims", "published_claims"),
        context.read_table("parameters", "published_parameters"),
    )
    replay = read_published(Path(context.params.logs[0]))
    tables = replayed(replay, read_table(predictions, "published_predictions"), validation)
    write_page(tables, judged, predictions.parent, page)
    for text in verdict(tables, judged):
        context.say(f"{text}.")
    context.say(f"{headline(replay)}. Page: {page}")
