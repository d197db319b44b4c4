"""The figure ``one_stream``: each tier as one stream of ``dd`` sees it, beside the published devices."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from neurotier.core.kinds import is_in_memory
from neurotier.core.quantities import rate
from neurotier.core.tables import Row
from neurotier.pages.kit import plot
from neurotier.pages.kit.findings import Finding
from neurotier.pages.kit.hover import hover
from neurotier.pages.kit.style import (
    BLUE,
    GREY,
    LIGHT_GREY,
    SKY,
    WIDTH_IN,
    empty_figure,
    house_style,
    save_figure,
    set_title,
)
from neurotier.pages.probe.concurrency import short_rate
from neurotier.storage.table_one import TABLE_ONE, nearest

LANE_IN = 0.28
NOTE = (
    "One buffered stream, 1 MiB a request, as by dd: writes include the flush to the device; reads begin with an empty"
    " page cache unless said. Medians; whiskers: range of the repetitions. Grey: Table I of Hayot-Sasson, Brown and"
    " Glatard (2020), one stream of dd."
)


@dataclass(frozen=True)
class Bar:
    """One bar: whose, bandwidth with its range in bytes/s, and colour."""

    label: str
    bytes_per_s: float
    low: float
    high: float
    colour: str


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
    tiers, said = single(rows), finding(rows)
    bars = {"Read": read_bars(tiers), "Write": write_bars(tiers)}
    with house_style():
        figure = bars_figure(bars) if said.shown else empty_figure(said.sentence)
        if said.shown:
            set_title(figure, said.sentence, NOTE)
        save_figure(figure, stem, table(bars) if said.shown else [])


def read_bars(tiers: dict[str, dict[str, Row]]) -> list[Bar]:
    """Reads of each tier, cold and from the page cache, and the published ones."""
    bars = []
    for tier, patterns in tiers.items():
        memory = is_in_memory(patterns["read"]["kind"])
        bars.append(bar_of(patterns["read"], tier, SKY if memory else BLUE))
        if "cached_read" in patterns:
            bars.append(bar_of(patterns["cached_read"], f"{tier}, from the page cache", SKY))
    return bars + [published_bar(device.name, device.read_bytes_per_s) for device in TABLE_ONE]


def write_bars(tiers: dict[str, dict[str, Row]]) -> list[Bar]:
    """Writes of each tier, and the published ones."""
    bars = [
        bar_of(patterns["write"], tier, SKY if is_in_memory(patterns["write"]["kind"]) else BLUE)
        for tier, patterns in tiers.items()
    ]
    return bars + [published_bar(device.name, device.write_bytes_per_s) for device in TABLE_ONE]


def bar_of(row: Row, label: str, colour: str) -> Bar:
    """The bar of a measurement."""
    low, high = row["bandwidth_low_bytes_per_s"], row["bandwidth_high_bytes_per_s"]
    return Bar(label, row["bandwidth_bytes_per_s"], low, high, colour)


def published_bar(name: str, bytes_per_s: float) -> Bar:
    """The bar of a published device, which has no range."""
    return Bar(f"published {name}", bytes_per_s, bytes_per_s, bytes_per_s, LIGHT_GREY)


def bars_figure(bars: dict[str, list[Bar]]) -> plot.Figure:
    """The figure: a panel for reads and one for writes, on the same scale."""
    lanes = [len(members) for members in bars.values()]
    figure = plot.Figure(figsize=(WIDTH_IN, 1.9 + LANE_IN * sum(lanes)))
    panels = figure.subplots(len(bars), 1, sharex=True, squeeze=False, height_ratios=lanes)[:, 0]
    for axes, (way, members) in zip(panels, bars.items(), strict=True):
        axes.set_title(way)
        draw_bars(axes, members)
    greatest = max(bar.high for members in bars.values() for bar in members)
    panels[-1].set_xlim(0, 1.15 * greatest)
    panels[-1].set_xlabel("Bandwidth of one stream")
    panels[-1].xaxis.set_major_locator(plot.MaxNLocator(8, steps=[1, 2, 5, 10]))
    panels[-1].xaxis.set_major_formatter(plot.FuncFormatter(lambda value, _: short_rate(value)))
    return figure


def draw_bars(axes: plot.Axes, bars: Sequence[Bar]) -> None:
    """Bars from top to bottom, each with its value."""
    for lane, bar in enumerate(bars):
        spread = [[bar.bytes_per_s - bar.low], [bar.high - bar.bytes_per_s]] if bar.high > bar.low else None
        said = f"{bar.label}: {rate(bar.bytes_per_s)}"
        said += f" ({rate(bar.low)} to {rate(bar.high)})" if bar.high > bar.low else ""
        axes.barh(lane, bar.bytes_per_s, height=0.7, color=bar.colour, url=hover(said))
        axes.errorbar([bar.bytes_per_s], [lane], xerr=spread, ecolor=GREY, elinewidth=0.9, capsize=2, linestyle="")
        axes.annotate(rate(bar.bytes_per_s), (bar.high, lane), (5, 0), textcoords="offset points", va="center")
    axes.set_yticks(range(len(bars)), [bar.label for bar in bars])
    axes.set_ylim(len(bars) - 0.5, -0.5)
    axes.grid(visible=False, axis="y")


def table(bars: dict[str, list[Bar]]) -> list[Row]:
    """The numbers behind the figure."""
    return [
        {
            "way": way.lower(),
            "of": bar.label,
            "bandwidth_bytes_per_s": bar.bytes_per_s,
            "bandwidth_low_bytes_per_s": bar.low,
            "bandwidth_high_bytes_per_s": bar.high,
        }
        for way, members in bars.items()
        for bar in members
    ]
