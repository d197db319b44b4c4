"""The tables of folder ``profile``, from the records of participant jobs and of what is done once."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from neurotier.analysis.steps import step_rows
from neurotier.core.places import Places
from neurotier.core.processes import current_run
from neurotier.core.tables import Row
from neurotier.run.jobs import read_failures
from neurotier.run.profile_tables import note_flush, profile_rows, read_records, run_rows, traffic_rows
from neurotier.run.start import note_swapping


def tabulate_profile(places: Places, records: Sequence[Path]) -> dict[str, list[Row]]:
    """The rows of each table, by its name.

    What this run wrote is brought to its device first, and that time and the machine's swapping are noted: a row of
    ``runs.tsv`` has them.

    Parameters
    ----------
    places
        Of the results: facts of the runs, failures and records of what is done once are read there.
    records
        The record of everyone whom the index selects; those of participants that failed are not there.
    """
    note_flush(places, lambda: read_records(records))
    note_swapping(places, current_run())
    done = read_records(records)
    profile = profile_rows(done)
    return {
        "profile": profile,
        "traffic": traffic_rows(done),
        "runs": run_rows(places, profile, read_failures(places), len(records)),
        "steps": step_rows(places),
    }
