"""The figure ``one_stream``: each tier as one stream of ``dd`` sees it, beside the published devices."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from neurotier.core.kinds import is_in_memory
from neurotier.core.quantities import rate
from neurotier.core.tables import Row
from neurotier.pages.kit import plot
from neurotier.pages.kit.findings import Finding
from neurotier.pages.kit.hover import hover
from neurotier.pages.kit.lanes import Lane, Panel, draw_lanes
from neurotier.pages.kit.style import BLUE, GREY, LIGHT_GREY, SKY, write_figure
from neurotier.storage.table_one import TABLE_ONE, nearest

NOTE = (
    "One buffered stream, 1 MiB a request, as by dd: writes include the flush to the device; reads begin with an empty"
    " page cache unless said. Medians; whiskers: range of the repetitions. Grey: Table I of Hayot-Sasson, Brown and"
    " Glatard (2020), one stream of dd."
)
PATTERNS = {"read": {"read": "", "cached_read": ", from the page cache"}, "write": {"write": ""}}
MB = 1e6
COLOURS = {"device": BLUE, "memory": SKY, "Table I": LIGHT_GREY}
BANDWIDTH = ("bandwidth_bytes_per_s", "bandwidth_low_bytes_per_s", "bandwidth_high_bytes_per_s")


def single(rows: Sequence[Row]) -> dict[str, dict[str, Row]]:
    """Rows of one stream, by tier and pattern."""
    tiers: dict[str, dict[str, Row]] = {}
    for row in rows:
        if row["part"] == "one_stream":
            tiers.setdefault(row["tier"], {})[row["pattern"]] = row
    return tiers


def finding(rows: Sequence[Row]) -> Finding:
    """Which published device each tier is like."""
    like: dict[str, list[str]] = {}
    for tier, patterns in single(rows).items():
        read, write = (patterns[name]["bandwidth_bytes_per_s"] for name in ("read", "write"))
        like.setdefault(nearest(read, write).name, []).append(f"{tier} ({rate(read)} read, {rate(write)} written)")
    if not like:
        return Finding("No tier has been measured", shown=False)
    clauses = [
        f"{' and '.join(tiers)} {'is' if len(tiers) == 1 else 'are'} nearest to the published {name}"
        for name, tiers in like.items()
    ]
    return Finding(f"With one stream, {'; '.join(clauses)}")


def draw(rows: Sequence[Row], stem: Path) -> None:
    """Draw reads and writes of one stream; write SVG, PNG and TSV."""
    bars = table(rows)
    write_figure(stem, finding(rows), bars, lambda: bars_figure(bars), NOTE)


def table(rows: Sequence[Row]) -> list[Row]:
    """The numbers behind the figure: reads of each tier, cold and from the page cache, writes, and published ones."""
    bars = []
    for way, patterns in PATTERNS.items():
        for tier, own in single(rows).items():
            for pattern, how in patterns.items():
                if pattern in own:
                    memory = how or is_in_memory(own[pattern]["kind"])
                    about = {"way": way, "of": f"{tier}{how}", "from": "memory" if memory else "device"}
                    bars.append(about | {name: own[pattern][name] for name in BANDWIDTH})
        for device in TABLE_ONE:
            about = {"way": way, "of": f"published {device.name}", "from": "Table I"}
            bars.append(about | dict.fromkeys(BANDWIDTH, getattr(device, f"{way}_bytes_per_s")))
    return bars


def bars_figure(bars: Sequence[Row]) -> plot.Figure:
    """The figure: a panel for reads and one for writes, on the same scale."""
    panels = [
        Panel(way.capitalize(), tuple(Lane(bar["of"], bar) for bar in bars if bar["way"] == way)) for way in PATTERNS
    ]
    figure = draw_lanes(panels, draw_bar, "Bandwidth of one stream (MB/s)")
    for axes in figure.axes:
        axes.set_xlim(0, 1.02 * max(bar["bandwidth_high_bytes_per_s"] for bar in bars))
        axes.xaxis.set_major_formatter(plot.FuncFormatter(lambda value, _: f"{value / MB:,g}"))
    return figure


def draw_bar(axes: plot.Axes, lane: int, label: str, bar: Row) -> str:
    """A bar with its range; its value."""
    middle, low, high = (bar[name] for name in BANDWIDTH)
    said = rate(middle) + (f" ({rate(low)} to {rate(high)})" if high > low else "")
    axes.barh(lane, middle, height=0.7, color=COLOURS[bar["from"]], url=hover(f"{label}: {said}"))
    if high > low:
        axes.plot([low, high], [lane, lane], color=GREY, linewidth=0.9, marker="|")
    return rate(middle)
