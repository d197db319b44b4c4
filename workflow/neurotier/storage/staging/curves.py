"""Curves of response times against one number of processes, all else being equal, and what they show.

The published experiment varies the servers (its Figure 6), and the readers or the writers, with strong and with weak
scaling (its Figures 7 and 8).
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

from neurotier.core.kinds import is_in_memory
from neurotier.core.quantities import counted
from neurotier.core.tables import Row, columns, grouped
from neurotier.storage.spread import Spread, measured_rows
from neurotier.storage.staging.exchange import IN_MEMORY

COUNTS = ("writers", "readers", "servers")
SAME = ["engine", "set", "per", *COUNTS, "bytes_per_writer", "bytes_per_reader", "repetition"]
"""Columns that are equal in rows of the same point on different tiers."""


class Curve(NamedTuple):
    """Response times against one number of processes.

    Attributes
    ----------
    tier, engine
        Where the data were, and the engine.
    axis
        ``writers``, ``readers`` or ``servers``.
    others
        The two other numbers, in that order.
    times
        Response times over the repetitions, s, by the number on the axis.
    """

    tier: str
    engine: str
    axis: str
    others: tuple[int, ...]
    times: dict[int, Spread]

    @property
    def name(self) -> str:
        """Where the data were, and the engine, in words."""
        return place_text(self.tier, self.engine)

    @property
    def best(self) -> int:
        """The number with the lowest median; among equal medians, the smallest number."""
        return min(self.times, key=lambda count: (self.times[count].median, count))

    @property
    def others_text(self) -> str:
        """The other numbers in words.

        >>> Curve("disk", "ray", "readers", (4, 1), {}).others_text
        '4 writers, 1 server'
        """
        pairs = zip((name for name in COUNTS if name != self.axis), self.others, strict=True)
        return ", ".join(counted(count, name.removesuffix("s")) for name, count in pairs if count)

    def slower(self, count: int) -> float:
        """How many times as long as this number the largest number takes."""
        return self.times[max(self.times)].median / self.times[count].median


def place_text(tier: str, engine: str) -> str:
    """Where the data of a point were, and the engine, in words.

    >>> place_text("disk", "ray"), place_text("disk", "adios2-sst")
    ('ray on disk', 'adios2-sst in memory')
    """
    return f"{engine} in memory" if engine in IN_MEMORY else f"{engine} on {tier}"


def curves(rows: Iterable[Row], axis: str, way: str, per: str | None = None) -> list[Curve]:
    """The curve with the most numbers on its axis, at least two, for every tier and engine.

    Among such curves, the one with the most other processes is taken.

    Parameters
    ----------
    rows
        Rows of ``staging.tsv``.
    axis
        ``writers``, ``readers`` or ``servers``.
    way
        ``write`` or ``read``.
    per
        Only curves of strong scaling (``step``) or of weak scaling (``client``).
    """
    names = ["tier", "engine", "per", "set", *(name for name in COUNTS if name != axis)]
    groups = grouped((tuple(row[name] for name in names), row) for row in measured_rows(rows))
    found = []
    for (tier, engine, own_per, _, *rest), members in groups.items():
        by_count = grouped((row[axis], row) for row in members)
        times = {count: Spread.of(by_count[count], f"{way}_s") for count in sorted(by_count)}
        if len(times) > 1 and per in (None, own_per):
            found.append(Curve(tier, engine, axis, tuple(rest), times))
    of_place = grouped((one.name, one) for one in found)
    return [max(some, key=lambda one: (len(one.times), one.others)) for some in of_place.values()]


class PageCacheEffect(NamedTuple):
    """Reading from a tier that is not in memory, compared with reading from one that is.

    Attributes
    ----------
    tier, engine
        Where the data were, and the engine.
    write_ratio, read_ratio
        How many times as long as in memory each takes, as a median over the same points.
    device_share
        Share of the bytes read that came from the device; ``None`` if the kernel did not report it.
    """

    tier: str
    engine: str
    write_ratio: float
    read_ratio: float
    device_share: float | None


def page_cache_effects(rows: Iterable[Row]) -> list[PageCacheEffect]:
    """Compare every tier not in memory with one in memory over the points that both have."""
    from pandas import DataFrame  # imported here, since rules also import this module

    known = DataFrame(
        [row for row in measured_rows(rows) if row["engine"] not in IN_MEMORY], columns=columns("staging")
    )
    fast = known["kind"].map(is_in_memory).astype(bool)
    both = known[~fast].merge(known[fast].drop_duplicates(SAME), on=SAME, suffixes=("", "_memory"))
    found = []
    for (tier, engine), own in both.groupby(["tier", "engine"], sort=False):
        writes, reads = ((own[name] / own[f"{name}_memory"]).median() for name in ("write_s", "read_s"))
        device = own["device_read_bytes"]
        share = None if device.isna().any() else device.sum() / own["read_bytes"].sum()
        found.append(PageCacheEffect(tier, engine, writes, reads, share))
    return found


def longest_wait(rows: Iterable[Row]) -> tuple[float, Row, str] | None:
    """The point at which clients wait for each other for the largest share of the time; ``None`` if there is none.

    Returns
    -------
    tuple
        Share of the time, from the first client's begin to the last one's end, during which the average client was not
        busy with its request; the point; and ``write`` or ``read``.
    """
    found = [
        (1 - row[f"{way}_client_s"] / row[f"{way}_s"], row, way)
        for row in measured_rows(rows)
        for way in ("write", "read")
    ]
    return max(found, key=lambda one: one[0], default=None)
