"""The registry of the sweep's figures, which are drawn for every set on every tier."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from neurotier.core.settings import SweepSettings
from neurotier.core.tables import Row
from neurotier.pages.kit.registry import Entry

FIGURES = (
    Entry(
        "heat_map",
        "Bandwidth by block size and processes",
        "A panel per pattern and queue depth, a cell per block size and number of processes, in it the bandwidth of all"
        " processes together. As Figures 2 to 5 of the Optane report.",
    ),
    Entry(
        "lines",
        "Bandwidth by block size",
        "A panel per pattern and queue depth, a line per number of processes. As Figures 2 and 5 of the DUNE paper.",
    ),
)


def drawn(settings: SweepSettings) -> list[Entry]:
    """The figures of a configuration, each named like its files.

    >>> [entry.name for entry in drawn(SweepSettings(["nvme"], {"a": None}, 0.5, 1))]
    ['heat_map_nvme_a', 'lines_nvme_a']
    """
    parts = [f"{tier}_{name}" for tier in settings.tiers for name in settings.sets]
    return [replace(entry, name=f"{entry.name}_{part}") for entry in FIGURES for part in parts]


def by_set(rows: Sequence[Row]) -> dict[str, list[Row]]:
    """Rows of ``sweep.tsv`` of every set on every tier, by ``TIER_SET``."""
    found: dict[str, list[Row]] = {}
    for row in rows:
        found.setdefault(f"{row['tier']}_{row['set']}", []).append(row)
    return found
