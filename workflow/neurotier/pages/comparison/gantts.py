"""The figure ``gantts``: a small Gantt per run, all runs of an origin on one scale."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.patches import Patch
from matplotlib.ticker import MaxNLocator, StrMethodFormatter

from neurotier.core.quantities import counted, mean_count, percent, seconds, shorten
from neurotier.core.tables import Row
from neurotier.pages.comparison.names import Names, condition_cells
from neurotier.pages.comparison.statistics import condition_of
from neurotier.pages.kit.findings import Finding, at_once
from neurotier.pages.kit.lanes import LEGEND_IN, draw_legend
from neurotier.pages.kit.style import (
    BLACK,
    PHASE_COLOURS,
    VERMILION,
    WIDTH_IN,
    empty_figure,
    house_style,
    save_figure,
    state,
)
from neurotier.pages.report.findings import NONE_FINISHED, ParticipantTime, participant_times, present_phases, slots
from neurotier.pages.report.gantt import add_jobs

MOST_RUNS = 24
"""With more runs, one of each condition is drawn: the one in the middle."""

MOST_PANELS = 48
COLUMNS = 3
PANEL_IN = 1.75
LANES_IN = 1.05
VECTOR_JOBS = 400
"""With more jobs in the whole figure, bars are pixels: an SVG of thousands of them is large and slow."""


@dataclass(frozen=True)
class Small:
    """One small Gantt: a row of ``compared_runs.tsv`` and its jobs, earliest start first."""

    run: Row
    times: list[ParticipantTime]


def jobs_of(runs: Sequence[Row], participants: Sequence[Row]) -> list[Small]:
    """The jobs of every run that has any, runs by condition and repetition."""
    rows: dict[tuple[str, str], list[Row]] = {}
    for row in participants:
        rows.setdefault((row["origin"], row["run"]), []).append(row)
    found = []
    for run in sorted(runs, key=order_of):
        times = participant_times(rows.get((run["origin"], run["run"]), []))
        times.sort(key=lambda time: (time.start_s, time.participant))
        found += [Small(run, times)] if times else []
    return found


def order_of(run: Row) -> tuple[object, ...]:
    """Runs side by side that differ in little."""
    condition = condition_of(run)
    about = (condition.origin, condition.tool, condition.placement, condition.parallelism, condition.cache)
    return (*about, run["repetition"] or 0, run["run"])


def chosen(found: Sequence[Small]) -> tuple[list[Small], str]:
    """What is drawn, and a sentence about what is not; empty if all is."""
    if len(found) <= MOST_RUNS:
        return list(found), ""
    groups: dict[tuple[object, bool], list[Small]] = {}
    for small in found:
        groups.setdefault((condition_of(small.run), small.run["valid"] == "valid"), []).append(small)
    middle = [
        sorted(members, key=lambda small: (small.run["makespan_s"] or 0.0, small.run["run"]))[(len(members) - 1) // 2]
        for members in groups.values()
    ]
    text = f"Of {len(found):,} runs, the one of middle makespan of each condition is drawn"
    if len(middle) > MOST_PANELS:
        text += f", of the first {MOST_PANELS} of {len(middle):,} conditions"
    return middle[:MOST_PANELS], f"{text}. "


def gantts_finding(runs: Sequence[Row], participants: Sequence[Row]) -> Finding:
    """How many of the jobs asked for ran at a time."""
    found = [small.run for small in jobs_of(runs, participants)]
    if not found:
        return Finding(f"{NONE_FINISHED[:1].upper()}{NONE_FINISHED[1:]}", shown=False)
    known = [run for run in found if run["parallelism"] and run["mean_parallelism"] is not None]
    if not known:
        return Finding(f"{counted(len(found), 'run')}; how many jobs were to run at once is not known")
    ordered = sorted(known, key=lambda run: run["mean_parallelism"] / run["parallelism"])
    low, high = (percent(run["mean_parallelism"] / run["parallelism"]) for run in (ordered[0], ordered[-1]))
    if low == high:
        return Finding(f"On average, {low} of the jobs asked for ran at a time")
    name = Names(condition_of(run) for run in found).of(condition_of(ordered[0]))
    return Finding(f"On average, {low} to {high} of the jobs asked for ran at a time; fewest with {name}")


def draw_gantts(runs: Sequence[Row], participants: Sequence[Row], stem: Path) -> None:
    """Draw a small Gantt per run, valid or not; write SVG, PNG and TSV."""
    found, finding = jobs_of(runs, participants), gantts_finding(runs, participants)
    shown, left = chosen(found)
    with house_style():
        if finding.shown:
            figure = draw(shown)
            state(figure, finding.sentence, note(shown, left))
        else:
            figure = empty_figure(finding.sentence)
        save_figure(figure, stem, table(shown))


def note(shown: Sequence[Small], left: str) -> str:
    """How to read it, and what is not drawn."""
    text = f"{left}A lane holds jobs that ran one after the other; runs of one origin and tool share a scale."
    if any(small.run["valid"] != "valid" for small in shown):
        text += " Titles in colour: not valid, not compared."
    return text


def draw(shown: Sequence[Small]) -> Figure:
    """The figure of at least one run."""
    lines = -(-len(shown) // COLUMNS)
    figure = Figure(figsize=(WIDTH_IN, PANEL_IN * lines + LEGEND_IN + 1.0))
    cells = figure.add_gridspec(lines + 1, COLUMNS, height_ratios=[LEGEND_IN] + [PANEL_IN] * lines)
    grid = [figure.add_subplot(cells[1 + place // COLUMNS, place % COLUMNS]) for place in range(len(shown))]
    names = Names(condition_of(small.run) for small in shown)
    longest: dict[tuple[str, str], float] = {}
    for small in shown:
        longest[scale_of(small)] = max(longest.get(scale_of(small), 0.0), length_s(small))
    rasterized = sum(len(small.times) for small in shown) > VECTOR_JOBS
    for axes, small in zip(grid, shown, strict=True):
        draw_small(axes, small, longest[scale_of(small)], rasterized)
        title(axes, small, names)
    for axes in grid[-COLUMNS:]:  # the lowest of each column
        axes.set_xlabel("Time since the first start (s)", fontsize=8)
    phases = present_phases(time for small in shown for time in small.times)
    legend = figure.add_subplot(cells[0, :])
    draw_legend(legend, [Patch(color=PHASE_COLOURS[phase], label=phase) for phase in phases])
    return figure


def scale_of(small: Small) -> tuple[str, str]:
    """Runs that agree in this share a scale."""
    return small.run["origin"], small.run["tool"]


def length_s(small: Small) -> float:
    """Time from the first start to the last end, s."""
    return max(time.end_s for time in small.times) - small.times[0].start_s


def draw_small(axes: Axes, small: Small, longest_s: float, rasterized: bool) -> None:
    """The bars of one run."""
    lanes = slots(small.times)
    count = max(lanes) + 1
    add_jobs(axes, small.times, lanes, min(8.0, 0.85 * LANES_IN * 72 / count), rasterized)
    axes.set_xlim(0, 1.01 * longest_s or 1)
    axes.set_ylim(count - 0.4, -0.6)
    axes.set_yticks([])
    axes.tick_params(labelsize=7)
    axes.xaxis.set_major_locator(MaxNLocator(nbins=5, steps=[1, 2, 5, 10]))
    axes.xaxis.set_major_formatter(StrMethodFormatter("{x:,g}"))
    axes.grid(visible=False, axis="y")
    axes.set_ylabel(counted(count, "lane"), fontsize=7)


def title(axes: Axes, small: Small, names: Names) -> None:
    """Condition and repetition, makespan, and how many ran at a time; or why the run is not valid."""
    run, condition = small.run, condition_of(small.run)
    first = ", ".join([shorten(condition.placement, 28), *(shorten(text, 18) for text in names.fields_of(condition))])
    number = f"no. {run['repetition']}: " if run["repetition"] is not None else ""
    mean = f"mean {mean_count(run['mean_parallelism'])} of {at_once(condition.parallelism)}"
    lines = [first, f"{number}{seconds(run['makespan_s'])}, {mean}"]
    valid = run["valid"] == "valid"
    if not valid:
        lines[1] = f"{number}{shorten(run['valid'], 42)}"
    axes.set_title("\n".join(lines), fontsize=7.5, color=BLACK if valid else VERMILION)


def table(shown: Sequence[Small]) -> list[Row]:
    """The numbers behind the figure: one row per phase drawn, s since the run's first start."""
    rows = []
    for small in shown:
        origin_s = small.times[0].start_s
        for lane, time in zip(slots(small.times), small.times, strict=True):
            rows += [
                {
                    **condition_cells(condition_of(small.run)),
                    "run": small.run["run"],
                    "lane": lane,
                    "participant": time.participant,
                    "phase": phase,
                    "start_s": time.phase(phase, "start_s") - origin_s,
                    "end_s": time.phase(phase, "end_s") - origin_s,
                }
                for phase in present_phases([time])
            ]
    return rows
