"""Tabulate the logs of the published experiment, judge the paper's claims by them, and predict their makespans."""

from pathlib import Path

from neurotier.published.claims import claim_rows
from neurotier.published.predictions import Predictor
from neurotier.published.replay import read_published, write_tables
from neurotier.run.scripting import script

with script(snakemake) as context:
    replay = read_published(Path(context.params.logs[0]))
    write_tables(replay, context.output("runs").parent)
    context.write_table("claims", "published_claims", claim_rows(replay))
    predictor = Predictor(replay)
    context.write_table("predictions", "published_predictions", predictor.predictions())
    context.write_table("validation", "published_validation", predictor.validation())
    context.write_table("parameters", "published_parameters", predictor.parameters())
