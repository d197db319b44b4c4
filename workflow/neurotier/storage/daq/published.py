"""What the DUNE paper's text states of its DAQ buffer.

The text at hand has sections and no pages, so sections stand in their place.
"""

from __future__ import annotations

from neurotier.storage.workload.published import PublishedNumber

SOURCE = "Abed Abud, Lehmann Miotto and Sipos: Persistent memory for the DUNE data acquisition system"
GIB = float(1 << 30)
GB = 1e9

RATE_BYTES_PER_S = GB
"""What comes to each of its writers."""

HELD, THROUGHPUT, BUFFER = "held", "throughput", "buffer"
"""Writers that hold their rate; bytes/s of all writers; share of what comes that a buffer must hold."""

NUMBERS = (
    PublishedNumber(
        name="Writers at 1 GB/s that six DCPMMs hold, with PMDK",
        quantity=HELD,
        value=4,
        unit="writers",
        at=4,
        source=SOURCE,
        page="section V",
        figure="Figure 7",
        open_points="'Satisfactory up to four threads'; without PMDK throughput is some 20 % higher.",
    ),
    PublishedNumber(
        name="Throughput of all DCPMMs, interleaved, from 4 writers on",
        quantity=THROUGHPUT,
        value=7 * GIB,
        unit="bytes/s",
        at=4,
        source=SOURCE,
        page="section V",
        figure="Figure 8",
        open_points="Called 80 % of the target of 10 GB/s; 7 GiB/s are 75 % of it, and 70 % of 10 GiB/s.",
    ),
    PublishedNumber(
        name="Throughput of all DCPMMs, each by itself, 5 writers",
        quantity=THROUGHPUT,
        value=0.4 * 7 * GIB,
        unit="bytes/s",
        at=5,
        source=SOURCE,
        page="section V",
        figure="Figure 8",
        open_points="Stated as approximately 60 % lower than interleaved, which is 7 GiB/s.",
    ),
    PublishedNumber(
        name="Buffer for 100 s where 10 GiB/s come and 5 GiB/s are written",
        quantity=BUFFER,
        value=500 * GIB,
        unit="bytes",
        at=100,
        source=SOURCE,
        page="section V",
        figure="Figure 6",
        open_points="An example of the text, not a measurement; it has both 10 GB/s and 10 GiB/s for what comes.",
    ),
)
