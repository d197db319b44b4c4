"""Predict the published makespans with each member of the model, and validate them by leaving out."""

from pathlib import Path

from neurotier.core.tables import write_table
from neurotier.published.predictions import Predictor
from neurotier.published.replay import read_published
from neurotier.run.scripting import Context, run_script


def main(context: Context) -> None:
    predictor = Predictor(read_published(Path(context.snakemake.params.logs[0])))
    write_table(context.output("predictions"), "published_predictions", predictor.predictions())
    write_table(context.output("validation"), "published_validation", predictor.validation())
    write_table(context.output("parameters"), "published_parameters", predictor.parameters())


if __name__ == "__main__":
    run_script(snakemake, main)
