"""How streams share a tier: fairly in the device's time, none faster than one stream can be."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass
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
    rate_bytes_per_s: float = 0.0

    @property
    def is_capped(self) -> bool:
        """Whether a stream of these is as fast as it can be."""
        return self.rate_bytes_per_s >= self.cap_bytes_per_s * (1 - 1e-9)


def share_out(demands: list[Demand], time_share: float = 1.0) -> float:
    """Give every stream the same part of the device's time, or less if it cannot use that; the part left over.

    Examples
    --------
    Two readers and a slow one, on a device that reads 100 bytes/s:

    >>> fast, slow = Demand(2, 1000, 100), Demand(1, 10, 100)
    >>> share_out([fast, slow])
    0.0
    >>> fast.rate_bytes_per_s, slow.rate_bytes_per_s
    (45.0, 10.0)
    """
    left, streams = time_share, sum(demand.streams for demand in demands)
    for demand in sorted(demands, key=lambda demand: demand.cap_bytes_per_s / demand.loaded_bytes_per_s):
        used = min(demand.cap_bytes_per_s / demand.loaded_bytes_per_s, left / streams)
        demand.rate_bytes_per_s = used * demand.loaded_bytes_per_s
        left -= used * demand.streams
        streams -= demand.streams
    return max(left, 0.0)
