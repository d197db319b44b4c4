"""Put what was measured of all tiers into one table: ``probe/probe.tsv``."""

from neurotier.core.tables import read_table, write_table
from neurotier.run.scripting import Context, run_script


def main(context: Context) -> None:
    rows = [row for table in context.inputs("tables") for row in read_table(table, "probe")]
    write_table(context.output("table"), "probe", rows)


if __name__ == "__main__":
    run_script(snakemake, main)
