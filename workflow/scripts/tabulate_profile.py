"""Tabulate CPU and I/O time per participant and phase, and makespan and parallelism per run."""

from neurotier.pages.report import stages
from neurotier.run.scripting import Context, run_script


def main(context: Context) -> None:
    stages.tabulate_profile(context.places)


if __name__ == "__main__":
    run_script(snakemake, main)
