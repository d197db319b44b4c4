"""Tabulate CPU and I/O time per participant and phase, and makespan and parallelism per run."""

from neurotier.core.tables import write_table
from neurotier.run.scripting import Context, run_script
from neurotier.run.tabulation import tabulate_profile


def main(context: Context) -> None:
    for name, rows in tabulate_profile(context.places, context.inputs("records")).items():
        write_table(context.output(name), name, rows)


if __name__ == "__main__":
    run_script(snakemake, main)
