"""Table I of Hayot-Sasson, Brown and Glatard (2020): measured read and write bandwidths, one stream of ``dd``."""

from __future__ import annotations

import math

from neurotier.storage.published import GIVEN

PUBLISHED_MB_S: dict[str, tuple[float, float]] = {name: (*both,) for name, both in GIVEN["table_one"].items()}
"""Table I as printed: read and write bandwidth, MB/s, where 1 GB of ``dd`` counts as 1,024 MB."""

MB_PER_GB = 1024
"""MB in a GB as the table prints them; ``dd``, which prints MB/s below 1 GB/s, means 1,000."""


def bytes_per_s(printed_mb_s: float) -> float:
    """What ``dd`` meant by a bandwidth of the table, bytes/s.

    >>> [f"{bytes_per_s(printed):.3e}" for printed in (5304.3, 518.6)]
    ['5.180e+09', '5.186e+08']
    """
    return 1e9 * printed_mb_s / MB_PER_GB if printed_mb_s >= MB_PER_GB else 1e6 * printed_mb_s


TABLE_ONE = {name.removeprefix("local "): tuple(map(bytes_per_s, both)) for name, both in PUBLISHED_MB_S.items()}
"""Read and write bandwidth of each device, bytes/s, in the order of the table: ``Optane`` is the persistent memory,
``SSD`` the local disk, ``Isilon`` the shared storage over NFS."""


def nearest(read_bytes_per_s: float, write_bytes_per_s: float) -> str:
    """The published device with the nearest bandwidths, by ratio.

    >>> nearest(4e9, 2e9), nearest(20e6, 20e6)
    ('Optane', 'Isilon')
    """

    def distance(device: str) -> float:
        read, write = TABLE_ONE[device]
        return abs(math.log(read / read_bytes_per_s)) + abs(math.log(write / write_bytes_per_s))

    return min(TABLE_ONE, key=distance)
