"""The tables of the profile: costs and waits per participant and phase, makespan and parallelism per run.

``io_s`` is wall time - CPU time, the measure of I/O in the paper's plots (Hayot-Sasson, Brown and Glatard 2020; their
text defines it differently). It includes waiting for a core, which the account of wall time shows separately.
"""

from __future__ import annotations

import math
import socket
import time
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from pathlib import Path

from neurotier.analysis.steps import step_rows
from neurotier.core.files import Record, flush_file_system, read_json, without
from neurotier.core.parallelism import COMPUTING_PHASES, extent, job_spans, limited_by, mean, peak
from neurotier.core.places import Places
from neurotier.core.processes import current_run
from neurotier.core.quantities import counted
from neurotier.core.settings import Settings
from neurotier.core.tables import Row, Rows, write_table, writing_table
from neurotier.meter.measure import STOPPED
from neurotier.meter.traffic import FILE_SIZES
from neurotier.meter.usage import ACCOUNT
from neurotier.run.cluster_jobs import CLOCKS_S, all_job_rows, note_jobs, read_jobs
from neurotier.run.compared import INVALID, VALID, some_only, valid_unless
from neurotier.run.disturbance import DISTURBED, clock_was_set, note_reading, others, read_readings
from neurotier.run.jobs import add_facts, note_swapping, read_failures, run_facts
from neurotier.run.journal import entries
from neurotier.run.needs import Needs, needs_of

TABLES = ("profile", "traffic", "runs", "steps", "jobs")

UNKNOWN_SHARE = 0.01
"""Share of a run's wall time that phases without an account may take before sums of the account count as unknown."""


RUN_COLUMNS = (
    "run",
    "participant",
    "phase",
    "host",
    "start_s",
    "end_s",
    "wall_s",
    "cpu_s",
    "io_s",
    *ACCOUNT,
    "residual_s",
    "account_reason",
)
"""The columns of ``profile.tsv`` that the row of a run is computed from."""

OF_RECORD = ("run", "participant", "tool", "work_tier", "host")
"""Columns of ``profile.tsv`` that a record has once, for all of its phases."""


def read_records(files: Iterable[Path]) -> Iterator[Record]:
    """Records of participant jobs whose files exist, in the given order; only one at a time is in memory."""
    for file in files:
        with suppress(FileNotFoundError):
            yield read_json(file)


def profile_rows(record: Record) -> Rows:
    """Rows of ``profile.tsv`` for one participant job: one per phase."""
    return [
        {name: record[name] for name in OF_RECORD}
        | {"site": site_of(record["participant"]), "fetch_s": (record.get("got") or {}).get("wall_s")}
        | without(phase, "traffic")
        for phase in record["phases"]
    ]


def read_timed_rows(files: Iterable[Path]) -> Rows:
    """Rows of ``profile.tsv`` with :data:`RUN_COLUMNS` only, so that those of many participants fit into memory."""
    return [timed(row) for record in read_records(files) for row in profile_rows(record)]


def timed(row: Row) -> Row:
    """:data:`RUN_COLUMNS` of a row of ``profile.tsv``."""
    return {name: row[name] for name in RUN_COLUMNS}


def traffic_rows(record: Record) -> Rows:
    """Rows of ``traffic.tsv`` for one participant job: one per phase, tier and source."""
    return [
        {"run": record["run"], "participant": record["participant"], "phase": phase["phase"]}
        | without(flow, FILE_SIZES)
        for phase in record["phases"]
        for flow in phase["traffic"]
    ]


def tabulate_profile(places: Places, records: Sequence[Path], tables: Mapping[str, Path]) -> None:
    """Write the tables; records are read one by one, since those of many participants do not fit into memory.

    What this run wrote is flushed to its device first; the time of the flush, the machine's swapping and the use of its
    processors are noted for the run's row in ``runs.tsv``.

    Parameters
    ----------
    places
        Of the results.
    records
        Paths of the records of all selected participants; those of failed participants do not exist.
    tables
        Path of each table by its name, one of :data:`TABLES`.
    """
    flush = flush_results(places)
    note_jobs(places, current_run())
    rows = []
    with (
        writing_table(tables["profile"], "profile") as write_profile,
        writing_table(tables["traffic"], "traffic") as write_traffic,
    ):
        for record in read_records(records):
            for row in profile_rows(record):
                write_profile(row)
                rows.append(timed(row))
            for row in traffic_rows(record):
                write_traffic(row)
    note_flush(places, flush, rows)
    note_swapping(places)
    if (readings := places.readings(current_run())).exists():  # Snakemake's process takes readings of this job, too
        note_reading(readings, run_facts(places)["pid"])
    write_table(tables["runs"], "runs", run_rows(places, rows, read_failures(places), len(records)))
    write_table(tables["steps"], "steps", step_rows(places))
    write_table(tables["jobs"], "jobs", all_job_rows(places))


def run_rows(places: Places, rows: Sequence[Row], failures: Sequence[Record], everyone: int) -> Rows:
    """Rows of ``runs.tsv``: one per run in which a participant was analysed or failed, in order of time.

    A finished run keeps its row (:func:`close_run`), whatever later runs repair or replace. The rows of other runs are
    computed from the existing records.
    """
    return [
        row
        for facts in map(read_json, sorted(places.runs.glob("*.json")))
        if (row := facts.get("row") or run_row(places, facts, rows, failures, everyone))
    ]


def close_run(places: Places, run: str, everyone: Collection[str], failures: Sequence[Record]) -> None:
    """Write the final row of a finished run into its facts."""
    facts = facts_with_jobs(places, read_json(places.runs / f"{run}.json"))
    row = run_row(places, facts, read_timed_rows(map(places.record, everyone)), failures, len(everyone))
    add_facts(places, run, **facts | {"row": row})
    places.readings(run).unlink(missing_ok=True)


def facts_with_jobs(places: Places, facts: Record) -> Record:
    """Facts of a run, marked oversubscribed if its jobs on a cluster had fewer CPUs than their participants needed.

    While the run goes on, its journal says whether any participant was analysed again.
    """
    crowded = any((job["needed_cpus"] or 0) > (job["cpus"] or math.inf) for job in read_jobs(places, facts["run"]))
    return facts | {
        "oversubscribed": facts["oversubscribed"] or crowded,
        "again": facts.get("again") or bool(entries(places, facts["run"], "again")),
    }


def run_row(
    places: Places, facts: Record, rows: Sequence[Row], failures: Sequence[Record], everyone: int
) -> Row | None:
    """The row of one run; ``None`` for a run in which no participant was analysed or failed.

    Parameters
    ----------
    places
        Of the results.
    facts
        Facts of the run.
    rows
        Rows of ``profile.tsv``, of all runs; :data:`RUN_COLUMNS` are enough.
    failures
        Failure records, of all runs.
    everyone
        Number of participants that the index selects.

    Examples
    --------
    Two jobs of 2 s each, the second started 1 s after the first: makespan 3 s, mean parallelism 4/3.
    """
    run = facts["run"]
    missing = everyone - len({row["participant"] for row in rows}) - len(failures)
    rows = [row for row in rows if row["run"] == run]
    failed = sum(failure["run"] == run for failure in failures)
    if not rows and not failed:
        return None
    spans = job_spans(rows)
    span = extent(spans)
    readings = read_readings(places.readings(run))
    taken = others(facts, rows, span, readings)
    facts = facts_with_jobs(places, facts) | {"others_cpu_share": taken["others_cpu_share"]}
    # on a cluster, no participant begins before the head, or ends after it
    whole = facts["started_s"] - CLOCKS_S, facts.get("ended_s", time.time()) + CLOCKS_S
    facts["clock_set"] = clock_was_set(readings) or (facts.get("elsewhere") and extent([*spans, whole]) != whole)
    facts["paused"] = STOPPED in {row["account_reason"] for row in rows}
    needed_by = Needs(Settings.from_json(facts["settings"]), places, on_cluster=False)
    needs = needs_of(needed_by, {row["participant"] for row in rows})
    return {
        "run": run,
        "valid": validity(facts, failed, missing, len(spans), everyone, run == current_run()),
        **{name: facts[name] for name in ("oversubscribed", "image", "cores", "parallelism")},
        "tool": facts["analysis"],
        **{f"{role}_tier": tier["name"] for role, tier in facts["tiers"].items()},
        **({} if facts["image"] else {"images_tier": None}),
        "nodes": " ".join(sorted({row["host"] for row in rows})) or None,
        "participants": len(spans),
        "failed": failed,
        "start_s": span and span[0],
        "end_s": span and span[1],
        "makespan_s": span and span[1] - span[0],
        "flushed_s": span and flushed_s(facts.get("flush"), *span),
        **{f"{name}_sum_s": sum(row[f"{name}_s"] for row in rows) for name in ("wall", "cpu", "io")},
        **{f"{name[:-2]}_sum_s": account_sum_s(rows, name) for name in (*ACCOUNT, "residual_s")},
        "mean_parallelism": mean(spans),
        "peak_parallelism": peak(spans),
        "peak_computing": peak(job_spans([row for row in rows if row["phase"] in COMPUTING_PHASES])),
        "limited_by": limited_by(facts["parallelism"], spans, facts["limits"], needs, failed + missing),
        **taken,
    }


def flush_results(places: Places) -> dict[str, float]:
    """Flush everything that this run wrote to its device; when that began and ended, s since 1970."""
    begin_s = time.time()
    flush_file_system(places.results)
    return {"begin_s": begin_s, "end_s": time.time()}


def note_flush(places: Places, flush: Mapping[str, float], rows: Iterable[Row]) -> None:
    """Note a flush of the results in the facts of this run.

    Only the first flush after the last job counts, and only if it was done on the host of the jobs: a flush on another
    host does not cover what they wrote.

    Parameters
    ----------
    places
        Places of the results.
    flush
        What :func:`flush_results` returned, before the rows were read.
    rows
        Rows of ``profile.tsv``, of all runs; :data:`RUN_COLUMNS` are enough.
    """
    own, known = [row for row in rows if row["run"] == current_run()], run_facts(places).get("flush", {"begin_s": 0.0})
    if {row["host"] for row in own} == {socket.gethostname()} and known["begin_s"] < max(row["end_s"] for row in own):
        add_facts(places, current_run(), flush=flush)


def flushed_s(flush: Record | None, start_s: float, end_s: float) -> float | None:
    """Makespan plus the duration of the flush after it, s, without the time in between, in which Snakemake starts
    rules.

    >>> flushed_s({"begin_s": 7.0, "end_s": 9.0}, 1.0, 5.0)
    6.0
    """
    if flush is None or flush["begin_s"] < end_s:
        return None
    return float(end_s - start_s + flush["end_s"] - flush["begin_s"])


def account_sum_s(rows: Sequence[Row], column: str) -> float | None:
    """Sum of a column of the account; ``None`` if no phase has it, or if more than 1 % of the wall time has no account.

    If an account lacks a component, the time of that component is part of its residual, or of sleep.
    """
    known = [row[column] for row in rows if row[column] is not None]
    lost_s = sum(row["wall_s"] for row in rows if row["account_user_s"] is None)
    return sum(known) if known and lost_s <= UNKNOWN_SHARE * sum(row["wall_s"] for row in rows) else None


def validity(facts: Record, failed: int, not_run: int, done: int, everyone: int, running: bool) -> str:
    """``valid``, or ``invalid: `` and the reasons, from the facts of a run.

    >>> validity({"ended_s": 1.0}, failed=2, not_run=0, done=1, everyone=3, running=False)
    'invalid: 2 participants failed'
    >>> validity({"ended_s": 1.0}, failed=0, not_run=0, done=1, everyone=3, running=False)
    'invalid: 1 of 3 participants only, the others are from other runs'
    """
    taken = facts.get("others_cpu_share") or 0.0
    reasons = {
        "the run was killed, or had no room to write its end": not running and "ended_s" not in facts,
        f"the run was stopped by {facts.get('stopped_by')}": facts.get("stopped_by"),
        "participants were analysed again after a kill or full tier, or their job or app restarted": facts.get("again"),
        f"{counted(failed, 'participant')} failed": failed,
        f"{counted(not_run, 'participant')} not run": not_run > 0,
        some_only(done, everyone): done + failed + not_run < everyone,
        "participants were suspended and resumed during the run": facts.get("paused"),
        "the machine's clock was set during the run, or clocks of nodes differ": facts.get("clock_set"),
        "the machine swapped": facts.get("swap_out_bytes"),
        f"{DISTURBED}: others took {100 * taken:.0f} % of the CPU time": taken
        and taken > facts["settings"]["validity"]["others_cpu_share"],
    }
    return valid_unless(reason for reason, applies in reasons.items() if applies)


def timings(valid: str) -> str:
    """The validity of a run in words: it is about the run's times, not about its results.

    >>> timings("valid"), timings("invalid: the machine swapped")
    ('fit for comparison', 'not for comparison: the machine swapped')
    """
    return "fit for comparison" if valid == VALID else f"not for comparison: {valid.removeprefix(INVALID)}"


def site_of(participant: str) -> str | None:
    """The site of a participant's folder, if it has one.

    >>> site_of("NYU/sub-01"), site_of("sub-01")
    ('NYU', None)
    """
    return participant.rpartition("/")[0] or None
