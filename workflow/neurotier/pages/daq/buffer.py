"""The figure ``buffer``: the memory that writers need over time, up to the target. As Figure 6 of the DUNE paper."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from matplotlib import colormaps
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from neurotier.core.quantities import counted, percent, rate, seconds, size
from neurotier.core.tables import Row
from neurotier.pages.daq.figures import DaqTables
from neurotier.pages.kit.counts import NOTHING, PUBLISHED
from neurotier.pages.kit.findings import Finding
from neurotier.pages.kit.style import GREY, WIDTH_IN, write_figure
from neurotier.storage.daq.holding import Line, lines
from neurotier.storage.published import DAQ

MIB, GIB = float(1 << 20), float(1 << 30)
MAP = colormaps["viridis"]
PANEL_IN = 2.6
Curves = dict[tuple[str, int], list[tuple[float, float]]]


def finding(tables: DaqTables) -> Finding:
    """How large the largest buffer is on every tier, as a share of what comes."""
    found = lines(tables.points)
    if not found:
        return Finding(NOTHING, shown=False)
    target_s, clauses = tables.settings.target_s, []
    for name, line in found.items():
        most = max(line)
        one = line[most]
        if one.late:
            share = percent(one.buffer.median / (one.input_bytes_per_s * target_s))
            come = f"{rate(one.input_bytes_per_s)} come"
            clauses.append(
                f"{name}: where {come}, {size(one.buffer.median)} must be held for {seconds(target_s)} ({share})"
            )
        else:
            clauses.append(f"{name}: {size(one.buffer.median)} are enough for {counted(most, 'writer')}")
    return Finding("; ".join(clauses))


def curves(backlog: Sequence[Row]) -> Curves:
    """The backlog of each number of writers in its first repetition that there is."""
    found: Curves = {}
    first: dict[tuple[str, int], int] = {}
    for row in backlog:
        key = (f"{row['over'].replace('+', ' + ')}, {row['engine']}", row["writers"])
        if first.setdefault(key, row["repetition"]) == row["repetition"]:
            found.setdefault(key, []).append((row["time_s"], row["backlog_bytes"]))
    return found


def draw(tables: DaqTables, stem: Path) -> None:
    """Draw the buffers; write SVG, PNG and TSV."""
    found, measured, target_s = lines(tables.points), curves(tables.backlog), tables.settings.target_s
    note = (
        "Solid: measured; dashed: what comes less what is written, times the time. Dotted: the time for"
        " which the buffer must do. Star: an example of the DUNE paper."
    )
    rows = table(found, measured, target_s)
    write_figure(stem, finding(tables), rows, lambda: figure(found, measured, target_s), note)


def figure(found: dict[str, Line], measured: Curves, target_s: float) -> Figure:
    """The figure of at least one line: a panel for each, and one of the paper's example."""
    made = Figure(figsize=(WIDTH_IN, 1.3 + PANEL_IN * (len(found) + 1)))
    panels = made.subplots(len(found) + 1, 1, squeeze=False)[:, 0]
    for axes, (name, line) in zip(panels, found.items(), strict=False):
        draw_panel(axes, name, line, measured, target_s)
    draw_published(panels[-1])
    return made


def draw_panel(axes: Axes, name: str, line: Line, measured: Curves, target_s: float) -> None:
    """The buffers of one tier and engine."""
    unit, label = (GIB, "GiB") if max(one.buffer.median for one in line.values()) >= GIB else (MIB, "MiB")
    for place, (writers, one) in enumerate(line.items()):
        colour = MAP(0.88 * place / max(1, len(line) - 1))
        curve = measured.get((name, writers), [])
        axes.plot([time_s for time_s, _ in curve], [held / unit for _, held in curve], color=colour, linewidth=1.6)
        ends = [0, one.buffer.median / unit] if one.late else [one.buffer.median / unit] * 2
        said = counted(writers, "writer") + (f", {one.late} late" if one.late else "")
        axes.plot([0, target_s], ends, color=colour, linestyle="--", linewidth=1, label=said)
    if any(one.late for one in line.values()):
        axes.axvline(target_s, color=GREY, linestyle=":", linewidth=1)
    else:  # nothing grows: what was measured is all there is to see
        axes.set_xlim(0, max((curve[-1][0] for (own, _), curve in measured.items() if own == name), default=target_s))
    axes.set_title(name, fontsize=9, weight="bold")
    axes.set_xlabel("Time (s)")
    axes.set_ylabel(f"Buffer ({label})")
    axes.set_ylim(bottom=0)
    axes.legend(loc="upper left", bbox_to_anchor=(1.01, 1), borderaxespad=0, fontsize=8)


def draw_published(axes: Axes) -> None:
    """The example of the paper."""
    for number in DAQ:
        if number.quantity == "buffer" and number.at is not None:
            axes.plot([0, number.at], [0, number.value / GIB], color=GREY, linestyle="--", linewidth=1)
            axes.plot([number.at], [number.value / GIB], label=f"published, {number.figure}", **PUBLISHED)
            axes.axvline(number.at, color=GREY, linestyle=":", linewidth=1)
            axes.set_title(f"Published: {number.name[0].lower()}{number.name[1:]}", fontsize=9, weight="bold")
    axes.set_xlabel("Time (s)")
    axes.set_ylabel("Buffer (GiB)")
    axes.set_ylim(bottom=0)
    axes.legend(loc="upper left", bbox_to_anchor=(1.01, 1), borderaxespad=0, fontsize=8)


def table(found: dict[str, Line], measured: Curves, target_s: float) -> list[Row]:
    """The numbers behind the figure: what was measured over time, and the buffers at the target."""
    rows: list[Row] = [
        {"line": name, "writers": writers, "kind": "measured", "time_s": time_s, "buffer_bytes": held}
        for (name, writers), curve in measured.items()
        for time_s, held in curve
    ]
    for name, line in found.items():
        for writers, one in line.items():
            ahead = {"kind": "at the target", "time_s": target_s, "buffer_bytes": one.buffer.median}
            rows.append({"line": name, "writers": writers, **ahead})
    for number in DAQ:
        if number.quantity == "buffer":
            stated = {"kind": "published", "time_s": number.at, "buffer_bytes": number.value}
            rows.append({"line": f"{number.source}, {number.place}: {number.name}", "writers": None, **stated})
    return rows
