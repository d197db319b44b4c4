"""Predict the published makespans with each member of the model, and validate them by leaving out."""

from pathlib import Path

from neurotier.published.fits import fit_all, speed_rows
from neurotier.published.predictions import Predictor
from neurotier.published.replay import read_published
from neurotier.run.scripting import script

with script(snakemake) as context:
    replay = read_published(Path(context.params.logs[0]))
    fits = fit_all(replay)
    predictor = Predictor(replay, fits)
    context.write_table("speeds", "published_speeds", speed_rows(replay, fits))
    context.write_table("predictions", "published_predictions", predictor.predictions())
    context.write_table("validation", "published_validation", predictor.validation())
    context.write_table("parameters", "published_parameters", predictor.parameters())
