"""The figure ``nodes``: what nodes write and read together, by their number."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from matplotlib.figure import Figure

from neurotier.core.quantities import counted
from neurotier.core.tables import Row
from neurotier.pages.kit.counts import NOTHING, PUBLISHED, count_axis, draw_line, legend, logarithmic, looks
from neurotier.pages.kit.findings import Finding
from neurotier.pages.kit.style import GREY, WIDTH_IN, write_figure
from neurotier.storage.ior.medians import READ, WRITE, Line
from neurotier.storage.ior.scaling import curves, verdict
from neurotier.storage.published import IOR_LIST, IOR_NODES

MB = 1e6
TITLES = {WRITE: "Write, flushed", READ: "Read back"}
NOTE = (
    "Medians over repetitions, whiskers: their range; logarithmic axes. Stars: the NEXTGenIO prototype with 48"
    " (Figure 3) and 24 processes per node (Figure 4). Dotted: the first of the IO-500 list of then, 512 nodes."
)


def finding(rows: Sequence[Row]) -> Finding:
    """From where on more nodes bring nothing, and whether fewer processes on each are faster."""
    found = curves(rows)
    if not found:
        return Finding(f"{NOTHING} on several nodes", shown=False)
    return Finding("; ".join(verdict(name, each) for name, each in found.items()))


def draw(rows: Sequence[Row], stem: Path) -> None:
    """Draw the bandwidths; write SVG, PNG and TSV."""
    found = curves(rows)
    write_figure(stem, finding(rows), [*table(found), *stated()], lambda: figure(found), NOTE)


def figure(found: dict[str, dict[int, Line]]) -> Figure:
    """The figure of at least one curve: a panel for writing, and one for reading."""
    made = Figure(figsize=(WIDTH_IN, 4.4))
    panels = made.subplots(1, 2, sharey=True)
    named = {
        f"{name}, {counted(processes, 'process')} each": curve
        for name, each in found.items()
        for processes, curve in each.items()
    }
    counts = {nodes for curve in named.values() for nodes in curve}
    for axes, (way, title) in zip(panels, TITLES.items(), strict=True):
        for (name, curve), look in zip(named.items(), looks(len(named)), strict=True):
            draw_line(axes, name, {nodes: one.together[way] for nodes, one in curve.items()}, MB, look)
        totals = [number for number in IOR_NODES if number.quantity == way]
        places, values = [number.at or 0 for number in totals], [number.value / MB for number in totals]
        axes.plot(places, values, label="published", **PUBLISHED)
        for number in IOR_LIST:
            if number.quantity == way:
                axes.axhline(number.value / MB, color=GREY, linestyle=":", linewidth=1, label="IO-500's first")
        axes.set_title(title, fontsize=9, weight="bold")
        logarithmic(axes)
        count_axis(axes, counts | {max(int(number.at or 1) for number in IOR_NODES)}, "Nodes at once")  # 30 hides 34
    panels[0].set_ylabel("Bandwidth of all nodes (MB/s)")
    legend(panels[1])
    return made


def table(found: dict[str, dict[int, Line]]) -> list[Row]:
    """The measured numbers behind the figure."""
    return [
        {"line": name, "published": False, "way": way, "nodes": nodes, "processes": processes}
        | {"median_bytes_per_s": one.together[way].median, "low_bytes_per_s": one.together[way].low}
        | {"high_bytes_per_s": one.together[way].high, "nodes_own_bytes_per_s": one.own[way]}
        for name, each in found.items()
        for processes, curve in each.items()
        for nodes, one in curve.items()
        for way in TITLES
    ]


def stated() -> list[Row]:
    """The published ones."""
    return [
        {"line": f"{number.source}, {number.place}: {number.name}", "published": True, "way": number.quantity}
        | {"nodes": int(number.at or 0), "processes": None, "median_bytes_per_s": number.value}
        | {"low_bytes_per_s": None, "high_bytes_per_s": None, "nodes_own_bytes_per_s": None}
        for number in IOR_NODES
    ]
