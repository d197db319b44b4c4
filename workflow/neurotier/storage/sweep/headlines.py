"""Published headline numbers beside one's own, measured at the same settings: the rows of ``headlines.tsv``."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from neurotier.core.quantities import counted
from neurotier.core.tables import Row
from neurotier.storage.published import HEADLINES
from neurotier.storage.sweep.medians import Measured, Spot, medians, setting_text


def headline_rows(rows: Sequence[Row]) -> list[Row]:
    """Every published number, and for each tier what was measured at its setting."""
    spots = medians(rows)
    made: list[Row] = []
    for headline in HEADLINES:
        named = {name: headline[name] for name in ("headline", "unit", "source", "place", "open_points")}
        for device, value in headline["stated"].items():
            cells = {"device": device, "published": True, "value": float(value), "setting": "", "ratio": None}
            made.append(named | cells)
        most = max(headline["stated"].values())
        for tier in dict.fromkeys(row["tier"] for row in rows):
            own, setting = own_number(headline, {spot: one for spot, one in spots.items() if spot.tier == tier})
            ratio = None if own is None or headline["unit"] == "share" else own / most
            cells = {"device": tier, "published": False, "value": own, "setting": setting, "ratio": ratio}
            made.append(named | cells)
    return made


def own_number(headline: dict[str, Any], spots: dict[Spot, Measured]) -> tuple[float | None, str]:
    """One's own number for a headline, and the setting that it is of; ``None`` if nothing was measured there."""
    setting, numbers = headline["setting"], list[tuple[float, str]]()
    fitting = {spot: one for spot, one in spots.items() if all(getattr(spot, key) in setting[key] for key in setting)}
    if headline["unit"] == "share":
        for group in sorted({(spot.set_name, spot.processes) for spot in fitting}):
            members = [one for spot, one in fitting.items() if (spot.set_name, spot.processes) == group]
            reached = [one.bandwidth.median for one in members]
            if len(reached) == len(setting["block_bytes"]):
                text = f"largest with {counted(group[1], 'process')}{how(members[0])}"
                numbers.append((1 - min(reached) / max(reached), text))
    else:
        for spot, one in fitting.items():
            figure = one.requests if headline["unit"] == "requests/s" else one.bandwidth
            numbers.append((figure.median, f"{setting_text(spot)}{how(one)}"))
    return max(numbers, key=lambda pair: pair[0], default=(None, ""))


def how(one: Measured) -> str:
    """What tells a buffered measurement apart."""
    return "" if one.direct else ", buffered"
