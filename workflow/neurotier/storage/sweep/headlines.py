"""Published headline numbers beside one's own, measured at the same settings: the rows of ``headlines.tsv``."""

from __future__ import annotations

from collections.abc import Sequence

from neurotier.core.tables import Row
from neurotier.storage.sweep.medians import Measured, Spot, medians, setting_text
from neurotier.storage.sweep.published import BANDWIDTH, HEADLINES, REQUESTS, VARIATION, Headline

UNITS = {BANDWIDTH: "bytes/s", REQUESTS: "requests/s", VARIATION: "share"}


def headline_rows(rows: Sequence[Row]) -> list[Row]:
    """Every published number, and for each tier what was measured at its setting."""
    spots = medians(rows)
    tiers = list(dict.fromkeys(row["tier"] for row in rows))
    made: list[Row] = []
    for headline in HEADLINES:
        stated = {
            "headline": headline.name,
            "unit": UNITS[headline.quantity],
            "source": headline.source,
            "place": headline.place,
            "open_points": headline.open_points,
        }
        for device, value in headline.stated.items():
            cells = {"device": device, "published": True, "value": float(value), "setting": "", "ratio": None}
            made.append(stated | cells)
        most = max(headline.stated.values())
        for tier in tiers:
            own, setting = own_number(headline, {spot: one for spot, one in spots.items() if spot.tier == tier})
            ratio = None if own is None or headline.quantity not in (BANDWIDTH, REQUESTS) else own / most
            cells = {"device": tier, "published": False, "value": own, "setting": setting, "ratio": ratio}
            made.append(stated | cells)
    return made


def own_number(headline: Headline, spots: dict[Spot, Measured]) -> tuple[float | None, str]:
    """One's own number for a headline, and the setting that it is of; ``None`` if nothing was measured there."""
    fitting = {spot: one for spot, one in spots.items() if fits(headline, spot)}
    if headline.quantity in (BANDWIDTH, REQUESTS):
        numbers = {
            spot: (one.bandwidth if headline.quantity == BANDWIDTH else one.requests).median
            for spot, one in fitting.items()
        }
        if not numbers:
            return None, ""
        best = max(numbers, key=lambda spot: numbers[spot])
        return numbers[best], f"{setting_text(best)}{how(spots[best])}"
    differences: dict[tuple[str, int], float] = {}
    for group in sorted({(spot.set_name, spot.processes) for spot in fitting}):
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
