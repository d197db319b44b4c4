"""The figure ``throughput``: all writers together, by their number. As Figure 8 of the DUNE paper."""

from __future__ import annotations

from pathlib import Path

from matplotlib.figure import Figure

from neurotier.core.quantities import rate
from neurotier.core.tables import Row
from neurotier.pages.daq.figures import DaqTables
from neurotier.pages.kit.counts import NOTHING, PUBLISHED, count_axis, draw_line, legend, logarithmic, looks
from neurotier.pages.kit.findings import Finding
from neurotier.pages.kit.style import GREY, WIDTH_IN, write_figure
from neurotier.storage.daq.holding import Line, lines
from neurotier.storage.published import DAQ

MB = 1e6
NOTE = (
    "Median over repetitions, until all is flushed; logarithmic axes. Dashed: what comes to the writers. Stars: the"
    " paper's DCPMMs, interleaved (4 writers) and each by itself (5 writers), as its text states them."
)


def finding(tables: DaqTables) -> Finding:
    """What every tier takes at most."""
    found = lines(tables.points)
    if not found:
        return Finding(NOTHING, shown=False)
    clauses = []
    for name, line in found.items():
        most = max(line, key=lambda writers: line[writers].throughput.median)
        plural = "s" * (most > 1)
        clauses.append(f"{name} writes {rate(line[most].throughput.median)} at most (with {most} writer{plural})")
    return Finding("; ".join(clauses))


def draw(tables: DaqTables, stem: Path) -> None:
    """Draw the throughput; write SVG, PNG and TSV."""
    found = lines(tables.points)
    write_figure(stem, finding(tables), table(found), lambda: figure(found), NOTE)


def figure(found: dict[str, Line]) -> Figure:
    """The figure of at least one line."""
    made = Figure(figsize=(WIDTH_IN, 4.2))
    axes = made.subplots()
    for (name, line), look in zip(found.items(), looks(len(found)), strict=True):
        draw_line(axes, name, {writers: one.throughput for writers, one in line.items()}, MB, look)
    come = {writers: one.input_bytes_per_s / MB for line in found.values() for writers, one in line.items()}
    axes.plot(sorted(come), [come[writers] for writers in sorted(come)], color=GREY, linestyle="--", linewidth=1)
    stated = [number for number in DAQ if number.quantity == "throughput"]
    places, values = [number.at or 0 for number in stated], [number.value / MB for number in stated]
    axes.plot(places, values, label=f"published, {stated[0].figure}", **PUBLISHED)
    logarithmic(axes)
    axes.set_ylabel("Throughput (MB/s)")
    count_axis(axes, {*come, *(int(number.at or 1) for number in stated)}, "Writers at once")
    legend(axes)
    return made


def table(found: dict[str, Line]) -> list[Row]:
    """The numbers behind the figure."""
    own = [
        {"line": name, "published": False, "writers": writers, "throughput_bytes_per_s": one.throughput.median}
        | {"input_bytes_per_s": one.input_bytes_per_s}
        for name, line in found.items()
        for writers, one in line.items()
    ]
    stated = [
        {"line": f"{number.source}, {number.place}: {number.name}", "published": True, "writers": int(number.at or 0)}
        | {"throughput_bytes_per_s": number.value, "input_bytes_per_s": None}
        for number in DAQ
        if number.quantity == "throughput"
    ]
    return [*own, *stated]
