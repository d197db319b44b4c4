"""The Gantt chart of a run: above how many participant jobs ran at a time, below their phases."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from neurotier.core.quantities import mean_count, shorten
from neurotier.pages.kit import plot
from neurotier.pages.kit.chart import BLACK, BLUE, LIGHT_GREY, PHASE_COLOURS, WIDTH_IN, Chart
from neurotier.pages.kit.gantt import Chart as Lanes
from neurotier.pages.kit.gantt import Job, Segment, draw_jobs, pack, phase_handles
from neurotier.pages.kit.marks import DRAWN_SINGLY, READABLE_LANES, beside, draw_legend
from neurotier.pages.report.cluster import Cluster, steps

LANE_IN = 0.22
RUNNING_IN = 1.6
LABEL_IN = 0.16
"""Room that the name of a node takes; one that has less has no name."""

UNKNOWN_NODE = "node not known"


@dataclass(frozen=True)
class Running(Chart):
    """Participant jobs of a run, whose phases are the table.

    Attributes
    ----------
    mean_parallelism
        Drawn as a line; ``None`` if it is not known.
    cluster, origin_s
        What the run was granted, if it was on a cluster, and when the clock of the table begins, s since 1970.
    """

    mean_parallelism: float | None = None
    cluster: Cluster | None = None
    origin_s: float = 0.0

    def draw(self) -> plot.Figure:
        """Draw both."""
        jobs = self.jobs()
        lanes, bands, first = list[tuple[int, Job]](), list[tuple[str, int, int]](), 0
        for label, members in self.sharing_lanes(jobs).items():
            lanes += [(first + lane, job) for lane, job in pack(members)]
            bands.append((label, first, max(lane for lane, _ in lanes)))
            first = bands[-1][2] + 1
        height_in = LANE_IN * min(first, READABLE_LANES)
        figure = plot.Figure(figsize=(WIDTH_IN, RUNNING_IN + height_in + 1.6))
        above, below = figure.subplots(2, 1, sharex=True, height_ratios=[RUNNING_IN, height_in + 0.7])
        self.draw_running(above, jobs)
        chart, lane_in = Lanes("", lanes), height_in / first
        draw_jobs(below, chart, PHASE_COLOURS, 72 * 0.7 * lane_in, rasterized=len(jobs) > DRAWN_SINGLY)
        below.set_xlabel("Time since the first start (s)")
        names = dict[float, str]()
        for place, (label, low, high) in enumerate(bands):
            middle = (low + high) / 2
            if not names or (middle - max(names)) * lane_in >= LABEL_IN:
                names[middle] = shorten(label, 42)
            if self.cluster and place % 2 == 0:
                below.axhspan(low - 0.5, high + 0.5, color=LIGHT_GREY, alpha=0.35, linewidth=0, zorder=0)
        below.set_yticks(list(names), list(names.values()))
        below.tick_params(axis="y", length=0)
        draw_legend(below, phase_handles([chart], PHASE_COLOURS), above=True)
        return figure

    def jobs(self) -> list[Job]:
        """The jobs, in the order of the table."""
        found: dict[str, list[Segment]] = {}
        for row in self.table:
            segment = Segment(row["phase"], row["start_s"], row["end_s"])
            found.setdefault(row["participant"], []).append(segment)
        return [
            Job(name, min(one.start_s for one in parts), max(one.end_s for one in parts), parts)
            for name, parts in found.items()
        ]

    def sharing_lanes(self, jobs: Sequence[Job]) -> dict[str, list[Job]]:
        """Jobs that stand together, one after the other in each lane: of a node, or all of many; else each alone."""
        if self.cluster is None:
            many = len(jobs) > READABLE_LANES
            return {"one job after\nthe other\nin each lane": [*jobs]} if many else {job.name: [job] for job in jobs}
        by_node: dict[str, list[Job]] = {node: [] for node in (*self.cluster.nodes, UNKNOWN_NODE)}
        for job in jobs:
            by_node[self.cluster.node_of.get(job.name, UNKNOWN_NODE)].append(job)
        return {f"{node} ({len(members)})": members for node, members in by_node.items() if members}

    def draw_running(self, axes: plot.Axes, jobs: Sequence[Job]) -> None:
        """How many jobs ran, and the mean over the makespan; on a cluster, what was granted beside them."""
        at, count = steps([(job.start_s, job.end_s, 1) for job in jobs])
        look: Any = {"color": BLUE, "alpha": 0.35, "linewidth": 0, "label": "running"}
        axes.fill_between(at, count, step="post", rasterized=len(jobs) > DRAWN_SINGLY, **look)
        mean, highest = self.mean_parallelism or len(jobs), max(1, *count)
        axes.axhline(mean, color=BLACK, linewidth=1, linestyle=(0, (4, 3)))
        beside(axes, mean, f"mean {mean_count(mean)}")
        if self.cluster:
            since, slots = self.cluster.granted
            moments = [moment - self.origin_s for moment in since]
            axes.plot(moments, slots, "k", drawstyle="steps-post", label="granted")
            highest = max([highest, *slots])
            draw_legend(axes, axes.get_legend_handles_labels()[0], above=True)
        axes.set_ylim(0, 1.1 * highest)
        axes.set_ylabel("Participant jobs\nrunning")
        axes.yaxis.set_major_locator(plot.MaxNLocator(nbins=4, integer=True, min_n_ticks=1))
        axes.tick_params(labelbottom=False)
