"""Tabulate the cost per participant and phase, and makespan and parallelism per run."""

from neurotier.run.participants import records_of
from neurotier.run.scripting import Context, run_script
from neurotier.run.tabulation import TABLES, tabulate_profile


def main(context: Context) -> None:
    tables = {name: context.output(name) for name in TABLES}
    tabulate_profile(context.places, records_of(context.places), tables)


if __name__ == "__main__":
    run_script(snakemake, main)
