"""The figure ``nodes``: how long participants took on each node of a cluster."""

from __future__ import annotations

import statistics
from pathlib import Path

from neurotier.core.quantities import counted, seconds
from neurotier.pages.kit import plot
from neurotier.pages.kit.findings import Finding
from neurotier.pages.kit.lanes import Lane, Panel, annotate_lane, label_lanes, panel_axes
from neurotier.pages.kit.spread import draw_distribution
from neurotier.pages.kit.style import BLUE, READABLE_LANES, VERMILION, write_figure
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
    """The figure of at least one node; of very many, those with the longest and the shortest medians."""
    medians_s = {node: statistics.median(walls_s) for node, walls_s in cluster.walls_s.items()}
    shown, left_out = list(medians_s), len(medians_s) - READABLE_LANES
    if left_out > 0:
        ranked, half = sorted(shown, key=lambda node: -medians_s[node]), READABLE_LANES // 2
        shown = [*ranked[:half], *ranked[-half:]]
    lanes = [Lane(f"{node} ({len(cluster.walls_s[node])})", node) for node in shown]
    panel = Panel("", tuple(lanes))
    figure, (axes,) = panel_axes([panel])
    for lane, node in panel.filled():
        colour = VERMILION if node in cluster.standing_out else BLUE
        draw_distribution(axes, lane, cluster.walls_s[node], medians_s[node], colour)
        annotate_lane(axes, lane, seconds(medians_s[node]))
    label_lanes(axes, panel)
    axes.set_xlim(left=0)
    more = f"; {counted(left_out, 'node')} between are not drawn" if left_out > 0 else ""
    axes.set_xlabel(f"Wall time of a participant (s){more}")
    return figure
