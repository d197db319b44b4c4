"""The figure ``held``: the rate that each writer reached, by the number of writers. As Figure 7 of the DUNE paper."""

from __future__ import annotations

from pathlib import Path

from matplotlib.figure import Figure

from neurotier.core.quantities import counted, percent, rate
from neurotier.core.tables import Row
from neurotier.pages.daq.figures import DaqTables
from neurotier.pages.kit.counts import NOTHING, PUBLISHED, count_axis, draw_line, legend, looks
from neurotier.pages.kit.findings import Finding
from neurotier.pages.kit.style import GREY, WIDTH_IN, write_figure
from neurotier.storage.daq.holding import Line, lines, most_held
from neurotier.storage.published import DAQ


def finding(tables: DaqTables) -> Finding:
    """How many writers every tier holds, and what the others need."""
    found = lines(tables.points)
    if not found:
        return Finding(NOTHING, shown=False)
    parts = []
    for name, line in found.items():
        held, most = most_held(line), max(line)
        parts.append(f"{name}: {'all' if held == most else held or 'none'} of {counted(most, 'writer')}")
    return Finding(f"Writers that hold {rate(tables.points[0]['rate_bytes_per_s'])} each: {'; '.join(parts)}")


def draw(tables: DaqTables, stem: Path) -> None:
    """Draw what a writer reached; write SVG, PNG and TSV."""
    found, tolerance = lines(tables.points), tables.settings.tolerance
    note = (
        f"Mean over writers, median over repetitions. Dashed: the least that counts as held, {percent(1 - tolerance)}."
        " Star: the most writers at 1 GB/s that the paper's six DCPMMs held, with PMDK."
    )
    write_figure(stem, finding(tables), table(found), lambda: figure(found, tolerance), note)


def figure(found: dict[str, Line], tolerance: float) -> Figure:
    """The figure of at least one line."""
    made = Figure(figsize=(WIDTH_IN, 4.2))
    axes = made.subplots()
    for (name, line), look in zip(found.items(), looks(len(found)), strict=True):
        draw_line(axes, name, {writers: one.share for writers, one in line.items()}, 0.01, look)
    axes.axhline(100 * (1 - tolerance), color=GREY, linestyle="--", linewidth=1)
    for number in DAQ:
        if number.quantity == "held":
            axes.plot([number.value], [100], label=f"published, {number.figure}", **PUBLISHED)
    axes.set_ylim(0, 112)
    axes.set_ylabel("Rate of a writer (% of what comes to it)")
    count_axis(axes, {writers for line in found.values() for writers in line} | {4}, "Writers at once")
    legend(axes)
    return made


def table(found: dict[str, Line]) -> list[Row]:
    """The numbers behind the figure."""
    own = [
        {"line": name, "published": False, "writers": writers, "share_of_rate": one.share.median, "late": one.late}
        for name, line in found.items()
        for writers, one in line.items()
    ]
    stated = [
        {"line": f"{number.source}, {number.place}: {number.name} (1000000000 bytes/s)"}
        | {"published": True, "writers": int(number.value), "share_of_rate": 1.0, "late": None}
        for number in DAQ
        if number.quantity == "held"
    ]
    return [*own, *stated]
