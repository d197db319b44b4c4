"""The figure ``spread``: the slowest and the fastest process of every point."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from matplotlib.figure import Figure

from neurotier.core.quantities import counted
from neurotier.core.tables import Row
from neurotier.pages.kit.counts import NOTHING
from neurotier.pages.kit.findings import Finding, times_text
from neurotier.pages.kit.lanes import LANE_IN
from neurotier.pages.kit.style import BLUE, VERMILION, WIDTH_IN, write_figure
from neurotier.storage.ior.medians import READ, WRITE, Line, lines

MB = 1e6
COLOURS = {WRITE: (VERMILION, "Write"), READ: (BLUE, "Read")}
NOTE = "From the slowest process to the fastest, over all repetitions; an axis that begins at 0."
EVEN = 1.1
"""Processes of which the fastest has so many times the bandwidth of the slowest are called alike."""


UNTOLD = "IOR does not tell what each process reached"


def told(rows: Sequence[Row]) -> dict[str, Line]:
    """What was measured of one node, as far as it is known what each process reached."""
    known = {name: {count: one for count, one in line.items() if one.slowest} for name, line in lines(rows).items()}
    return {name: line for name, line in known.items() if line}


def widest(found: dict[str, Line]) -> tuple[float, str]:
    """The greatest ratio of the fastest process to the slowest, and where."""
    ratios = [
        (one.fastest[way] / one.slowest[way], f"{name}, {counted(processes, 'process')}")
        for name, line in found.items()
        for processes, one in line.items()
        for way in COLOURS
        if one.slowest[way]
    ]
    return max(ratios, default=(1.0, ""))


def finding(rows: Sequence[Row]) -> Finding:
    """How unequal processes are."""
    found = told(rows)
    if not found:
        return Finding(UNTOLD if lines(rows) else NOTHING, shown=False)
    ratio, where = widest(found)
    if ratio <= EVEN:
        return Finding("All processes of a point get alike")
    return Finding(f"The fastest process gets up to {times_text(ratio)} times as much as the slowest ({where})")


def draw(rows: Sequence[Row], stem: Path) -> None:
    """Draw the ranges; write SVG, PNG and TSV."""
    found = told(rows)
    write_figure(stem, finding(rows), table(found), lambda: figure(found), NOTE)


def figure(found: dict[str, Line]) -> Figure:
    """The figure of at least one line."""
    lanes = [(name, processes, one) for name, line in found.items() for processes, one in line.items()]
    made = Figure(figsize=(WIDTH_IN, 1.6 + 1.6 * LANE_IN * len(lanes)))
    axes = made.subplots()
    for place, (_, _, one) in enumerate(lanes):
        for shift, (way, (colour, label)) in zip((-0.15, 0.15), COLOURS.items(), strict=True):
            ends = [one.slowest[way] / MB, one.fastest[way] / MB]
            named = label if place == 0 else None
            axes.plot(ends, [place + shift] * 2, color=colour, marker="|", markersize=8, linewidth=3, label=named)
    labels = [f"{name}: {processes}" for name, processes, _ in lanes]
    axes.set_yticks(range(len(lanes)), labels)
    axes.set_ylim(len(lanes) - 0.4, -0.6)
    axes.set_xlim(left=0)
    axes.set_xlabel("Bandwidth of a process (MB/s)")
    axes.legend(loc="upper left", bbox_to_anchor=(1.01, 1), borderaxespad=0, fontsize=8)
    return made


def table(found: dict[str, Line]) -> list[Row]:
    """The numbers behind the figure."""
    return [
        {"line": name, "processes": processes, "way": way}
        | {"slowest_bytes_per_s": one.slowest[way], "fastest_bytes_per_s": one.fastest[way]}
        for name, line in found.items()
        for processes, one in line.items()
        for way in COLOURS
    ]
