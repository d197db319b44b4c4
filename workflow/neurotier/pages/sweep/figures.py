"""The registry of the sweep's figures, of which two are drawn for every set on every tier."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import NamedTuple

from neurotier.core.settings import SweepSettings
from neurotier.core.tables import Row, read_table
from neurotier.pages.kit.registry import Entry

HEADLINES = "headlines"
FIGURES = (
    Entry(
        HEADLINES,
        "Beside published numbers",
        "Numbers that the two papers state in their text, and the reader's own at the same setting.",
    ),
    Entry(
        "heat_map",
        "Bandwidth by block size and processes",
        "A panel per pattern and queue depth, a cell per block size and number of processes, in it the bandwidth of all"
        " processes together. As Figures 2 to 5 of the Optane report.",
    ),
    Entry(
        "lines",
        "Bandwidth and requests",
        "Bandwidth and requests per second against block size, a line per number of processes; and bandwidth against"
        " processes, a line per block size. As Figures 2, 3 and 5 of the DUNE paper.",
    ),
)


class SweepTables(NamedTuple):
    """Rows of ``sweep.tsv`` and of ``headlines.tsv``."""

    points: Sequence[Row]
    headlines: Sequence[Row]

    @classmethod
    def read(cls, points: Path, headlines: Path) -> SweepTables:
        """Read the two files."""
        return cls(read_table(points, "sweep"), read_table(headlines, "headlines"))


def drawn(settings: SweepSettings) -> list[Entry]:
    """The figures of a configuration, each named like its files.

    >>> [entry.name for entry in drawn(SweepSettings(["nvme"], {"a": None}, 0.5, 1))]
    ['headlines', 'heat_map_nvme_a', 'lines_nvme_a']
    """
    parts = [f"{tier}_{name}" for tier in settings.tiers for name in settings.sets]
    whole, *of_sets = FIGURES
    return [whole, *(replace(entry, name=f"{entry.name}_{part}") for entry in of_sets for part in parts)]


def by_set(tables: SweepTables) -> dict[str, SweepTables]:
    """The tables of every set on every tier, by ``TIER_SET``."""
    points: dict[tuple[str, str], list[Row]] = {}
    for row in tables.points:
        points.setdefault((row["tier"], row["set"]), []).append(row)
    return {f"{tier}_{name}": SweepTables(rows, tables.headlines) for (tier, name), rows in points.items()}
