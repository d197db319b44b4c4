"""What is published of IOR's easy benchmark on the NEXTGenIO prototype, and of the IO-500 list of then.

It was published on a web page, which has figures and no pages.
"""

from __future__ import annotations

from dataclasses import replace

from neurotier.storage.workload.published import PublishedNumber

SOURCE = "Jackson (EPCC): Global or local - which is best?, 2019"
TB, GB = 1e12, 1e9
PAGE = "web page"

READ, WRITE = "read", "write"

TOTALS = (
    PublishedNumber(
        name="34 nodes with 48 processes each, read",
        quantity=READ,
        value=1.8 * TB,
        unit="bytes/s",
        at=34,
        source=SOURCE,
        page=PAGE,
        figure="Figure 3",
        open_points="Stated as over 1.8 TB/s together",
    ),
    PublishedNumber(
        name="30 nodes with 48 processes each, write",
        quantity=WRITE,
        value=300 * GB,
        unit="bytes/s",
        at=30,
        source=SOURCE,
        page=PAGE,
        figure="Figure 3",
        open_points="Stated as around 300 GB/s together, while reading is stated of 34 nodes",
    ),
    PublishedNumber(
        name="34 nodes with 24 processes each, read",
        quantity=READ,
        value=1.5 * TB,
        unit="bytes/s",
        at=34,
        source=SOURCE,
        page=PAGE,
        figure="Figure 4",
        open_points="Stated as 1.5 TB/s together, the nodes left open",
    ),
    PublishedNumber(
        name="34 nodes with 24 processes each, write",
        quantity=WRITE,
        value=400 * GB,
        unit="bytes/s",
        at=34,
        source=SOURCE,
        page=PAGE,
        figure="Figure 4",
        open_points="Stated as around 400 GB/s together, the nodes left open",
    ),
)
"""Bytes/s of all nodes; where, is their number."""

PROCESSES = (48, 48, 24, 24)
"""How many there were on each node, in the same order."""

NUMBERS = tuple(
    replace(
        total,
        value=total.value / (total.at or 1),
        at=processes,
        open_points=f"{total.open_points}; divided by {total.at:.0f} here.",
    )
    for total, processes in zip(TOTALS, PROCESSES, strict=True)
)
"""Bytes/s of one node, which is what one's own stand beside; where, is the number of its processes."""

LIST = (
    PublishedNumber("First of the IO-500 list, 512 nodes, read", READ, 521 * GB, "bytes/s", None, SOURCE, PAGE, ""),
    PublishedNumber("First of the IO-500 list, 512 nodes, write", WRITE, 336 * GB, "bytes/s", None, SOURCE, PAGE, ""),
)
