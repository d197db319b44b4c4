"""The figure ``bandwidth``: all processes together, writing and reading, by their number."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from matplotlib.figure import Figure

from neurotier.core.tables import Row
from neurotier.pages.kit.counts import NOTHING, PUBLISHED, count_axis, draw_line, legend, logarithmic, looks
from neurotier.pages.kit.findings import Finding
from neurotier.pages.kit.style import WIDTH_IN, write_figure
from neurotier.storage.ior.medians import READ, WRITE, Line, lines, verdict
from neurotier.storage.published import IOR_NODE

MB = 1e6
TITLES = {WRITE: "Write, flushed", READ: "Read back by another process"}
NOTE = (
    "Medians over repetitions, whiskers: their range; logarithmic axes. Stars: a node of the NEXTGenIO prototype, that"
    " is, what all of them reached divided by their number (Figure 3: 48 processes, Figure 4: 24)."
)


def finding(rows: Sequence[Row]) -> Finding:
    """With how many processes every tier is fastest."""
    found = lines(rows)
    if not found:
        return Finding(NOTHING, shown=False)
    return Finding("; ".join(verdict(name, line) for name, line in found.items()))


def draw(rows: Sequence[Row], stem: Path) -> None:
    """Draw the bandwidths; write SVG, PNG and TSV."""
    found = lines(rows)
    write_figure(stem, finding(rows), table(found), lambda: figure(found), NOTE)


def figure(found: dict[str, Line]) -> Figure:
    """The figure of at least one line: a panel for writing, and one for reading."""
    made = Figure(figsize=(WIDTH_IN, 4.4))
    panels = made.subplots(1, 2, sharey=True)
    counts = {processes for line in found.values() for processes in line}
    for axes, (way, title) in zip(panels, TITLES.items(), strict=True):
        for (name, line), look in zip(found.items(), looks(len(found)), strict=True):
            draw_line(axes, name, {processes: one.together[way] for processes, one in line.items()}, MB, look)
        stated = [number for number in IOR_NODE if number.quantity == way]
        places, values = [number.at or 0 for number in stated], [number.value / MB for number in stated]
        axes.plot(places, values, label="published, per node", **PUBLISHED)
        axes.set_title(title, fontsize=9, weight="bold")
        logarithmic(axes)
        count_axis(axes, counts | {int(number.at or 1) for number in stated}, "Processes at once")
    panels[0].set_ylabel("Bandwidth (MB/s)")
    legend(panels[1])
    return made


def table(found: dict[str, Line]) -> list[Row]:
    """The numbers behind the figure."""
    own = [
        {"line": name, "published": False, "way": way, "processes": processes}
        | {"median_bytes_per_s": one.together[way].median, "low_bytes_per_s": one.together[way].low}
        | {"high_bytes_per_s": one.together[way].high}
        for name, line in found.items()
        for processes, one in line.items()
        for way in TITLES
    ]
    stated = [
        {"line": f"{number.source}, {number.place}: {number.name}", "published": True, "way": number.quantity}
        | {"processes": int(number.at or 0), "median_bytes_per_s": number.value}
        | {"low_bytes_per_s": None, "high_bytes_per_s": None}
        for number in IOR_NODE
    ]
    return [*own, *stated]
