"""Published headline numbers beside one's own, at the same settings; and the figure ``headlines``."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from matplotlib.figure import Figure
from matplotlib.ticker import FuncFormatter, MaxNLocator

from neurotier.core.quantities import percent, rate
from neurotier.core.tables import Row
from neurotier.pages.kit.findings import Finding, times_text
from neurotier.pages.kit.lanes import Lane, Panel, beside, label_lanes, panel_axes
from neurotier.pages.kit.style import ORANGE, SKY, empty_figure, house_style, save_figure, state
from neurotier.storage.sweep.medians import (
    MB,
    Measured,
    Spot,
    medians,
    requests_text,
    setting_text,
)
from neurotier.storage.sweep.published import BANDWIDTH, HEADLINES, REQUESTS, Headline

UNITS = {"bandwidth": "bytes/s", "requests": "requests/s", "variation": "share"}
LABELS = {"bandwidth": "Bandwidth (MB/s)", "requests": "Requests per s", "variation": "Difference (%)"}
SCALES = {"bandwidth": MB, "requests": 1.0, "variation": 0.01}
NOTHING = "No point has the setting of a published number"
NOTE = (
    "Blue: as the paper's text states it; orange: measured here at the same setting, the best where the text leaves it"
    " open, median over repetitions. Buffered: through the page cache, which the published numbers were not."
)


def headline_rows(rows: Sequence[Row]) -> list[Row]:
    """Every published number, and for each tier what was measured at its setting."""
    found = medians(rows)
    tiers = list(dict.fromkeys(row["tier"] for row in rows))
    made: list[Row] = []
    for headline in HEADLINES:
        told = {"headline": headline.name, "unit": UNITS[headline.quantity]}
        about = {"source": headline.source, "place": headline.place, "open_points": headline.open_points}
        for device, value in headline.stated.items():
            cells = {"device": device, "published": True, "value": float(value), "setting": "", "ratio": None}
            made.append(told | cells | about)
        most = max(headline.stated.values())
        for tier in tiers:
            own, setting = own_number(headline, {spot: one for spot, one in found.items() if spot.tier == tier})
            ratio = None if own is None or headline.quantity not in (BANDWIDTH, REQUESTS) else own / most
            cells = {"device": tier, "published": False, "value": own, "setting": setting, "ratio": ratio}
            made.append(told | cells | about)
    return made


def own_number(headline: Headline, found: dict[Spot, Measured]) -> tuple[float | None, str]:
    """One's own number for a headline, and the setting that it is of; ``None`` if nothing was measured there."""
    fitting = {spot: one for spot, one in found.items() if fits(headline, spot)}
    if headline.quantity in (BANDWIDTH, REQUESTS):
        numbers = {
            spot: (one.bandwidth if headline.quantity == BANDWIDTH else one.requests).median
            for spot, one in fitting.items()
        }
        if not numbers:
            return None, ""
        best = max(numbers, key=lambda spot: numbers[spot])
        return numbers[best], f"{setting_text(best)}{how(found[best])}"
    differences: dict[tuple[str, int], float] = {}
    for group in {(spot.set_name, spot.processes) for spot in fitting}:
        reached = [one.bandwidth.median for spot, one in fitting.items() if (spot.set_name, spot.processes) == group]
        if len(reached) == len(headline.block_sizes):
            differences[group] = 1 - min(reached) / max(reached)
    if not differences:
        return None, ""
    most = max(differences, key=lambda group: differences[group])
    (one, *_) = fitting.values()
    return differences[most], f"largest with {most[1]} process{'es' * (most[1] > 1)}{how(one)}"


def how(one: Measured) -> str:
    """What tells a buffered measurement apart."""
    return "" if one.direct else ", buffered"


def fits(headline: Headline, spot: Spot) -> bool:
    """Whether a spot has the setting of a headline, as far as that is known."""
    return (
        spot.pattern in headline.patterns
        and (not headline.block_sizes or spot.block_bytes in headline.block_sizes)
        and headline.processes in (None, spot.processes)
        and headline.queue_depth in (None, spot.queue_depth)
    )


def value_text(value: float | None, unit: str) -> str:
    """A number with its unit.

    >>> value_text(1.005e9, "bytes/s"), value_text(0.05, "share")
    ('1.00 GB/s', '5 %')
    """
    if value is None or unit == "share":
        return percent(value)
    return rate(value) if unit == "bytes/s" else requests_text(value)


def headlines_finding(numbers: Sequence[Row]) -> Finding:
    """How one's own numbers compare with the highest published ones."""
    ratios = [(row["ratio"], row) for row in numbers if row["ratio"] is not None]
    if not ratios:
        return Finding(NOTHING, shown=False)
    high, low = max(ratios, key=lambda pair: pair[0]), min(ratios, key=lambda pair: pair[0])
    parts = [
        f"{row['device']} reaches {times_text(ratio)} times the highest published number for '{row['headline']}'"
        for ratio, row in ([high] if high is low else [high, low])
    ]
    return Finding("; ".join(parts))


def draw_headlines(numbers: Sequence[Row], stem: Path) -> None:
    """Draw the published numbers that one's own stand beside; write SVG, PNG and TSV."""
    finding = headlines_finding(numbers)
    with house_style():
        figure = draw(numbers) if finding.shown else empty_figure(finding.sentence)
        if finding.shown:
            state(figure, finding.sentence, NOTE)
        save_figure(figure, stem, numbers)


def draw(numbers: Sequence[Row]) -> Figure:
    """The figure of at least one headline that there are own numbers for."""
    groups: dict[str, list[Row]] = {}
    for row in numbers:
        if row["value"] is not None:
            groups.setdefault(row["headline"], []).append(row)
    shown = {name: members for name, members in groups.items() if not all(row["published"] for row in members)}
    quantities = {headline.name: headline.quantity for headline in HEADLINES}
    made = [Panel(name, tuple(Lane(row["device"], row) for row in members)) for name, members in shown.items()]
    figure, all_axes = panel_axes(made)
    for axes, panel in zip(all_axes, made, strict=True):
        quantity = quantities[panel.title]
        for lane, row in panel.filled():
            axes.barh(lane, row["value"] / SCALES[quantity], height=0.66, color=SKY if row["published"] else ORANGE)
            times = f"; {times_text(row['ratio'])} x" if row["ratio"] is not None else ""
            setting = f" ({row['setting']})" if row["setting"] else ""
            beside(axes, lane, f"{value_text(row['value'], row['unit'])}{times}{setting}")
        label_lanes(axes, panel)
        axes.set_xlabel(LABELS[quantity])
        axes.xaxis.set_major_locator(MaxNLocator(5))
        axes.xaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:,.9g}"))
    return figure
