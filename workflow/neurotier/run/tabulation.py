"""The tables of folder ``profile``, from the records of participant jobs and of what is done once."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

from neurotier.analysis.steps import step_rows
from neurotier.core.places import Places
from neurotier.core.processes import current_run
from neurotier.core.tables import Row, write_table, writing_table
from neurotier.run.cluster_jobs import all_job_rows, note_jobs
from neurotier.run.disturbance import note_processors
from neurotier.run.jobs import read_failures
from neurotier.run.profile_tables import (
    flush_results,
    note_flush,
    profile_rows,
    read_records,
    run_rows,
    timed_rows,
    traffic_rows,
)
from neurotier.run.start import note_swapping

TABLES = ("profile", "traffic", "runs", "steps", "jobs")


def tabulate_profile(places: Places, records: Sequence[Path], tables: Mapping[str, Path]) -> None:
    """Write the tables; records are read one by one, since all of many participants do not fit into memory.

    What this run wrote is brought to its device first; that time, the machine's swapping and what its processors did
    are noted: a row of ``runs.tsv`` has them.

    Parameters
    ----------
    places
        Of the results: facts of the runs, failures and records of what is done once are read there.
    records
        The record of everyone whom the index selects; those of participants that failed are not there.
    tables
        Path of each table by its name, one of :data:`TABLES`.
    """
    flush = flush_results(places)
    note_jobs(places, current_run())
    timed: list[Row] = []
    with (
        writing_table(tables["profile"], "profile") as write_profile,
        writing_table(tables["traffic"], "traffic") as write_traffic,
    ):
        for record in read_records(records):
            rows = profile_rows([record])
            timed += timed_rows(rows)
            for row in rows:
                write_profile(row)
            for row in traffic_rows([record]):
                write_traffic(row)
    note_flush(places, flush, timed)
    note_swapping(places, current_run())
    note_processors(places, current_run())
    write_table(tables["runs"], "runs", run_rows(places, timed, read_failures(places), len(records)))
    write_table(tables["steps"], "steps", step_rows(places))
    write_table(tables["jobs"], "jobs", all_job_rows(places))
