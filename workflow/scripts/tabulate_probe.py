"""Put the measurements of all tiers into one table: ``probe/probe.tsv``."""

from neurotier.core.tables import read_table
from neurotier.run.scripting import script

with script(snakemake) as context:
    rows = [row for table in context.inputs("tables") for row in read_table(table, "probe")]
    context.write_table("table", "probe", rows)
