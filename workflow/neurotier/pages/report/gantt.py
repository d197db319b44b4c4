"""The figure ``gantt``: who ran when in the last run, by phase, and how many at a time."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from matplotlib.axes import Axes
from matplotlib.collections import LineCollection
from matplotlib.figure import Figure
from matplotlib.patches import Patch
from matplotlib.ticker import MaxNLocator, StrMethodFormatter

from neurotier.core.quantities import counted, mean_count, shorten
from neurotier.core.tables import Row
from neurotier.pages.kit.style import (
    BLACK,
    BLUE,
    GREY,
    PHASE_COLOURS,
    READABLE_LANES,
    WIDTH_IN,
    empty_figure,
    house_style,
    save_figure,
    state,
)
from neurotier.pages.report.findings import (
    NONE_FINISHED,
    ParticipantTime,
    gantt_finding,
    last_run,
    participant_times,
    present_phases,
    running_jobs,
    slots,
    summarise,
)

LANE_IN = 0.22
MANY_LANES_IN = 4.6


def draw_gantt(profile: Sequence[Row], runs: Sequence[Row], stem: Path) -> None:
    """Draw the participant jobs of the last run; write SVG, PNG and TSV.

    Participants of earlier runs, which a resumed run keeps, have no place on this run's clock and are left out.
    """
    run = last_run(profile, runs)
    times = participant_times(row for row in profile if row["run"] == run)
    times.sort(key=lambda time: (time.start_s, time.participant))
    with house_style():
        figure = draw(times, next((row for row in runs if row["run"] == run), None)) if times else nobody(run)
        save_figure(figure, stem, table(times))


def nobody(run: str | None) -> Figure:
    """The figure of a run without participant jobs."""
    return empty_figure(f"{NONE_FINISHED} in run {run}" if run else NONE_FINISHED)


def draw(times: Sequence[ParticipantTime], run: Row | None) -> Figure:
    """The figure of at least one participant job; ``run`` is its row of ``runs.tsv``, if there is one."""
    summary = run or summarise(times)
    many = len(times) > READABLE_LANES
    lanes = MANY_LANES_IN if many else LANE_IN * len(times) + 0.7
    figure = Figure(figsize=(WIDTH_IN, 1.4 + lanes + 0.9))
    above, below = figure.subplots(2, 1, sharex=True, height_ratios=[1.4, lanes])
    draw_running(above, times, summary)
    draw_lanes(below, times, many)
    state(figure, gantt_finding(summary), f"Run {times[0].run}; failed attempts are not drawn.")
    return figure


def draw_running(axes: Axes, times: Sequence[ParticipantTime], summary: Row) -> None:
    """Number of participant jobs running, and its mean over the makespan."""
    at, count = running_jobs(times)
    origin = at[0]
    axes.fill_between([moment - origin for moment in at], count, step="post", color=BLUE, alpha=0.35, linewidth=0)
    axes.axhline(summary["mean_parallelism"], color=BLACK, linewidth=1, linestyle=(0, (4, 3)))
    axes.annotate(
        f"mean {mean_count(summary['mean_parallelism'])}",
        (1, summary["mean_parallelism"]),
        (4, 0),
        xycoords=("axes fraction", "data"),
        textcoords="offset points",
        va="center",
        fontsize=8,
    )
    axes.set_ylim(0, 1.1 * max(1, *count))
    axes.set_ylabel("Participant jobs\nrunning")
    axes.yaxis.set_major_locator(MaxNLocator(nbins=4, integer=True, min_n_ticks=1))
    axes.tick_params(labelbottom=False)


def draw_lanes(axes: Axes, times: Sequence[ParticipantTime], many: bool) -> None:
    """The phases of every job in their colours, on one lane per participant, earliest start on top.

    Of many participants, one lane holds those that ran one after the other: a lane each would be too thin to see.
    """
    origin = times[0].start_s
    phases = present_phases(times)
    lanes = slots(times) if many else list(range(len(times)))
    count = max(lanes) + 1
    lane_points = 0.8 * (MANY_LANES_IN - 0.9) * 72 / count if many else 0.7 * LANE_IN * 72
    add_jobs(axes, times, lanes, lane_points)
    axes.set_xlim(0, max(time.end_s for time in times) - origin or 1)
    axes.set_ylim(count - 0.4, -0.6)
    axes.set_xlabel("Time since the first start (s)")
    axes.xaxis.set_major_formatter(StrMethodFormatter("{x:,g}"))
    axes.grid(visible=False, axis="y")
    if many:
        axes.set_yticks([])
        axes.set_ylabel(f"{counted(count, 'lane')}, one job after the other in each")
    else:
        axes.set_yticks(lanes, [shorten(time.participant, 42) for time in times])
        axes.tick_params(axis="y", length=0)
    handles = [Patch(color=PHASE_COLOURS[phase], label=phase) for phase in phases]
    axes.legend(
        handles=handles, ncols=len(phases), fontsize=8, loc="lower right", bbox_to_anchor=(1, 1), borderaxespad=0.2
    )


def add_jobs(
    axes: Axes, times: Sequence[ParticipantTime], lanes: Sequence[int], lane_points: float, rasterized: bool = False
) -> None:
    """The phases of every job in their colours, and a thin line between them.

    Parameters
    ----------
    axes
        Where to; its limits are left alone.
    times, lanes
        Jobs, earliest start first, and the lane of each.
    lane_points
        Height of a bar, points.
    rasterized
        Draw them as pixels even in an SVG: thousands of jobs are megabytes of paths.
    """
    origin = times[0].start_s
    jobs = list(zip(lanes, times, strict=True))
    between = [[(time.start_s - origin, lane), (time.end_s - origin, lane)] for lane, time in jobs]
    lines = [LineCollection(between, colors=GREY, linewidths=min(0.8, lane_points))]
    for phase in present_phases(times):
        segments = [
            [(time.phase(phase, "start_s") - origin, lane), (time.phase(phase, "end_s") - origin, lane)]
            for lane, time in jobs
            if phase in time.phases
        ]
        colour = PHASE_COLOURS[phase]
        lines.append(LineCollection(segments, colors=colour, linewidths=lane_points, capstyle="butt"))
    for line in lines:
        line.set_rasterized(rasterized)
        axes.add_collection(line)


def table(times: Sequence[ParticipantTime]) -> list[Row]:
    """The numbers behind the figure: one row per phase, s since the run's first start."""
    if not times:
        return []
    origin = min(time.start_s for time in times)
    return [
        {
            "run": time.run,
            "participant": time.participant,
            "phase": phase,
            "start_s": time.phase(phase, "start_s") - origin,
            "end_s": time.phase(phase, "end_s") - origin,
        }
        for time in times
        for phase in present_phases([time])
    ]
