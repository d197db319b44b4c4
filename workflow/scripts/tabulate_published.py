"""Tabulate the logs of the published experiment."""

from neurotier.published import stages
from neurotier.run.scripting import Context, run_script


def main(context: Context) -> None:
    stages.tabulate_published(context.settings, context.places)


if __name__ == "__main__":
    run_script(snakemake, main)
