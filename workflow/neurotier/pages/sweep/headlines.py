"""The figure ``headlines``: published headline numbers beside one's own, at the same settings."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from neurotier.core.quantities import percent, rate
from neurotier.core.tables import Row
from neurotier.pages.kit import plot
from neurotier.pages.kit.findings import Finding, times_text
from neurotier.pages.kit.hover import hover
from neurotier.pages.kit.lanes import Lane, Panel, annotate_lane, label_lanes, panel_axes
from neurotier.pages.kit.style import ORANGE, SKY, empty_figure, house_style, save_figure, set_title
from neurotier.pages.sweep.figures import SweepTables
from neurotier.storage.sweep.medians import MB, requests_text

LABELS = {"bytes/s": "Bandwidth (MB/s)", "requests/s": "Requests per s", "share": "Difference (%)"}
SCALES = {"bytes/s": MB, "requests/s": 1.0, "share": 0.01}
NOTHING = "No point has the setting of a published number"
NOTE = (
    "Blue: as the paper's text states it; orange: measured here at the same setting, the best where the text leaves it"
    " open, median over repetitions. Buffered: through the page cache, which the published numbers were not."
)


def value_text(value: float | None, unit: str) -> str:
    """A number with its unit.

    >>> value_text(1.005e9, "bytes/s"), value_text(0.05, "share")
    ('1.00 GB/s', '5 %')
    """
    if value is None or unit == "share":
        return percent(value)
    return rate(value) if unit == "bytes/s" else requests_text(value)


def finding(tables: SweepTables) -> Finding:
    """How one's own numbers compare with the highest published ones."""
    ratios = [(row["ratio"], row) for row in tables.headlines if row["ratio"] is not None]
    if not ratios:
        return Finding(NOTHING, shown=False)
    high, low = max(ratios, key=lambda pair: pair[0]), min(ratios, key=lambda pair: pair[0])
    parts = [
        f"{row['device']} reaches {times_text(ratio)} times the highest published number for '{row['headline']}'"
        for ratio, row in ([high] if high is low else [high, low])
    ]
    return Finding("; ".join(parts))


def draw(tables: SweepTables, stem: Path) -> None:
    """Draw the published numbers that one's own stand beside; write SVG, PNG and TSV."""
    said = finding(tables)
    with house_style():
        figure = headlines_figure(tables.headlines) if said.shown else empty_figure(said.sentence)
        if said.shown:
            set_title(figure, said.sentence, NOTE)
        save_figure(figure, stem, tables.headlines)


def headlines_figure(numbers: Sequence[Row]) -> plot.Figure:
    """The figure of at least one headline that there are own numbers for."""
    groups: dict[str, list[Row]] = {}
    for row in numbers:
        if row["value"] is not None:
            groups.setdefault(row["headline"], []).append(row)
    shown = {name: members for name, members in groups.items() if not all(row["published"] for row in members)}
    made = [Panel(name, tuple(Lane(row["device"], row) for row in members)) for name, members in shown.items()]
    figure, all_axes = panel_axes(made)
    for axes, panel in zip(all_axes, made, strict=True):
        (unit,) = {row["unit"] for _, row in panel.filled()}
        for lane, row in panel.filled():
            times = f"; {times_text(row['ratio'])} x" if row["ratio"] is not None else ""
            setting = f" ({row['setting']})" if row["setting"] else ""
            text = f"{value_text(row['value'], unit)}{times}{setting}"
            colour, url = SKY if row["published"] else ORANGE, hover(f"{row['device']}: {text}")
            axes.barh(lane, row["value"] / SCALES[unit], height=0.66, color=colour, url=url)
            annotate_lane(axes, lane, text)
        label_lanes(axes, panel)
        axes.set_xlabel(LABELS[unit])
        axes.xaxis.set_major_locator(plot.MaxNLocator(5))
        axes.xaxis.set_major_formatter(plot.FuncFormatter(lambda value, _: f"{value:,.9g}"))
    return figure
