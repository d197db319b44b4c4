"""Table I of Hayot-Sasson, Brown and Glatard (2020): measured read and write bandwidths, one stream of ``dd``."""

from __future__ import annotations

import math
from dataclasses import dataclass

from neurotier.storage.published import GIVEN

PUBLISHED_MB_S: dict[str, tuple[float, float]] = {name: (*both,) for name, both in GIVEN["table_one"].items()}
"""Table I as printed: read and write bandwidth, MB/s, where 1 GB of ``dd`` counts as 1,024 MB."""

MB_PER_GB = 1024
"""As printed; ``dd``, which gives MB/s below 1 GB/s, means 1,000."""


def bytes_per_s(printed_mb_s: float) -> float:
    """What ``dd`` meant by a bandwidth of the table, bytes/s.

    >>> [f"{bytes_per_s(printed):.3e}" for printed in (5304.3, 518.6)]
    ['5.180e+09', '5.186e+08']
    """
    return 1e9 * printed_mb_s / MB_PER_GB if printed_mb_s >= MB_PER_GB else 1e6 * printed_mb_s


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
    PublishedDevice(name.removeprefix("local "), bytes_per_s(read_mb_s), bytes_per_s(write_mb_s))
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
