"""The figure ``cpu_io``: CPU and I/O time per participant, and where it went by phase."""

from __future__ import annotations

import statistics
from collections.abc import Sequence
from pathlib import Path

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import MaxNLocator, StrMethodFormatter

from neurotier.report.findings import (
    NONE_FINISHED,
    ParticipantTime,
    cpu_io_finding,
    participant_times,
    present_phases,
)
from neurotier.report.quantities import counted, percent, seconds, share_of, shorten
from neurotier.report.style import (
    CPU_COLOUR,
    GREY,
    IO_COLOUR,
    READABLE_LANES,
    WIDTH_IN,
    empty_figure,
    house_style,
    save_figure,
    state,
)
from neurotier.tables import Row

BAR_IN = 0.22


def draw_cpu_io(profile: Sequence[Row], stem: Path) -> None:
    """Draw CPU and I/O time of every participant in ``profile.tsv``, of whichever run; write SVG, PNG and TSV.

    Up to 40 participants get a bar each; more are ranked into one filled profile with the quartiles marked.
    """
    times = participant_times(profile)
    with house_style():
        figure = draw(times) if times else empty_figure(NONE_FINISHED)
        save_figure(figure, stem, table(times))


def draw(times: Sequence[ParticipantTime]) -> Figure:
    """The figure of at least one participant."""
    phases = present_phases(times)
    many = len(times) > READABLE_LANES
    upper = 3.4 if many else BAR_IN * len(times) + 0.7
    lower = BAR_IN * len(phases) + 0.7
    figure = Figure(figsize=(WIDTH_IN, upper + lower + 1.1))
    above, below = figure.subplots(2, 1, height_ratios=[upper, lower])
    draw_profile(above, times) if many else draw_bars(above, times)
    above.legend(loc="lower right", bbox_to_anchor=(1, 1), ncols=2, borderaxespad=0.2)
    draw_phases(below, times, phases)
    state(figure, cpu_io_finding(times), note(times))
    return figure


def note(times: Sequence[ParticipantTime]) -> str:
    """How I/O time is meant, and what was clipped."""
    text = "I/O time = wall - CPU, as published; it contains waiting for a core."
    below_zero = sum(time.io_s < 0 for time in times)
    if below_zero:
        text += (
            f" For {counted(below_zero, 'participant')} CPU exceeds wall time (several cores at once);"
            " I/O time below 0 is drawn as 0."
        )
    return text


def stacked(axes: Axes, names: Sequence[str], cpu_s: Sequence[float], io_s: Sequence[float]) -> None:
    """Horizontal bars, the first name on top."""
    drawn_io = [max(0.0, value) for value in io_s]
    lanes = range(len(names))
    axes.barh(lanes, cpu_s, height=0.72, color=CPU_COLOUR, label="CPU time")
    axes.barh(lanes, drawn_io, left=cpu_s, height=0.72, color=IO_COLOUR, label="I/O time")
    axes.set_yticks(lanes, names)
    axes.set_ylim(len(names) - 0.4, -0.6)
    axes.tick_params(axis="y", length=0)
    axes.grid(visible=False, axis="y")
    axes.xaxis.set_major_formatter(StrMethodFormatter("{x:,g}"))


def draw_bars(axes: Axes, times: Sequence[ParticipantTime]) -> None:
    """One bar per participant, slowest first, its wall time at the end."""
    names = [shorten(time.participant, 42) for time in times]
    stacked(axes, names, [time.cpu_s for time in times], [time.io_s for time in times])
    for lane, time in enumerate(times):
        end = time.cpu_s + max(0.0, time.io_s)
        axes.annotate(seconds(time.wall_s), (end, lane), (4, 0), textcoords="offset points", va="center", fontsize=8)
    axes.set_xlim(0, 1.12 * max(max(time.wall_s, time.cpu_s) for time in times) or 1)
    axes.set_xlabel("Time per participant (s); the figure at the bar's end is wall time")


def draw_profile(axes: Axes, times: Sequence[ParticipantTime]) -> None:
    """All participants ranked by wall time, as two stacked areas; quartiles as lines."""
    rank = np.arange(len(times) + 1)
    cpu = np.array([time.cpu_s for time in times])
    io = np.array([max(0.0, time.io_s) for time in times])
    # one step per participant: areas between ranks would show times that nobody had
    cpu_steps, top_steps = (np.append(values, values[-1]) for values in (cpu, cpu + io))
    axes.fill_between(rank, 0, cpu_steps, step="post", color=CPU_COLOUR, linewidth=0, label="CPU time")
    axes.fill_between(rank, cpu_steps, top_steps, step="post", color=IO_COLOUR, linewidth=0, label="I/O time")
    top = 1.08 * float((cpu + io).max()) or 1
    axes.set(xlim=(0, len(times)), ylim=(0, top), ylabel="Time per participant (s)")
    axes.set_xlabel(f"{counted(len(times), 'participant')}, ranked by wall time, slowest first")
    axes.grid(visible=False, axis="x")
    axes.yaxis.set_major_formatter(StrMethodFormatter("{x:,g}"))
    axes.xaxis.set_major_locator(MaxNLocator(integer=True, steps=[1, 2, 5, 10]))
    for share, quartile in zip((0.25, 0.5, 0.75), reversed(quartiles(times)), strict=True):
        label = "median" if share == 0.5 else "slowest quarter above" if share == 0.25 else "fastest quarter below"
        at = share * len(times)
        # from the curve upwards: over the dark area the line would be lost
        axes.vlines(at, 0, top, color=GREY, linewidth=0.8, linestyle=(0, (4, 3)))
        text = f"{label}\n{seconds(quartile)}"
        axes.annotate(text, (at, top), (4, -2), textcoords="offset points", va="top", fontsize=8)


def quartiles(times: Sequence[ParticipantTime]) -> list[float]:
    """Lower quartile, median and upper quartile of the wall times, s."""
    return statistics.quantiles((time.wall_s for time in times), n=4, method="inclusive")


def draw_phases(axes: Axes, times: Sequence[ParticipantTime], phases: Sequence[str]) -> None:
    """Total CPU and I/O time by phase, with each phase's share of all wall time."""
    cpu = [sum(time.phase(phase, "cpu_s") for time in times) for phase in phases]
    io = [sum(time.phase(phase, "io_s") for time in times) for phase in phases]
    wall = [sum(time.phase(phase, "wall_s") for time in times) for phase in phases]
    stacked(axes, list(phases), cpu, io)
    for lane, (cpu_s, io_s, wall_s) in enumerate(zip(cpu, io, wall, strict=True)):
        text = f"{percent(share_of(wall_s, sum(wall)))} ({seconds(wall_s)})"
        end = (cpu_s + max(0.0, io_s), lane)
        axes.annotate(text, end, (4, 0), textcoords="offset points", va="center", fontsize=8)
    axes.set_xlim(0, 1.22 * max(c + max(0.0, i) for c, i in zip(cpu, io, strict=True)) or 1)
    axes.set_xlabel("Sum over participants, by phase (s); in per cent of all wall time")


def table(times: Sequence[ParticipantTime]) -> list[Row]:
    """The numbers behind the figure: one row per participant, slowest first, unclipped."""
    phases = present_phases(times)
    return [
        {
            "participant": time.participant,
            "run": time.run,
            **{column: getattr(time, column) for column in ("wall_s", "cpu_s", "io_s")},
            **{
                f"{phase}_{column}": time.phase(phase, column)
                for phase in phases
                for column in ("wall_s", "cpu_s", "io_s")
            },
        }
        for time in times
    ]
