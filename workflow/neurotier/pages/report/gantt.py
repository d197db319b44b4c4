"""The figure ``gantt``: who ran when in the last run, by phase, and how many at a time."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from itertools import accumulate
from pathlib import Path

import numpy as np

from neurotier.core.parallelism import mean, peak
from neurotier.core.quantities import counted, mean_count, seconds, shorten
from neurotier.core.tables import Row
from neurotier.pages.kit import plot
from neurotier.pages.kit.findings import Finding
from neurotier.pages.kit.gantt import Chart, Job, Segment, draw_jobs, pack, phase_handles
from neurotier.pages.kit.style import (
    BLACK,
    BLUE,
    DRAWN_SINGLY,
    LIGHT_GREY,
    PHASE_COLOURS,
    READABLE_LANES,
    VERMILION,
    WIDTH_IN,
    write_figure,
)
from neurotier.pages.report.cluster import Cluster, Steps
from neurotier.pages.report.data import Tables
from neurotier.pages.report.times import NONE_FINISHED, ParticipantTime, present_phases

LANE_IN = 0.22
MANY_LANES_IN = 4.6
UNKNOWN_NODE = "node not known"

LABEL_IN = 0.16
"""Room that the name of a node takes; one that has less has no name."""

STEPS = 800
"""Steps of the number of jobs running, if it changes more often: more than a page has room for."""


def last_run(tables: Tables) -> str | None:
    """The run that the run table ends with; without such a table, the one that started a phase last."""
    if tables.runs:
        return str(tables.runs[-1]["run"])
    return str(max(tables.profile, key=lambda row: float(row["start_s"]))["run"]) if tables.profile else None


def cluster_of(tables: Tables) -> Cluster | None:
    """The jobs and nodes of the last run; ``None`` if it was on one machine."""
    return Cluster.of(tables.jobs, tables.times, last_run(tables))


def last_jobs(tables: Tables) -> list[Job]:
    """The participant jobs of the last run, earliest start first."""
    run = last_run(tables)
    jobs = (job_of(time) for time in tables.times if time.run == run)
    return sorted(jobs, key=lambda job: (job.start_s, job.name))


def job_of(time: ParticipantTime) -> Job:
    """A participant job with its phases."""
    rows = [time.phases[phase] for phase in present_phases([time])]
    segments = [Segment(row["phase"], row["start_s"], row["end_s"]) for row in rows]
    return Job(time.participant, time.start_s, time.end_s, segments)


def summary(tables: Tables) -> Row:
    """The row of the last run in ``runs.tsv``; where that table is missing, the same from the jobs."""
    if tables.runs:
        return dict(tables.runs[-1])
    spans = [(job.start_s, job.end_s) for job in last_jobs(tables)]
    return {
        "participants": len(spans),
        "makespan_s": max(end_s for _, end_s in spans) - min(start_s for start_s, _ in spans) if spans else None,
        "mean_parallelism": mean(spans) or float(len(spans)),
        "peak_parallelism": max(1, peak(spans)),
    }


def finding(tables: Tables) -> Finding:
    """How long the last run took, and how many participants ran at a time."""
    run, last = summary(tables), last_run(tables)
    shown = any(time.run == last for time in tables.times)
    if not run["participants"]:
        return Finding(NONE_FINISHED, shown)
    most = int(run["peak_parallelism"])
    parallel = (
        "one at a time"
        if most == 1
        else f"{mean_count(run['mean_parallelism'])} at a time on average, {most:,} at most"
    )
    done = counted(run["participants"], "participant")
    return Finding(f"Makespan {seconds(run['makespan_s'])} for {done}, {parallel}", shown)


def draw(tables: Tables, stem: Path) -> None:
    """Draw the participant jobs of the last run; write SVG, PNG and TSV.

    Participants of earlier runs, which a resumed run keeps, have no place on this run's clock and are left out.
    """
    run, jobs, cluster = last_run(tables), last_jobs(tables), cluster_of(tables)
    rows = Chart("", list(enumerate(jobs))).rows() if jobs else []
    note = f"Run {run}; failed attempts are not drawn."
    nodes = cluster.node_of if cluster else {}
    if cluster:
        note += " Granted: participants that the jobs which ran had CPUs for; asked for: with jobs that waited, too."
    write_figure(
        stem,
        finding(tables),
        (
            {"run": run, **{key: row[key] for key in ("participant", "phase", "start_s", "end_s")}}
            | ({"node": nodes.get(row["participant"])} if cluster else {})
            for row in rows
        ),
        lambda: figure_of(jobs, summary(tables)["mean_parallelism"], cluster),
        note,
    )


def figure_of(jobs: Sequence[Job], mean_parallelism: float, cluster: Cluster | None = None) -> plot.Figure:
    """The figure of at least one participant job.

    Of many participants, one lane holds those that ran one after the other: a lane each would be too thin to see. So it
    is on a cluster, where the lanes of each node stand together.
    """
    if cluster is not None:
        return figure_of_nodes(jobs, mean_parallelism, cluster)
    many = len(jobs) > READABLE_LANES
    chart = Chart("", pack(jobs) if many else list(enumerate(jobs)))
    lanes_in = MANY_LANES_IN if many else LANE_IN * len(jobs) + 0.7
    figure = plot.Figure(figsize=(WIDTH_IN, 1.4 + lanes_in + 0.9))
    above, below = figure.subplots(2, 1, sharex=True, height_ratios=[1.4, lanes_in])
    draw_running(above, jobs, mean_parallelism)
    lane_in = 0.8 * (MANY_LANES_IN - 0.9) / chart.lane_count if many else 0.7 * LANE_IN
    draw_jobs(below, chart, PHASE_COLOURS, 72 * lane_in, rasterized=len(jobs) > DRAWN_SINGLY)
    below.set_xlabel("Time since the first start (s)")
    if many:
        below.set_yticks([])
        below.set_ylabel(f"{counted(chart.lane_count, 'lane')}, one job after the other in each")
    else:
        below.set_yticks(range(len(jobs)), [shorten(job.name, 42) for job in jobs])
        below.tick_params(axis="y", length=0)
    draw_phases(below, chart)
    return figure


def draw_phases(axes: plot.Axes, chart: Chart) -> None:
    """The legend of the phases, above the chart."""
    handles = phase_handles([chart], PHASE_COLOURS)
    axes.legend(
        handles=handles, ncols=len(handles), fontsize=8, loc="lower right", bbox_to_anchor=(1, 1), borderaxespad=0.2
    )


def figure_of_nodes(jobs: Sequence[Job], mean_parallelism: float, cluster: Cluster) -> plot.Figure:
    """The figure of a run on a cluster: what ran, was granted and asked for, and below it lanes by node."""
    bands, lanes = node_lanes(jobs, cluster)
    chart = Chart("", lanes)
    lanes_in = min(0.7 + LANE_IN * chart.lane_count, MANY_LANES_IN)
    figure = plot.Figure(figsize=(WIDTH_IN, 1.9 + lanes_in + 0.9))
    above, below = figure.subplots(2, 1, sharex=True, height_ratios=[1.9, lanes_in])
    draw_running(above, jobs, mean_parallelism)
    draw_slots(above, chart.origin_s, cluster)
    lane_in = (lanes_in - 0.5) / chart.lane_count
    draw_jobs(below, chart, PHASE_COLOURS, 72 * 0.7 * lane_in, rasterized=len(jobs) > DRAWN_SINGLY)
    below.set_xlabel("Time since the first start (s)")
    for place, (_, first, count) in enumerate(bands):
        if place % 2 == 0:
            below.axhspan(first - 0.5, first + count - 0.5, color=LIGHT_GREY, alpha=0.35, linewidth=0, zorder=0)
    named, last = list[tuple[str, float]](), float("-inf")
    for node, first, count in bands:
        middle = first + (count - 1) / 2
        if (middle - last) * lane_in >= LABEL_IN:
            named.append((node, middle))
            last = middle
    counts = Counter(cluster.node_of.get(job.name, UNKNOWN_NODE) for job in jobs)
    below.set_yticks(
        [middle for _, middle in named],
        [f"{shorten(node, 28)} ({counts[node]})" for node, _ in named],
    )
    below.tick_params(axis="y", length=0)
    draw_phases(below, chart)
    return figure


def node_lanes(jobs: Sequence[Job], cluster: Cluster) -> tuple[list[tuple[str, int, int]], list[tuple[int, Job]]]:
    """Lanes of jobs, those of a node together; and of each node its first lane and how many it has."""
    bands, lanes, first = list[tuple[str, int, int]](), list[tuple[int, Job]](), 0
    for node in [*cluster.nodes, UNKNOWN_NODE]:
        own = pack(job for job in jobs if cluster.node_of.get(job.name, UNKNOWN_NODE) == node)
        if own:
            count = 1 + max(lane for lane, _ in own)
            bands.append((node, first, count))
            lanes += [(first + lane, job) for lane, job in own]
            first += count
    return bands, lanes


def draw_slots(axes: plot.Axes, origin_s: float, cluster: Cluster) -> None:
    """What was granted and what was asked for, beside what ran."""
    drawn: list[tuple[str, Steps, str, str]]
    drawn = [("granted", cluster.granted, BLACK, "-"), ("asked for", cluster.asked, VERMILION, ":")]
    highest = float(axes.get_ylim()[1])
    for name, (at, count), colour, line in drawn:
        if any(count):
            moments = [moment - origin_s for moment in at]
            axes.plot(moments, count, drawstyle="steps-post", color=colour, linestyle=line, linewidth=1.3, label=name)
            highest = max(highest, 1.1 * max(count))
    axes.set_ylim(0, highest)
    axes.collections[0].set_label("running")
    axes.legend(fontsize=8, ncols=3, loc="lower right", bbox_to_anchor=(1, 1), borderaxespad=0.2)


def draw_running(axes: plot.Axes, jobs: Sequence[Job], mean_parallelism: float) -> None:
    """Number of participant jobs running, and its mean over the makespan."""
    at, count = averaged(*running_jobs(jobs))
    axes.fill_between([moment - at[0] for moment in at], count, step="post", color=BLUE, alpha=0.35, linewidth=0)
    axes.axhline(mean_parallelism, color=BLACK, linewidth=1, linestyle=(0, (4, 3)))
    axes.annotate(
        f"mean {mean_count(mean_parallelism)}",
        (1, mean_parallelism),
        (4, 0),
        xycoords=("axes fraction", "data"),
        textcoords="offset points",
        va="center",
        fontsize=8,
    )
    axes.set_ylim(0, 1.1 * max(1, *count))
    axes.set_ylabel("Participant jobs\nrunning")
    axes.yaxis.set_major_locator(plot.MaxNLocator(nbins=4, integer=True, min_n_ticks=1))
    axes.tick_params(labelbottom=False)


def running_jobs(jobs: Sequence[Job]) -> tuple[list[float], list[int]]:
    """Number of jobs running, as a step function.

    Returns
    -------
    tuple
        Times of change, s since 1970-01-01 UTC, and the number from that time on; both of the same length.

    Examples
    --------
    >>> running_jobs([Job("sub-1", 0.0, 2.0, []), Job("sub-2", 1.0, 2.0, [])])
    ([0.0, 1.0, 2.0], [1, 2, 0])
    """
    starts, ends = Counter(job.start_s for job in jobs), Counter(job.end_s for job in jobs)
    at = sorted(starts.keys() | ends.keys())
    return at, list(accumulate(starts[moment] - ends[moment] for moment in at))


def averaged(at: Sequence[float], count: Sequence[float], steps: int = STEPS) -> tuple[list[float], list[float]]:
    """A step function that has more steps than asked for, as its means over so many equal times; else as it is.

    >>> averaged([0.0, 1.0, 2.0, 3.0, 4.0], [1, 3, 0, 2, 0], steps=2)
    ([0.0, 2.0, 4.0], [2.0, 1.0, 0.0])
    """
    if len(at) <= steps + 1:
        return list(at), list(count)
    area = np.concatenate([[0.0], np.cumsum(np.diff(at) * np.asarray(count[:-1]))])
    edges = np.linspace(at[0], at[-1], steps + 1)
    means = np.diff(np.interp(edges, at, area)) / np.diff(edges)
    return edges.tolist(), [*means.tolist(), 0.0]
