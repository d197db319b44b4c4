"""The figure ``gantts``: a small Gantt per run, all runs of an origin on one scale."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from neurotier.core.quantities import counted, mean_count, percent, seconds, shorten
from neurotier.core.tables import Row
from neurotier.pages.comparison.names import Names, condition_cells
from neurotier.pages.comparison.statistics import run_key
from neurotier.pages.kit.findings import Finding, at_once
from neurotier.pages.kit.gantt import Chart, Job, Segment, draw_charts, pack
from neurotier.pages.kit.style import BLACK, PHASE_COLOURS, VERMILION, write_figure
from neurotier.run.compared import Compared
from neurotier.run.conditions import Condition

MOST_RUNS = 24
"""With more runs, one of each condition is drawn: the one in the middle."""

MOST_PANELS = 48
COLUMNS = 3


@dataclass(frozen=True)
class Small:
    """One small Gantt: a row of ``compared_runs.tsv`` and its jobs, earliest start first."""

    run: Row
    jobs: list[Job]


def jobs_of(tables: Compared) -> list[Small]:
    """The jobs of every run that has any, runs by condition and repetition."""
    phases: dict[tuple[str, str], dict[str, list[Row]]] = {}
    for row in tables.participants:
        phases.setdefault(run_key(row), {}).setdefault(row["participant"], []).append(row)
    return [
        Small(run, sorted(map(job_of, phases[run_key(run)].values()), key=lambda job: (job.start_s, job.name)))
        for run in sorted(tables.runs, key=order_of)
        if run_key(run) in phases
    ]


def job_of(phases: Sequence[Row]) -> Job:
    """A participant job from its rows of ``compared_participants.tsv``."""
    rows = {row["phase"]: row for row in phases}
    segments = [Segment(name, rows[name]["start_s"], rows[name]["end_s"]) for name in PHASE_COLOURS if name in rows]
    start_s, end_s = min(row["start_s"] for row in phases), max(row["end_s"] for row in phases)
    return Job(phases[0]["participant"], start_s, end_s, segments)


def order_of(run: Row) -> tuple[object, ...]:
    """Runs side by side that differ in little."""
    condition = Condition.of(run)
    about = (condition.origin, condition.tool, condition.placement, condition.parallelism, condition.cache)
    return (*about, run["repetition"] or 0, run["run"])


def chosen(small_gantts: Sequence[Small]) -> tuple[list[Small], str]:
    """What is drawn, and a sentence about what is not; empty if all is."""
    if len(small_gantts) <= MOST_RUNS:
        return list(small_gantts), ""
    groups: dict[tuple[object, bool], list[Small]] = {}
    for small in small_gantts:
        groups.setdefault((Condition.of(small.run), small.run["valid"] == "valid"), []).append(small)
    middle = [
        sorted(members, key=lambda small: (small.run["makespan_s"] or 0.0, small.run["run"]))[(len(members) - 1) // 2]
        for members in groups.values()
    ]
    text = f"Of {len(small_gantts):,} runs, the one of middle makespan of each condition is drawn"
    if len(middle) > MOST_PANELS:
        text += f", of the first {MOST_PANELS} of {len(middle):,} conditions"
    return middle[:MOST_PANELS], f"{text}. "


def finding(tables: Compared) -> Finding:
    """How many of the jobs asked for ran at a time."""
    found = [small.run for small in jobs_of(tables)]
    if not found:
        return Finding("No participant finished", shown=False)
    known = [run for run in found if run["parallelism"] and run["mean_parallelism"] is not None]
    if not known:
        return Finding(f"{counted(len(found), 'run')}; how many jobs were to run at once is not known")
    ordered = sorted(known, key=lambda run: run["mean_parallelism"] / run["parallelism"])
    low, high = (percent(run["mean_parallelism"] / run["parallelism"]) for run in (ordered[0], ordered[-1]))
    if low == high:
        return Finding(f"On average, {low} of the jobs asked for ran at a time")
    name = Names(Condition.of(run) for run in found).of(Condition.of(ordered[0]))
    return Finding(f"On average, {low} to {high} of the jobs asked for ran at a time; fewest with {name}")


def draw(tables: Compared, stem: Path) -> None:
    """Draw a small Gantt per run, valid or not; write SVG, PNG and TSV."""
    shown, left = chosen(jobs_of(tables))
    charts = charts_of(shown)
    write_figure(
        stem,
        finding(tables),
        table(shown, charts),
        lambda: draw_charts(charts, PHASE_COLOURS, "first start", COLUMNS),
        note(shown, left),
    )


def note(shown: Sequence[Small], left: str) -> str:
    """How to read it, and what is not drawn."""
    text = f"{left}A lane holds jobs that ran one after the other; runs of one origin and tool share a scale."
    if any(small.run["valid"] != "valid" for small in shown):
        text += " Titles in colour: not valid, not compared."
    return text


def charts_of(shown: Sequence[Small]) -> list[Chart]:
    """A chart of each run; runs of one origin and tool share a scale."""
    names = Names(Condition.of(small.run) for small in shown)
    charts = [
        Chart(title(small.run, names), pack(small.jobs), colour=BLACK if small.run["valid"] == "valid" else VERMILION)
        for small in shown
    ]
    scales = [(small.run["origin"], small.run["tool"]) for small in shown]
    longest_s = {
        scale: max(chart.end_s for chart, own in zip(charts, scales, strict=True) if own == scale)
        for scale in set(scales)
    }
    return [replace(chart, length_s=longest_s[scale]) for chart, scale in zip(charts, scales, strict=True)]


def title(run: Row, names: Names) -> str:
    """Condition and repetition, makespan, and how many ran at a time; or why the run is not valid."""
    condition = Condition.of(run)
    first = ", ".join([shorten(condition.placement, 28), *(shorten(text, 18) for text in names.fields_of(condition))])
    number = f"no. {run['repetition']}: " if run["repetition"] is not None else ""
    if run["valid"] != "valid":
        return f"{first}\n{number}{shorten(run['valid'], 42)}"
    mean = f"mean {mean_count(run['mean_parallelism'])} of {at_once(condition.parallelism)}"
    return f"{first}\n{number}{seconds(run['makespan_s'])}, {mean}"


def table(shown: Sequence[Small], charts: Sequence[Chart]) -> list[Row]:
    """The numbers behind the figure: one row per phase drawn, s since the run's first start."""
    return [
        {**condition_cells(Condition.of(small.run)), "run": small.run["run"], **row}
        for small, chart in zip(shown, charts, strict=True)
        for row in chart.rows()
    ]
