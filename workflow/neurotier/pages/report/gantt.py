"""The Gantt chart of a run: above how many participant jobs ran at a time, below their phases."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from neurotier.core.quantities import mean_count, shorten
from neurotier.core.tables import Row
from neurotier.pages.kit import plot
from neurotier.pages.kit.chart import BLACK, BLUE, LIGHT_GREY, PHASE_COLOURS, WIDTH_IN, Chart
from neurotier.pages.kit.findings import gathered
from neurotier.pages.kit.gantts import Gantts, Panel, in_lanes, spans
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
        lanes, bands, count = list[Row](), list[tuple[str, int, int]](), 0
        for label, rows in self.sharing_lanes().items():
            since_s = min(row["start_s"] for row in rows)
            for row in in_lanes(rows, "participant"):
                clock = {end: row[end] + since_s for end in ("start_s", "end_s")}
                lanes.append(row | clock | {"lane": count + row["lane"]})
            bands.append((label, count, max(row["lane"] for row in lanes)))
            count = bands[-1][2] + 1
        jobs = spans(self.table, "participant")
        pixels = len(jobs) > DRAWN_SINGLY
        height_in = LANE_IN * min(count, READABLE_LANES)
        figure = plot.Figure(figsize=(WIDTH_IN, RUNNING_IN + height_in + 1.6))
        above, below = figure.subplots(2, 1, sharex=True, height_ratios=[RUNNING_IN, height_in + 0.7])
        self.draw_running(above, [*jobs.values()], pixels)
        lane_in = height_in / count
        Gantts("", colours=PHASE_COLOURS).draw_panel(below, Panel("", lanes), 72 * 0.7 * lane_in, pixels)
        below.set_ylim(count - 0.4, -0.6)
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
        drawn = {row["phase"] for row in lanes}
        handles = [plot.Patch(color=colour, label=phase) for phase, colour in PHASE_COLOURS.items() if phase in drawn]
        draw_legend(below, handles, above=True)
        return figure

    def sharing_lanes(self) -> dict[str, list[Row]]:
        """Jobs that stand together, one after the other in each lane: of a node, or all of many; else each alone."""
        if self.cluster is None:
            jobs = gathered((row["participant"], row) for row in self.table)
            many = len(jobs) > READABLE_LANES
            return {"one job after\nthe other\nin each lane": [*self.table]} if many else jobs
        nodes = gathered((row["node"] or UNKNOWN_NODE, row) for row in self.table)
        return {f"{node} ({len({row['participant'] for row in rows})})": rows for node, rows in sorted(nodes.items())}

    def draw_running(self, axes: plot.Axes, jobs: Sequence[tuple[float, float]], pixels: bool) -> None:
        """How many jobs ran, and the mean over the makespan; on a cluster, what was granted beside them."""
        at, count = steps((*span, 1) for span in jobs)
        look: Any = {"color": BLUE, "alpha": 0.35, "linewidth": 0, "label": "running"}
        axes.fill_between(at, count, step="post", rasterized=pixels, **look)
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
