"""Tabulate brain volumes, and summarise them over the dataset."""

from neurotier.pages.report import stages
from neurotier.run.scripting import Context, run_script


def main(context: Context) -> None:
    stages.summarize_group(context.places)


if __name__ == "__main__":
    run_script(snakemake, main)
