"""Table I of Hayot-Sasson, Brown and Glatard (2020): measured read and write bandwidths, one stream of ``dd``."""

from __future__ import annotations

import math
from dataclasses import dataclass


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


TABLE_ONE = (
    PublishedDevice("DRAM", 5304.3e6, 3338.2e6),
    PublishedDevice("Optane", 3379.2e6, 2396.2e6),
    PublishedDevice("SSD", 518.6e6, 240.4e6),
    PublishedDevice("Isilon", 117.0e6, 111.8e6),
)


def nearest(read_bytes_per_s: float, write_bytes_per_s: float) -> PublishedDevice:
    """The published device whose bandwidths are nearest, by ratio.

    >>> nearest(4e9, 2e9).name, nearest(20e6, 20e6).name
    ('Optane', 'Isilon')
    """

    def distance(device: PublishedDevice) -> float:
        read, write = device.read_bytes_per_s / read_bytes_per_s, device.write_bytes_per_s / write_bytes_per_s
        return abs(math.log(read)) + abs(math.log(write))

    return min(TABLE_ONE, key=distance)
