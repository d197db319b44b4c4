"""Tabulate brain volumes, and summarise them over the dataset."""

from neurotier.run.group import group_rows, summary
from neurotier.run.participants import records_of
from neurotier.run.profile_tables import read_records
from neurotier.run.scripting import script

with script(snakemake) as context:
    rows = group_rows(read_records(records_of(context.places)))
    context.write_table("group", "group", rows)
    context.write_json("summary", summary(rows))
