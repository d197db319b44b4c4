"""One run of the incrementation: its blocks, where they are read and written, and which of them are done.

Worker processes read it from a file, ``plan.json``. This module imports little, since there may be thousands of them.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

HEADER, READ, INCREMENT, WRITE = "load_header", "read", "increment", "write"
START_UP, DELAY = "start_up", "delay"
WORK_PHASES = (HEADER, READ, INCREMENT, WRITE)
"""The phases whose sums the paper's figures show; in the published pairing, ``increment`` includes ``read``."""

STREAMING, PUBLISHED = "streaming", "published"
NONE, ALL = "none", "all"
EVERY = "all"
"""Given to a worker in place of an iteration: do all that are left."""

SNAKEMAKE, GNU_PARALLEL, SPARK = "snakemake", "gnu-parallel", "spark"


@dataclass(frozen=True)
class Block:
    """A block of the image, as it is listed in the manifest.

    Attributes
    ----------
    block
        Its name, for the voxel where it begins, as in the published names.
    file
        Its file, as an absolute path.
    shape
        Voxels along each axis, such as ``769x603x694``.
    dtype
        Type of a voxel with its byte order, such as ``<u2``.
    bytes
        Size of the file.
    sha256
        Checksum of the file.
    """

    block: str
    file: str
    shape: str
    dtype: str
    bytes: int
    sha256: str


@dataclass(frozen=True)
class Task:
    """One run of an engine on a tier with a parallelism.

    Attributes
    ----------
    run
        ``ENGINE/TIER/PARALLELISM/REPETITION``.
    tier
        Name of the tier on which blocks are read and written.
    folder
        Folder on that tier to which this run writes.
    records
        Folder of its records, on the results tier.
    iterations
        How often each block is incremented.
    delay_s
        Pause after each iteration, s.
    pairing
        ``streaming``, or ``published``: with NiBabel's memory map, so that ``increment`` includes reading.
    fsync
        Whether writing lasts until the device has the data.
    keep
        Which written blocks to keep: ``none``, those of the ``final`` iteration, or ``all``.
    blocks
        The blocks to increment.
    attempt
        The run of the workflow in which it began.
    cache
        State of the page cache when it began: ``cold``, ``warm``, ``as found``, or ``memory`` on a tier in memory.
    cache_problem
        Why this is not the requested state; empty if it is.
    pinned
        How workers are pinned, in words, such as ``none``, ``none: one node`` or ``2 nodes``.
    nodes
        NUMA nodes to which they are pinned; empty if they are not.
    host
        The machine that runs it.
    """

    run: str
    tier: str
    folder: str
    records: str
    iterations: int
    delay_s: float
    pairing: str
    fsync: bool
    keep: str
    blocks: tuple[Block, ...]
    attempt: str = ""
    cache: str = ""
    cache_problem: str = ""
    pinned: str = NONE
    nodes: tuple[int, ...] = ()
    host: str = ""

    @classmethod
    def load(cls, path: Path) -> Task:
        """Read a plan."""
        data = json.loads(path.read_text())
        blocks = tuple(Block(**block) for block in data["blocks"])
        return cls(**data | {"blocks": blocks, "nodes": tuple(data["nodes"])})

    @property
    def engine(self) -> str:
        return self.run.split("/")[0]

    @property
    def parallelism(self) -> int:
        """The requested number of workers."""
        return int(self.run.split("/")[2])

    @property
    def repetition(self) -> int:
        return int(self.run.split("/")[3])

    @property
    def condition(self) -> dict[str, Any]:
        """What distinguishes this run from others, as cells of a table."""
        return {name: getattr(self, name) for name in ("engine", "tier", "parallelism", "repetition")}

    def file(self, block: Block, iteration: int) -> Path:
        """The file of a block after an iteration; with iteration 0, that of the original block."""
        return Path(self.folder, str(iteration), f"{block.block}.nii") if iteration else Path(block.file)

    def record(self, block: Block, iteration: int) -> Path:
        """The file in which an iteration of a block records its phases."""
        return Path(self.records, f"{block.block}_{iteration}.json")

    def last_written(self, block: Block) -> int:
        """The latest iteration after which a block can be resumed; 0 if it must start from the original."""
        for k in range(self.iterations, 0, -1):
            if self.record(block, k).exists() and size_of(self.file(block, k)) == block.bytes:
                return k
        return 0

    def pending(self) -> Iterator[Block]:
        """The blocks that have iterations left to do."""
        return (block for block in self.blocks if self.last_written(block) < self.iterations)

    def incomplete(self) -> list[str]:
        """The names of the blocks that lack the record of an iteration."""
        every = range(1, self.iterations + 1)
        return [block.block for block in self.blocks if not all(self.record(block, k).exists() for k in every)]


def span(record: Mapping[str, Any]) -> tuple[float, float]:
    """When an iteration of a block began and ended, s since 1970."""
    return min(phase["start_s"] for phase in record["phases"]), max(phase["end_s"] for phase in record["phases"])


def size_of(file: Path) -> int | None:
    """Size of a file, bytes; ``None`` if it does not exist."""
    try:
        return file.stat().st_size
    except FileNotFoundError:
        return None
