"""What is published of IOR's easy benchmark on the NEXTGenIO prototype, and of the IO-500 list of then.

It was published on a web page, which has figures and no pages.
"""

from __future__ import annotations

from neurotier.storage.workload.published import PublishedNumber

SOURCE = "Jackson (EPCC): Global or local - which is best?, 2019"
TB, GB = 1e12, 1e9
PAGE = "web page"

READ, WRITE = "read", "write"

NUMBERS = (
    PublishedNumber(
        name="34 nodes with 48 processes each, read",
        quantity=READ,
        value=1.8 * TB / 34,
        unit="bytes/s",
        at=48,
        source=SOURCE,
        page=PAGE,
        figure="Figure 3",
        open_points="Stated as over 1.8 TB/s together; divided by 34 here.",
    ),
    PublishedNumber(
        name="30 nodes with 48 processes each, write",
        quantity=WRITE,
        value=300 * GB / 30,
        unit="bytes/s",
        at=48,
        source=SOURCE,
        page=PAGE,
        figure="Figure 3",
        open_points="Stated as around 300 GB/s together; divided by 30 here, while reading is stated of 34 nodes.",
    ),
    PublishedNumber(
        name="34 nodes with 24 processes each, read",
        quantity=READ,
        value=1.5 * TB / 34,
        unit="bytes/s",
        at=24,
        source=SOURCE,
        page=PAGE,
        figure="Figure 4",
        open_points="Stated as 1.5 TB/s together, the nodes left open; divided by 34 here.",
    ),
    PublishedNumber(
        name="34 nodes with 24 processes each, write",
        quantity=WRITE,
        value=400 * GB / 34,
        unit="bytes/s",
        at=24,
        source=SOURCE,
        page=PAGE,
        figure="Figure 4",
        open_points="Stated as around 400 GB/s together, the nodes left open; divided by 34 here.",
    ),
)
"""Bytes/s of one node, which is what one's own stand beside."""

LIST = (
    PublishedNumber("First of the IO-500 list, 512 nodes, read", READ, 521 * GB, "bytes/s", None, SOURCE, PAGE, ""),
    PublishedNumber("First of the IO-500 list, 512 nodes, write", WRITE, 336 * GB, "bytes/s", None, SOURCE, PAGE, ""),
)
