"""Headline numbers of two published fio sweeps, to stand beside one's own.

Only numbers that the papers' text states; what their pictures show beyond that is not here. The names of devices are
the papers' own. Where the text leaves a setting open, ``open_points`` says so.
"""

from __future__ import annotations

from dataclasses import dataclass

MB = 1_000_000
GIB = 1 << 30
KIB = 1 << 10

OPTANE_REPORT = "Subedi, Davis, Villalobos, Rodero and Parashar: Using Intel Optane Devices for In-situ Data Staging"
DUNE_PAPER = "Abed Abud, Lehmann Miotto and Sipos: Persistent memory for the DUNE data acquisition system"

BANDWIDTH, REQUESTS, VARIATION = "bandwidth", "requests", "variation"
"""What a headline states: bytes/s, requests/s, or by what share the bandwidth at two block sizes differs."""


@dataclass(frozen=True)
class Headline:
    """What a paper states in a number.

    Attributes
    ----------
    name
        What was measured, in words.
    source, place
        Paper, and section or figure in it.
    quantity
        ``bandwidth``, ``requests`` or ``variation``.
    stated
        Device to number: bytes/s, requests/s, or a share of 1.
    patterns, block_sizes, processes, queue_depth
        The setting, to find one's own points by. ``None`` where the text leaves it open: the best counts. Blocks are
        in bytes.
    open_points
        What the text does not say, or says in its own way.
    """

    name: str
    source: str
    place: str
    quantity: str
    stated: dict[str, float]
    patterns: tuple[str, ...]
    block_sizes: tuple[int, ...]
    processes: int | None
    queue_depth: int | None
    open_points: str


HEADLINES = (
    Headline(
        name="Sequential write, 4 KiB, queue depth 1, best number of processes",
        source=OPTANE_REPORT,
        place="section 2, Figure 1",
        quantity=BANDWIDTH,
        stated={"Optane SSD DC4800X": 1005 * MB, "NVMe SSD DC3700": 128 * MB},
        patterns=("write",),
        block_sizes=(4 * KIB,),
        processes=None,
        queue_depth=1,
        open_points="Stated as the most reached; the block size is that of Figure 1, the processes are left open.",
    ),
    Headline(
        name="Read, 4 KiB, queue depth 1, 64 processes",
        source=OPTANE_REPORT,
        place="section 2, Figure 1",
        quantity=BANDWIDTH,
        stated={"Optane SSD DC4800X": 1559 * MB, "NVMe SSD DC3700": 1214 * MB},
        patterns=("read", "randread"),
        block_sizes=(4 * KIB,),
        processes=64,
        queue_depth=1,
        open_points="Stated as the most reached, sequential or random left open; the block size is that of Figure 1.",
    ),
    Headline(
        name="Random read, 64 KiB, queue depth 128, best number of processes",
        source=OPTANE_REPORT,
        place="section 2",
        quantity=BANDWIDTH,
        stated={"Optane SSD DC4800X": 2530 * MB, "NVMe SSD DC3700": 1217 * MB},
        patterns=("randread",),
        block_sizes=(64 * KIB,),
        processes=None,
        queue_depth=128,
        open_points="The processes are left open; for the NVMe SSD the text says read, not random read.",
    ),
    Headline(
        name="Random write, 64 KiB, queue depth 128, best number of processes",
        source=OPTANE_REPORT,
        place="section 2",
        quantity=BANDWIDTH,
        stated={"Optane SSD DC4800X": 2171 * MB, "NVMe SSD DC3700": 864 * MB},
        patterns=("randwrite",),
        block_sizes=(64 * KIB,),
        processes=None,
        queue_depth=128,
        open_points="The processes are left open; for the NVMe SSD the text says write, not random write.",
    ),
    Headline(
        name="Write requests of one process, best block size",
        source=DUNE_PAPER,
        place="section IV, Figure 2",
        quantity=REQUESTS,
        stated={"6 DCPMMs, App Direct": 200_000},
        patterns=("write",),
        block_sizes=(),
        processes=1,
        queue_depth=1,
        open_points="Approximately; the block size is left open (256 bytes is the smallest in the paper).",
    ),
    Headline(
        name="Sequential write, 256 B, best number of processes",
        source=DUNE_PAPER,
        place="section IV, Figure 3",
        quantity=BANDWIDTH,
        stated={"6 DCPMMs, App Direct": 8.5 * GIB},
        patterns=("write",),
        block_sizes=(256,),
        processes=None,
        queue_depth=1,
        open_points="About 8.5 GiB/s, from 4 threads on, with a program of the authors' own; here processes of fio.",
    ),
    Headline(
        name="Write bandwidth at 4 KiB and at 1 MiB: largest difference",
        source=DUNE_PAPER,
        place="section IV, Figure 5",
        quantity=VARIATION,
        stated={"6 DCPMMs, App Direct": 0.05},
        patterns=("write",),
        block_sizes=(4 * KIB, 1024 * KIB),
        processes=None,
        queue_depth=1,
        open_points="Stated as less than 5 %; the largest over the numbers of processes, as a share of the higher.",
    ),
)
