"""Predict the published makespans with each member of the model."""

from neurotier.published import stages
from neurotier.run.scripting import Context, run_script


def main(context: Context) -> None:
    stages.predict_published(context.settings, context.places)


if __name__ == "__main__":
    run_script(snakemake, main)
