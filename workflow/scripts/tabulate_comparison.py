"""Tabulate the runs that are compared, and their medians, differences and speed-ups."""

from neurotier.pages.comparison import stages
from neurotier.run.scripting import Context, run_script


def main(context: Context) -> None:
    stages.tabulate_comparison(context.settings, context.places)


if __name__ == "__main__":
    run_script(snakemake, main)
