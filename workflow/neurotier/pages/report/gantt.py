"""The figure ``gantt``: who ran when in the last run, by phase, and how many at a time."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from neurotier.core.quantities import counted, mean_count, seconds, shorten
from neurotier.pages.kit import plot
from neurotier.pages.kit.chart import BLACK, BLUE, LIGHT_GREY, WIDTH_IN
from neurotier.pages.kit.findings import Finding
from neurotier.pages.kit.gantt import Chart, Job, Segment, draw_jobs, pack, phase_handles
from neurotier.pages.kit.lanes import annotate_lane, legend_above
from neurotier.pages.kit.style import DRAWN_SINGLY, PHASE_COLOURS, READABLE_LANES, write_figure
from neurotier.pages.report.cluster import Cluster, steps
from neurotier.pages.report.data import Tables
from neurotier.pages.report.times import NONE_FINISHED

LANE_IN = 0.22
RUNNING_IN = 1.6
LABEL_IN = 0.16
"""Room that the name of a node takes; one that has less has no name."""

UNKNOWN_NODE = "node not known"


def last_jobs(tables: Tables) -> list[Job]:
    """The participant jobs of the last run, earliest start first."""
    jobs = []
    for time in tables.last_times:
        segments = [Segment(row["phase"], row["start_s"], row["end_s"]) for row in time.phases.values()]
        jobs.append(Job(time.participant, time.start_s, time.end_s, segments))
    return sorted(jobs, key=lambda job: (job.start_s, job.name))


def finding(tables: Tables) -> Finding:
    """How long the last run took, and how many participants ran at a time."""
    run, shown = tables.last_run, bool(tables.last_times)
    if run is None or not run["participants"]:
        return Finding(NONE_FINISHED, shown)
    most, average = run["peak_parallelism"], mean_count(run["mean_parallelism"])
    parallel = "one at a time" if most == 1 else f"{average} at a time on average, {most:,} at most"
    done = counted(run["participants"], "participant")
    return Finding(f"Makespan {seconds(run['makespan_s'])} for {done}, {parallel}", shown)


def draw(tables: Tables, stem: Path) -> None:
    """Draw the participant jobs of the last run; write SVG, PNG and TSV.

    Participants of earlier runs, which a resumed run keeps, have no place on this run's clock and are left out.
    """
    run, jobs, cluster = tables.last_run or {"run": None}, last_jobs(tables), tables.cluster
    note = f"Run {run['run']}; failed attempts are not drawn."
    if cluster:
        note += " Granted: participants that the jobs which ran had CPUs for."
    rows = [
        {"run": run["run"], **{key: row[key] for key in ("participant", "phase", "start_s", "end_s")}}
        | ({"node": cluster.node_of.get(row["participant"])} if cluster else {})
        for row in (Chart("", list(enumerate(jobs))).rows() if jobs else [])
    ]
    write_figure(stem, finding(tables), rows, lambda: figure_of(jobs, run["mean_parallelism"], cluster), note)


def figure_of(jobs: Sequence[Job], mean_parallelism: float | None, cluster: Cluster | None) -> plot.Figure:
    """The figure of at least one participant job: above how many ran at a time, below who ran when."""
    lanes, bands, first = list[tuple[int, Job]](), list[tuple[str, int, int]](), 0
    for label, members in sharing_lanes(jobs, cluster).items():
        lanes += [(first + lane, job) for lane, job in pack(members)]
        last = max(lane for lane, _ in lanes)
        bands.append((label, first, last))
        first = last + 1
    chart = Chart("", lanes)
    height_in = LANE_IN * min(chart.lane_count, READABLE_LANES)
    figure = plot.Figure(figsize=(WIDTH_IN, RUNNING_IN + height_in + 1.6))
    above, below = figure.subplots(2, 1, sharex=True, height_ratios=[RUNNING_IN, height_in + 0.7])
    draw_running(above, jobs, mean_parallelism or len(jobs), cluster)
    lane_in = height_in / chart.lane_count
    draw_jobs(below, chart, PHASE_COLOURS, 72 * 0.7 * lane_in, rasterized=len(jobs) > DRAWN_SINGLY)
    below.set_xlabel("Time since the first start (s)")
    names = dict[float, str]()
    for place, (label, first, last) in enumerate(bands):
        middle = (first + last) / 2
        if not names or (middle - max(names)) * lane_in >= LABEL_IN:
            names[middle] = shorten(label, 42)
        if cluster and place % 2 == 0:
            below.axhspan(first - 0.5, last + 0.5, color=LIGHT_GREY, alpha=0.35, linewidth=0, zorder=0)
    below.set_yticks(list(names), list(names.values()))
    below.tick_params(axis="y", length=0)
    legend_above(below, phase_handles([chart], PHASE_COLOURS))
    return figure


def sharing_lanes(jobs: Sequence[Job], cluster: Cluster | None) -> dict[str, list[Job]]:
    """Jobs that stand together, one after the other in each lane: those of a node, or all of many; else each alone."""
    if cluster is None:
        many = len(jobs) > READABLE_LANES
        return {"one job after\nthe other\nin each lane": [*jobs]} if many else {job.name: [job] for job in jobs}
    by_node: dict[str, list[Job]] = {node: [] for node in (*cluster.nodes, UNKNOWN_NODE)}
    for job in jobs:
        by_node[cluster.node_of.get(job.name, UNKNOWN_NODE)].append(job)
    return {f"{node} ({len(members)})": members for node, members in by_node.items() if members}


def draw_running(axes: plot.Axes, jobs: Sequence[Job], mean_parallelism: float, cluster: Cluster | None) -> None:
    """How many jobs ran, and the mean over the makespan; on a cluster, what was granted beside them."""
    at, count = steps([(job.start_s, job.end_s, 1) for job in jobs])
    origin_s, highest = at[0], max(1, *count)
    moments = [moment - origin_s for moment in at]
    pixels = len(jobs) > DRAWN_SINGLY
    look: Any = {"color": BLUE, "alpha": 0.35, "linewidth": 0, "label": "running"}
    axes.fill_between(moments, count, step="post", rasterized=pixels, **look)
    axes.axhline(mean_parallelism, color=BLACK, linewidth=1, linestyle=(0, (4, 3)))
    annotate_lane(axes, mean_parallelism, f"mean {mean_count(mean_parallelism)}")
    if cluster:
        since, slots = cluster.granted
        axes.plot([moment - origin_s for moment in since], slots, "k", drawstyle="steps-post", label="granted")
        highest = max([highest, *slots])
        legend_above(axes, axes.get_legend_handles_labels()[0])
    axes.set_ylim(0, 1.1 * highest)
    axes.set_ylabel("Participant jobs\nrunning")
    axes.yaxis.set_major_locator(plot.MaxNLocator(nbins=4, integer=True, min_n_ticks=1))
    axes.tick_params(labelbottom=False)
