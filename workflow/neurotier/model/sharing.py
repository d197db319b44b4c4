"""How streams share a tier: each direction gets its half of the device's time, each stream its part of that.

That reading and writing get a half each, and what one does not need goes to the other, is what the published runs
show: on the SSD reading fell from 518 to 260 MB/s when write-back began; on Optane in App Direct mode 5 readers moved
as much as 20 writers.
"""

from __future__ import annotations

from dataclasses import dataclass, field


@dataclass(slots=True)
class Demand:
    """So many streams that are alike.

    Parameters
    ----------
    streams
        How many.
    cap_bytes_per_s
        What each could move if it had the tier alone.
    loaded_bytes_per_s
        What the tier moves of this kind when it does nothing else.
    rate_bytes_per_s
        What each gets: the result.
    """

    streams: int
    cap_bytes_per_s: float
    loaded_bytes_per_s: float
    rate_bytes_per_s: float = field(init=False)

    @property
    def is_capped(self) -> bool:
        """Whether a stream of these is as fast as it can be."""
        return self.rate_bytes_per_s >= self.cap_bytes_per_s * (1 - 1e-9)


def split(reading: float, writing: float, mixed: float) -> tuple[float, float]:
    """The parts of the device's time that reading and writing get, of those that they could use.

    Examples
    --------
    >>> split(2.0, 2.0, mixed=1.0), split(2.0, 0.25, mixed=1.0), split(2.0, 2.0, mixed=2.0), split(2.0, 0.0, mixed=0.5)
    ((0.5, 0.5), (0.75, 0.25), (1.0, 1.0), (1.0, 0.0))
    """
    if not reading or not writing:
        return min(reading, 1.0), min(writing, 1.0)
    reading, writing = min(reading, 1.0), min(writing, 1.0)
    for_reading = min(reading, max(mixed / 2, mixed - writing))
    return for_reading, min(writing, mixed - for_reading)


def share_out(demands: list[Demand], part: float) -> None:
    """Share a part of the device's time out to streams: the same for each, or less if it cannot use that.

    Examples
    --------
    Two readers and a slow one, on a device that reads 100 bytes/s:

    >>> fast, slow = Demand(2, 1000, 100), Demand(1, 10, 100)
    >>> share_out([fast, slow], 1.0)
    >>> fast.rate_bytes_per_s, slow.rate_bytes_per_s
    (45.0, 10.0)
    """
    streams = sum([demand.streams for demand in demands])
    for demand in sorted(demands, key=lambda demand: demand.cap_bytes_per_s / demand.loaded_bytes_per_s):
        used = min(demand.cap_bytes_per_s / demand.loaded_bytes_per_s, part / streams)
        demand.rate_bytes_per_s = used * demand.loaded_bytes_per_s
        part = max(part - used * demand.streams, 0.0)
        streams -= demand.streams


def wanted(demands: list[Demand]) -> float:
    """The part of the device's time that streams could use."""
    return sum([demand.streams * demand.cap_bytes_per_s / demand.loaded_bytes_per_s for demand in demands])
