"""Tabulate the cost per participant and phase, and makespan and parallelism per run."""

from neurotier.run.participants import records_of
from neurotier.run.profile_tables import TABLES, tabulate_profile
from neurotier.run.scripting import script

with script(snakemake) as context:
    tables = {name: context.output(name) for name in TABLES}
    tabulate_profile(context.places, records_of(context.places), tables)
