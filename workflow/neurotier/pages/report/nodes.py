"""The figure ``nodes``: how long participants took on each node of a cluster."""

from __future__ import annotations

import statistics
from pathlib import Path

from neurotier.core.quantities import seconds
from neurotier.pages.kit import plot
from neurotier.pages.kit.chart import BLUE, VERMILION
from neurotier.pages.kit.findings import Finding
from neurotier.pages.kit.lanes import Lane, Panel, annotate_lane, label_lanes, panel_axes
from neurotier.pages.kit.spread import draw_distribution
from neurotier.pages.kit.style import write_figure
from neurotier.pages.report.cluster import Cluster, node_verdict
from neurotier.pages.report.data import Tables

NOTE = (
    "Participants that succeeded. Box: quartiles; line: 5th to 95th per cent; dots: participants, if few; diamond:"
    " median, in red of a node that stands out."
)


def finding(tables: Tables) -> Finding:
    """Whether one node is slow."""
    cluster = tables.cluster
    if cluster is None:
        return Finding("the last run was on one machine", shown=False)
    return Finding(node_verdict(cluster), shown=bool(cluster.walls_s))


def draw(tables: Tables, stem: Path) -> None:
    """Draw the wall times of the participants of each node; write SVG, PNG and TSV."""
    cluster = tables.cluster or Cluster((), ())
    rows = (
        {"node": cluster.node_of[time.participant], "participant": time.participant, "wall_s": time.wall_s}
        for time in cluster.times
        if time.participant in cluster.node_of
    )
    write_figure(stem, finding(tables), rows, lambda: figure_of(cluster), NOTE)


def figure_of(cluster: Cluster) -> plot.Figure:
    """The figure of at least one node."""
    panel = Panel("", tuple(Lane(f"{node} ({len(walls_s)})", node) for node, walls_s in cluster.walls_s.items()))
    figure, (axes,) = panel_axes([panel])
    for lane, node in panel.filled():
        walls_s = cluster.walls_s[node]
        median_s = statistics.median(walls_s)
        draw_distribution(axes, lane, walls_s, median_s, VERMILION if node in cluster.standing_out else BLUE)
        annotate_lane(axes, lane, seconds(median_s))
    label_lanes(axes, panel)
    axes.set_xlim(left=0)
    axes.set_xlabel("Wall time of a participant (s)")
    return figure
