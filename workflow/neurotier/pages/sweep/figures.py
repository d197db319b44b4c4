"""All figures of a sweep, from its tables; each is drawn in the module of its name."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from neurotier.core.settings import SweepSettings
from neurotier.core.tables import Row
from neurotier.pages.kit.findings import Finding
from neurotier.pages.sweep.headlines import draw_headlines, headlines_finding
from neurotier.pages.sweep.heat_maps import draw_heat_map, heat_map_finding
from neurotier.pages.sweep.lines import draw_lines, lines_finding

OF_A_SET = ("heat_map", "lines")
"""Figures that every set has on every tier."""

HEADLINES = "headlines"


def figure_names(settings: SweepSettings) -> dict[str, list[str]]:
    """Names of the figures of a configuration, by kind.

    >>> figure_names(SweepSettings(["nvme"], {"a": None}, 0.5, 1))["lines"]
    ['lines_nvme_a']
    """
    found = {kind: [f"{kind}_{tier}_{name}" for tier in settings.tiers for name in settings.sets] for kind in OF_A_SET}
    return {HEADLINES: [HEADLINES], **found}


def by_set(rows: Sequence[Row]) -> dict[tuple[str, str], list[Row]]:
    """Rows of every tier and set, in order."""
    groups: dict[tuple[str, str], list[Row]] = {}
    for row in rows:
        groups.setdefault((row["tier"], row["set"]), []).append(row)
    return groups


def draw_all(rows: Sequence[Row], numbers: Sequence[Row], folder: Path) -> None:
    """Draw every figure as ``<folder>/<name>.svg``, ``.png`` and ``.tsv``.

    Parameters
    ----------
    rows, numbers
        Rows of ``sweep.tsv`` and ``headlines.tsv``.
    folder
        Where to; it is made.
    """
    draw_headlines(numbers, folder / HEADLINES)
    for (tier, name), members in by_set(rows).items():
        draw_heat_map(members, folder / f"heat_map_{tier}_{name}")
        draw_lines(members, folder / f"lines_{tier}_{name}")


def findings(rows: Sequence[Row], numbers: Sequence[Row]) -> dict[str, Finding]:
    """What every figure says, by name."""
    found = {HEADLINES: headlines_finding(numbers)}
    for (tier, name), members in by_set(rows).items():
        found[f"heat_map_{tier}_{name}"] = heat_map_finding(members)
        found[f"lines_{tier}_{name}"] = lines_finding(members)
    return found
