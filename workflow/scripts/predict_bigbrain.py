"""Predict the makespans of the incrementation."""

from neurotier.bigbrain import stages
from neurotier.run.scripting import Context, run_script


def main(context: Context) -> None:
    stages.predict(context.settings, context.places)


if __name__ == "__main__":
    run_script(snakemake, main)
