"""Table I of Hayot-Sasson, Brown and Glatard (2020): measured read and write bandwidths, one stream of ``dd``."""

from __future__ import annotations

import math
from dataclasses import dataclass

PUBLISHED_MB_S = {
    "DRAM": (5304.3, 3338.2),
    "Optane": (3379.2, 2396.2),
    "local SSD": (518.6, 240.4),
    "Isilon": (117.0, 111.8),
}
"""Table I as printed: read and write bandwidth, MB/s."""


@dataclass(frozen=True)
class PublishedDevice:
    """A row of that table.

    Attributes
    ----------
    name
        ``Optane`` is its persistent memory, ``SSD`` its local disk, ``Isilon`` its shared storage on NFS.
    read_bytes_per_s, write_bytes_per_s
        Bandwidths.
    """

    name: str
    read_bytes_per_s: float
    write_bytes_per_s: float


TABLE_ONE = tuple(
    PublishedDevice(name.removeprefix("local "), 1e6 * read_mb_s, 1e6 * write_mb_s)
    for name, (read_mb_s, write_mb_s) in PUBLISHED_MB_S.items()
)
"""In the order of that table."""


def nearest(read_bytes_per_s: float, write_bytes_per_s: float) -> PublishedDevice:
    """The published device whose bandwidths are nearest, by ratio.

    >>> nearest(4e9, 2e9).name, nearest(20e6, 20e6).name
    ('Optane', 'Isilon')
    """

    def distance(device: PublishedDevice) -> float:
        read, write = device.read_bytes_per_s / read_bytes_per_s, device.write_bytes_per_s / write_bytes_per_s
        return abs(math.log(read)) + abs(math.log(write))

    return min(TABLE_ONE, key=distance)
