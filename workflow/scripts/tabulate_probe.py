"""Put what was measured of all tiers into one table: ``probe/probe.tsv``."""

from pathlib import Path

from neurotier.run.scripting import Context, run_script
from neurotier.storage.probe import stages


def main(context: Context) -> None:
    stages.tabulate_probe(context.snakemake.input.tables, Path(context.snakemake.output.table))


if __name__ == "__main__":
    run_script(snakemake, main)
