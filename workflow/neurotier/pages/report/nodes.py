"""The figure ``nodes``: how long participants took on each node of a cluster."""

from __future__ import annotations

from pathlib import Path

from neurotier.core.quantities import counted, shorten
from neurotier.pages.kit import plot
from neurotier.pages.kit.findings import Finding
from neurotier.pages.kit.style import BLACK, BLUE, GREY, LIGHT_GREY, READABLE_LANES, VERMILION, WIDTH_IN, write_figure
from neurotier.pages.report.cluster import Cluster, NodeTimes, node_verdict
from neurotier.pages.report.data import Tables
from neurotier.pages.report.gantt import cluster_of

LANE_IN = 0.3

ONE_MACHINE = "the last run was on one machine"


def finding(tables: Tables) -> Finding:
    """Whether one node is slow."""
    cluster = cluster_of(tables)
    if cluster is None:
        return Finding(ONE_MACHINE, shown=False)
    return Finding(node_verdict(cluster), shown=bool(cluster.by_node))


def draw(tables: Tables, stem: Path) -> None:
    """Draw the wall times of the participants of each node; write SVG, PNG and TSV."""
    cluster = cluster_of(tables)
    rows = (
        {"node": cluster.node_of[time.participant], "participant": time.participant, "wall_s": time.wall_s}
        for time in (cluster.times if cluster else ())
        if cluster and time.participant in cluster.node_of
    )
    note = "A dot per participant that succeeded, a line from the first to the third quartile, a bar at the median."
    write_figure(stem, finding(tables), rows, lambda: figure_of(cluster), note)  # type: ignore[arg-type]


def shown_of(cluster: Cluster) -> list[NodeTimes]:
    """The nodes that have room: of very many, those with the longest and shortest medians."""
    if len(cluster.by_node) <= READABLE_LANES:
        return cluster.by_node
    ranked = sorted(cluster.by_node, key=lambda node: -node.median_s)
    half = READABLE_LANES // 2
    return [*ranked[:half], *ranked[-half:]]


def figure_of(cluster: Cluster) -> plot.Figure:
    """The figure of at least one node."""
    import numpy as np

    nodes = shown_of(cluster)
    off = {node.node: ", slow" if ratio > 1 else ", fast" for node, ratio in cluster.standing_out}
    figure = plot.Figure(figsize=(WIDTH_IN, 1.5 + LANE_IN * len(nodes)))
    axes = figure.subplots()
    everyone = [wall_s for node in cluster.by_node for wall_s in node.wall_s]
    middle_s = float(np.median(everyone))
    axes.axvline(middle_s, color=GREY, linewidth=1, linestyle=(0, (4, 3)))
    axes.annotate(
        "median of all",
        (middle_s, 1),
        (3, 2),
        xycoords=("data", "axes fraction"),
        textcoords="offset points",
        fontsize=8,
        color=GREY,
    )
    for lane, node in enumerate(nodes):
        colour = VERMILION if node.node in off else BLUE
        low_s, high_s = np.quantile(node.wall_s, [0.25, 0.75])
        axes.plot([low_s, high_s], [lane, lane], color=LIGHT_GREY, linewidth=9, solid_capstyle="butt", zorder=1)
        axes.plot(
            node.wall_s,
            [lane] * len(node.wall_s),
            linestyle="",
            marker="o",
            markersize=3.5,
            color=colour,
            alpha=0.6,
            markeredgewidth=0,
            rasterized=len(everyone) > 1000,
        )
        axes.plot([node.median_s] * 2, [lane - 0.32, lane + 0.32], color=BLACK, linewidth=2)
    labels = [f"{shorten(node.node, 28)} ({len(node.wall_s)}){off.get(node.node, '')}" for node in nodes]
    axes.set_yticks(range(len(nodes)), labels)
    axes.tick_params(axis="y", length=0)
    axes.grid(visible=False, axis="y")
    axes.set_ylim(len(nodes) - 0.4, -0.6)
    axes.set_xlim(0, 1.03 * max(everyone) or 1)
    left_out = len(cluster.by_node) - len(nodes)
    more = f"; {counted(left_out, 'node')} between are not drawn" if left_out else ""
    axes.set_xlabel(f"Wall time of a participant (s){more}")
    return figure
