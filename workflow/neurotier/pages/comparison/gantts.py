"""The figure ``gantts``: a small Gantt per run, all runs of an origin on one scale."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from neurotier.core.quantities import counted, mean_count, percent, seconds, shorten
from neurotier.core.tables import Row
from neurotier.pages.comparison.names import Names, condition_cells
from neurotier.pages.comparison.statistics import run_key
from neurotier.pages.kit.chart import BLACK, VERMILION
from neurotier.pages.kit.findings import Finding, at_once, between
from neurotier.pages.kit.gantt import Chart, Job, Segment, draw_charts, pack
from neurotier.pages.kit.style import PHASE_COLOURS, write_figure
from neurotier.run.compared import Compared
from neurotier.run.conditions import Condition

MOST_RUNS = 24
"""With more runs, one of each condition is drawn: the one in the middle."""

MOST_PANELS = 48
COLUMNS = 3


Small = tuple[Row, list[Job]]
"""One small Gantt: a row of ``compared_runs.tsv`` and its jobs, earliest start first."""


def jobs_of(tables: Compared) -> list[Small]:
    """The jobs of every run that has any, runs by condition and repetition."""
    phases: dict[tuple[str, str], dict[str, list[Row]]] = {}
    for row in tables.participants:
        phases.setdefault(run_key(row), {}).setdefault(row["participant"], []).append(row)
    found = []
    for run in sorted(tables.runs, key=order_of):
        jobs = map(job_of, phases.get(run_key(run), {}).values())
        found.append((run, sorted(jobs, key=lambda job: (job.start_s, job.name))))
    return [(run, jobs) for run, jobs in found if jobs]


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
    for run, jobs in small_gantts:
        groups.setdefault((Condition.of(run), run["valid"] == "valid"), []).append((run, jobs))
    middle = [
        sorted(members, key=lambda small: (small[0]["makespan_s"] or 0.0, small[0]["run"]))[(len(members) - 1) // 2]
        for members in groups.values()
    ]
    text = f"Of {len(small_gantts):,} runs, the one of middle makespan of each condition is drawn"
    if len(middle) > MOST_PANELS:
        text += f", of the first {MOST_PANELS} of {len(middle):,} conditions"
    return middle[:MOST_PANELS], f"{text}. "


def finding(tables: Compared) -> Finding:
    """How many of the jobs asked for ran at a time."""
    found = [run for run, _ in jobs_of(tables)]
    if not found:
        return Finding("No participant finished", shown=False)
    known = [run for run in found if run["parallelism"] and run["mean_parallelism"] is not None]
    if not known:
        return Finding(f"{counted(len(found), 'run')}; how many jobs were to run at once is not known")
    shares = [run["mean_parallelism"] / run["parallelism"] for run in known]
    text = f"On average, {between(shares, percent)} of the jobs asked for ran at a time"
    if percent(min(shares)) == percent(max(shares)):
        return Finding(text)
    fewest = Condition.of(known[shares.index(min(shares))])
    return Finding(f"{text}; fewest with {Names(map(Condition.of, found)).of(fewest)}")


def draw(tables: Compared, stem: Path) -> None:
    """Draw a small Gantt per run, valid or not; write SVG, PNG and TSV."""
    shown, left = chosen(jobs_of(tables))
    charts = charts_of(shown)
    note = f"{left}A lane holds jobs that ran one after the other; runs of one origin and tool share a scale."
    if any(run["valid"] != "valid" for run, _ in shown):
        note += " Titles in colour: not valid, not compared."
    rows = [
        {**condition_cells(Condition.of(run)), "run": run["run"], **row}
        for (run, _), chart in zip(shown, charts, strict=True)
        for row in chart.rows()
    ]
    write_figure(stem, finding(tables), rows, lambda: draw_charts(charts, PHASE_COLOURS, "first start", COLUMNS), note)


def charts_of(shown: Sequence[Small]) -> list[Chart]:
    """A chart of each run; runs of one origin and tool share a scale."""
    names, longest_s, charts = Names(Condition.of(run) for run, _ in shown), dict[tuple[str, str], float](), []
    for run, jobs in shown:
        charts.append(Chart(title(run, names), pack(jobs), colour=BLACK if run["valid"] == "valid" else VERMILION))
        scale = run["origin"], run["tool"]
        longest_s[scale] = max(longest_s.get(scale, 0.0), charts[-1].end_s)
    scales = [longest_s[run["origin"], run["tool"]] for run, _ in shown]
    return [replace(chart, length_s=length_s) for chart, length_s in zip(charts, scales, strict=True)]


def title(run: Row, names: Names) -> str:
    """Condition and repetition, makespan, and how many ran at a time; or why the run is not valid."""
    condition = Condition.of(run)
    first = ", ".join([shorten(condition.placement, 28), *(shorten(text, 18) for text in names.fields_of(condition))])
    number = f"no. {run['repetition']}: " if run["repetition"] is not None else ""
    if run["valid"] != "valid":
        return f"{first}\n{number}{shorten(run['valid'], 42)}"
    mean = f"mean {mean_count(run['mean_parallelism'])} of {at_once(condition.parallelism)}"
    return f"{first}\n{number}{seconds(run['makespan_s'])}, {mean}"
