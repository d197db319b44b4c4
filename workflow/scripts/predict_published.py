"""Predict the published makespans with each member of the model, and validate them by leaving out."""

from pathlib import Path

from neurotier.published.predictions import Predictor
from neurotier.published.replay import read_published
from neurotier.run.scripting import script

with script(snakemake) as context:
    predictor = Predictor(read_published(Path(context.params.logs[0])))
    context.write_table("predictions", "published_predictions", predictor.predictions())
    context.write_table("validation", "published_validation", predictor.validation())
    context.write_table("parameters", "published_parameters", predictor.parameters())
