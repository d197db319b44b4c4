"""The figures ``gantt_*``: when each block was read, incremented and written (the paper's Figures 2 and 4)."""

from __future__ import annotations

import heapq
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from matplotlib.axes import Axes
from matplotlib.collections import LineCollection
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.patches import Patch
from matplotlib.ticker import MaxNLocator, StrMethodFormatter

from neurotier.comparison.panels import LEGEND_IN, draw_legend
from neurotier.published.bigbrain import HEADER, INCREMENT, WRITE, BlockRun, Phase
from neurotier.published.conditions import ENGINES, Condition, cells
from neurotier.published.phase_sums import means
from neurotier.report.quantities import counted, mean_count, seconds
from neurotier.report.style import BLACK, GREY, LIGHT_GREY, SKY, VERMILION, WIDTH_IN, house_style, save_figure, state
from neurotier.tables import Row

Runs = Mapping[Condition, Sequence[BlockRun]]

COLOURS = {HEADER: GREY, INCREMENT: SKY, WRITE: VERMILION}
COLUMNS = 2
PANEL_IN, LANES_IN = 2.3, 1.6
VECTOR_BLOCKS = 400
"""With more blocks in the whole figure, bars are pixels: an SVG of thousands of them is large and slow."""

NOTE = (
    "Of each condition the repetition of middle makespan. A lane holds blocks that came one after the other; every"
    " panel has a clock of its own, in s since its first phase."
)


def middle(members: Sequence[BlockRun]) -> BlockRun:
    """The repetition of middle makespan; the shorter of two."""
    return sorted(members, key=lambda run: run.makespan_s)[(len(members) - 1) // 2]


def gantt_finding(runs: Runs) -> str:
    """What takes blocks the longest, and where; modes of a device are told only if they differ."""
    longest = {}
    for condition, members in runs.items():
        sums = means(members)
        longest[condition] = max(sums, key=lambda phase: sums[phase])
    told: dict[str, list[str]] = {}
    for condition, phase in longest.items():
        alike = {longest[one] for one in longest if (one.device, one.engine) == (condition.device, condition.engine)}
        name = condition.device if len(alike) == 1 else condition.place.replace(", ", " in ")
        engine = f" ({ENGINES[condition.engine]})" if len({one.engine for one in runs}) > 1 else ""
        told.setdefault(phase, []).append(f"{name}{engine}")
    verbs = {WRITE: "writing", INCREMENT: "reading and incrementing", HEADER: "loading headers"}
    first, *others = (phase for phase in verbs if phase in told)
    places = {phase: ", ".join(dict.fromkeys(names)) for phase, names in told.items()}
    sentence = f"{verbs[first].capitalize()} is the longest phase on {places[first]}"
    return "; ".join([sentence, *(f"{verbs[phase]} on {places[phase]}" for phase in others)])


def draw_gantts(runs: Runs, stem: Path) -> None:
    """Draw a run of each of at least one condition; write SVG, PNG and TSV."""
    shown = {condition: middle(members) for condition, members in runs.items()}
    with house_style():
        figure = draw(shown)
        state(figure, gantt_finding(runs), NOTE)
        save_figure(figure, stem, table(shown))


def draw(shown: Mapping[Condition, BlockRun]) -> Figure:
    """The figure of at least one run."""
    columns = min(COLUMNS, len(shown))
    lines = -(-len(shown) // columns)
    figure = Figure(figsize=(WIDTH_IN, PANEL_IN * lines + LEGEND_IN + 1.1))
    cells_of = figure.add_gridspec(lines + 1, columns, height_ratios=[LEGEND_IN] + [PANEL_IN] * lines)
    rasterized = sum(len(run.blocks) for run in shown.values()) > VECTOR_BLOCKS
    for place, (condition, run) in enumerate(shown.items()):
        axes = figure.add_subplot(cells_of[1 + place // columns, place % columns])
        draw_run(axes, run, rasterized)
        engine = f"{ENGINES[condition.engine]}, " if len({one.engine for one in shown}) > 1 else ""
        first = f"{engine}{condition.place}"
        told = f"{seconds(run.makespan_s)}, {mean_count(run.mean_parallelism)} of {condition.processes} busy"
        left = len(run.incomplete_blocks)
        told += f"; {counted(left, 'block')} not written" if left else ""
        axes.set_title(f"{first}\n{told}", fontsize=8.5)
        if place >= len(shown) - columns:
            axes.set_xlabel("Time since the first phase (s)", fontsize=8)
    handles: list[Patch | Line2D] = [Patch(color=colour, label=phase) for phase, colour in COLOURS.items()]
    if any(run.incomplete_blocks for run in shown.values()):
        cross: dict[str, Any] = {"marker": "x", "color": BLACK, "markersize": 4, "markeredgewidth": 1.0}
        handles.append(Line2D([], [], linestyle="", label="not written", **cross))
    draw_legend(figure.add_subplot(cells_of[0, :]), handles)
    return figure


def bars(run: BlockRun) -> list[tuple[int, list[Phase]]]:
    """The phases of each block and its lane: the lowest that is free at its first phase."""
    phases: dict[str, list[Phase]] = {}
    for phase in run.work:
        phases.setdefault(phase.block, []).append(phase)
    times = sorted(
        (min(phase.start_s for phase in members), max(phase.end_s for phase in members), block)
        for block, members in phases.items()
    )
    found, busy, free = [], list[tuple[float, int]](), list[int]()
    for start_s, end_s, block in times:
        while busy and busy[0][0] <= start_s:
            heapq.heappush(free, heapq.heappop(busy)[1])
        lane = heapq.heappop(free) if free else len(busy)
        heapq.heappush(busy, (end_s, lane))
        found.append((lane, phases[block]))
    return found


def draw_run(axes: Axes, run: BlockRun, rasterized: bool) -> None:
    """The bars of one run."""
    lanes = bars(run)
    origin = min(phase.start_s for phase in run.work)
    count = 1 + max(lane for lane, _ in lanes)
    width = min(8.0, 0.8 * LANES_IN * 72 / count)
    whole = [[(members[0].start_s - origin, lane), (members[-1].end_s - origin, lane)] for lane, members in lanes]
    drawn = [LineCollection(whole, colors=LIGHT_GREY, linewidths=min(0.8, width))]
    for name, colour in COLOURS.items():
        segments = [
            [(phase.start_s - origin, lane), (phase.end_s - origin, lane)]
            for lane, members in lanes
            for phase in members
            if phase.name == name
        ]
        drawn.append(LineCollection(segments, colors=colour, linewidths=width, capstyle="butt"))
    for lines in drawn:
        lines.set_rasterized(rasterized)
        axes.add_collection(lines)
    left = [(members[-1].end_s - origin, lane) for lane, members in lanes if members[0].block in run.incomplete_blocks]
    if left:
        axes.plot(*zip(*left, strict=True), linestyle="", marker="x", color=BLACK, markersize=4, markeredgewidth=1.0)
    axes.set_xlim(0, 1.01 * max(phase.end_s - origin for phase in run.work))
    axes.set_ylim(count - 0.4, -0.6)
    axes.set_yticks([])
    axes.set_ylabel(counted(count, "lane"), fontsize=8)
    axes.tick_params(labelsize=8)
    axes.xaxis.set_major_locator(MaxNLocator(nbins=6, steps=[1, 2, 5, 10]))
    axes.xaxis.set_major_formatter(StrMethodFormatter("{x:,g}"))
    axes.grid(visible=False, axis="y")


def table(shown: Mapping[Condition, BlockRun]) -> list[Row]:
    """The numbers behind the figure: one row per phase drawn, s since the run's first phase."""
    rows = []
    for condition, run in shown.items():
        origin = min(phase.start_s for phase in run.work)
        for lane, members in bars(run):
            rows += [
                {
                    **cells(condition),
                    "repetition": run.repetition,
                    "lane": lane,
                    "block": phase.block,
                    "phase": phase.name,
                    "start_s": phase.start_s - origin,
                    "end_s": phase.end_s - origin,
                }
                for phase in members
            ]
    return rows
