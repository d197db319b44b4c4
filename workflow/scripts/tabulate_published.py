"""Tabulate the logs of the published experiment."""

from pathlib import Path

from neurotier.published.replay import read_published, write_tables
from neurotier.run.scripting import Context, run_script


def main(context: Context) -> None:
    write_tables(read_published(Path(context.snakemake.params.logs[0])), context.output("runs").parent)


if __name__ == "__main__":
    run_script(snakemake, main)
