"""The verdicts on results and on times, each in a headline and a few lines, and a row of numbers, before any figure."""

from __future__ import annotations

import statistics
from dataclasses import dataclass

from neurotier.core.quantities import MISSING, clock, counted, mean_count, percent, seconds, share_of, utc
from neurotier.core.tables import Row
from neurotier.meter.usage import LABELS
from neurotier.pages.kit.causes import BLOCK_IO, RUN_QUEUE, sum_causes
from neurotier.pages.report.cluster import node_verdict
from neurotier.pages.report.data import ReportData
from neurotier.pages.report.times import ParticipantTime
from neurotier.run.profile_tables import timings


@dataclass(frozen=True)
class Tile:
    """One number with its name and a line of context."""

    name: str
    value: str
    detail: str = ""


@dataclass(frozen=True)
class Verdict:
    """How good a run's results are, or its times.

    Attributes
    ----------
    style
        Of results: ``good`` if every site was reached and every participant is done, else empty; of times: ``open``.
    headline
        The verdict in one sentence.
    lines
        What else must be known before either is used.
    """

    style: str
    headline: str
    lines: list[str]


def judge_results(data: ReportData) -> Verdict:
    """What has been made, whatever the times are worth."""
    total = len(data.selected)
    parts = [f"{len(data.done):,} of {counted(total, 'participant')} done"]
    parts += [f"{len(data.failed):,} failed"] if data.failed else []
    parts += [f"{len(data.not_run):,} not run"] if data.not_run else []
    parts += [f"{counted(len(data.skipped), 'item')} of the dataset skipped"] if data.skipped else []
    parts += [counted(len(data.group), "brain mask")] if data.group else []
    counts = ", ".join(parts) if total else "no participant is known, the dataset has not been indexed"
    unreachable = data.dataset.get("unreachable") or {}
    lines = [f"{path} could not be reached, and is not part of this: {why}." for path, why in unreachable.items()]
    good = total and len(data.done) == total and not unreachable
    return Verdict("good" if good else "", f"Results: {counts}", lines)


def judge_timings(data: ReportData) -> Verdict:
    """What the times of the last run are worth, and what must be known about them."""
    lines: list[str] = []
    run, cluster = data.last_run, data.cluster
    started = data.facts.get("run")
    if run is not None and started and started != run["run"]:
        lines.append(
            f"The run started last, {started}, finished no participant job; the times are those of {run['run']}."
        )
    if (run is not None and run["oversubscribed"]) or (run is None and data.facts.get("oversubscribed")):
        lines.append(f"Oversubscribed: {crowd(data, run)}; {core_wait(data, run)}.")
    if run is not None and run["limited_by"]:
        lines.append(f"Fewer than the {run['parallelism']} jobs that the cores had room for: {run['limited_by']}.")
    if run is not None and len({row["run"] for row in data.profile}) > 1:
        earlier = len({row["participant"] for row in data.profile if row["run"] != run["run"]})
        lines.append(
            f"Resumed: {counted(earlier, 'participant')} of earlier runs {'is' if earlier == 1 else 'are'} part of"
            " these results; makespan and parallelism are those of the last run alone."
        )
    if cluster is not None and cluster.standing_out:
        lines.append(f"{node_verdict(cluster)}.")
    if cluster is not None and cluster.again:
        lines.append(f"{counted(len(cluster.again), 'job')} had to be started again (see Nodes and jobs).")
    said = timings(run["valid"]) if run is not None else "none; no run has finished a participant job"
    return Verdict("open", f"Timings: {said}", lines)


def crowd(data: ReportData, run: Row | None) -> str:
    """By what a run was oversubscribed."""
    if data.cluster is not None:
        return "jobs were granted fewer CPUs than the participants take that they analyse at once"
    cores = run["cores"] if run is not None else data.facts.get("cores")
    cpus = data.facts.get("cpus")
    machine = f"the machine has {counted(cpus, 'CPU')}" if cpus else "the machine has fewer CPUs"
    return f"{cores} cores were asked for, {machine}"


def core_wait(data: ReportData, run: Row | None) -> str:
    """What waiting for a core took of a run, as far as it is known."""
    if run is None or run["account_run_queue_sum_s"] is None or not run["wall_sum_s"]:
        return "wall times contain waiting for a core"
    causes = sum_causes(row for row in data.profile if row["run"] == run["run"])
    share = percent(run["account_run_queue_sum_s"] / run["wall_sum_s"])
    return f"waiting for a core took {causes.about}{share} of wall time"


def slots_text(data: ReportData, run: Row) -> str:
    """How many participants there was room for, in words that a comma ends; empty if it is not known."""
    if data.cluster is not None:
        slots = data.cluster.peak_slots
        return f"of up to {counted(slots, 'slot')} granted, " if slots else ""
    return f"of {counted(run['cores'], 'core')}, " if run["cores"] else ""


def computing_text(data: ReportData, run: Row) -> str:
    """How many of those who were there computed, where others could copy beside them; empty otherwise."""
    beside = data.facts.get("settings", {}).get("batches", {}).get("staging_beside")
    return f", {run['peak_computing']:,} of them computing" if beside and run["peak_computing"] is not None else ""


def tiles(data: ReportData, times: list[ParticipantTime]) -> list[Tile]:
    """The numbers a reader looks for first; ``times`` slowest first."""
    run = data.last_run
    wall, cpu = (sum(getattr(time, key) for time in times) for key in ("wall_s", "cpu_s"))
    images = f"{counted(len(data.group), 'brain mask')}" if data.group else "no brain mask"
    tiles = [Tile("Participants done", f"{len(data.done):,} of {len(data.selected):,}", images)]
    if run is None or run["makespan_s"] is None:
        tiles += [Tile("Makespan", MISSING), Tile("Mean parallelism", MISSING)]
    else:
        span = clock(run["makespan_s"]) or f"started {utc(run['start_s'])}"
        if run["flushed_s"] is not None and run["flushed_s"] > run["makespan_s"]:
            span += f", on its device after {seconds(run['flushed_s'])}"
        tiles.append(Tile("Makespan, last run", seconds(run["makespan_s"]), span))
        peak = f"{slots_text(data, run)}peak {run['peak_parallelism']:,}{computing_text(data, run)}"
        tiles.append(Tile("Mean parallelism", mean_count(run["mean_parallelism"]), peak))
    causes = sum_causes(row for row in data.profile)
    tiles.append(
        Tile("CPU time", percent(share_of(cpu, wall)), f"{seconds(cpu)} of {seconds(wall)} wall" if times else "")
    )
    for cause in (RUN_QUEUE, BLOCK_IO):
        known = any(row[cause] is not None for row in data.profile)
        share = f"{causes.about}{percent(causes.share_of(cause))}" if known else MISSING
        tiles.append(Tile(LABELS[cause].capitalize(), share, seconds(causes.seconds_of(cause)) if known else ""))
    if data.cluster is not None:
        wait = [wait_s for wait_s, _ in data.cluster.waits_s]
        longest = f"median; longest {seconds(wait[0])}" if wait else "not known"
        tiles.append(Tile("Queue wait", seconds(statistics.median(wait) if wait else None), longest))
        held_s = data.cluster.held_s
        held = f"of the {seconds(held_s)} that jobs held" if held_s else "what jobs held is not known"
        tiles.append(Tile("CPUs used", percent(data.cluster.efficiency), held))
    slowest = times[0] if times else None
    tiles.append(Tile("Slowest", seconds(slowest.wall_s if slowest else None), slowest.participant if slowest else ""))
    return tiles
