"""An exchange: what the writers of one point hand over to its readers in each time step.

The data of a step are cut into the largest pieces of which every writer and every reader has a whole number. With more
readers than writers, or the other way round, requests thus become smaller, as in the published experiment. Contents
come from a seed and differ between steps; readers compare the checksum of each piece with the writer's.
"""

from __future__ import annotations

import math
import zlib
from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

WORD_BYTES = 8
"""Contents are whole words, so that a single addition makes the contents of the next step."""

STEP = "step"
"""Value of ``per`` with which bytes are those of a whole step (strong scaling) instead of each writer and reader (weak
scaling)."""

IN_MEMORY = ("adios2-sst",)
"""Engines that keep nothing on a tier, and so are measured only once."""

SERVED = ("ray",)
"""Engines that have servers."""

START_S, CLIENT_S, USUAL_BYTES_PER_S = 5.0, 0.3, 1e9
"""What a point takes at least: s to start, s for each process, and bytes/s to move its data."""

STRIDE = np.uint64(0x9E3779B97F4A7C15)
"""Added to each word in every step; it is odd, so that no two steps are equal."""


@dataclass(frozen=True)
class Point:
    """An exchange to be measured.

    Attributes
    ----------
    set_name
        The configured set that it belongs to.
    engine, writers, readers, servers
        The engine, and how many processes of each kind; 0 servers for engines that have none.
    per
        ``step`` in strong scaling, ``client`` in weak scaling.
    bytes_per_writer, bytes_per_reader
        What each of them writes or reads in a step, bytes.
    steps
        Number of time steps.
    flush
        Whether a write lasts until its data are on the device.
    repetition
        Number of the repetition, from 1.
    """

    set_name: str
    engine: str
    writers: int
    readers: int
    servers: int
    per: str
    bytes_per_writer: int
    bytes_per_reader: int
    steps: int
    flush: bool
    repetition: int

    @property
    def written_bytes(self) -> int:
        """Bytes written in all steps together."""
        return self.steps * self.writers * self.bytes_per_writer

    @property
    def seconds(self) -> float:
        """Least time that it takes, s."""
        clients = self.writers + self.readers + self.servers
        moved_bytes = self.written_bytes + self.steps * self.readers * self.bytes_per_reader
        return START_S + CLIENT_S * clients + moved_bytes / USUAL_BYTES_PER_S


@dataclass(frozen=True)
class Exchange(Point):
    """A point with all that its processes need to know.

    Attributes
    ----------
    seed
        Seed of the contents.
    folder
        Folder on the tier for the store.
    scratch
        Folder with a short path, for sockets and logs of the service.
    """

    seed: int
    folder: str
    scratch: str

    @property
    def piece_bytes(self) -> int:
        """Size of a piece, bytes."""
        return math.gcd(self.bytes_per_writer, self.bytes_per_reader)

    @property
    def pieces_per_writer(self) -> int:
        """Number of pieces that each writer makes in a step."""
        return self.bytes_per_writer // self.piece_bytes

    def pieces_of_reader(self, reader: int) -> list[int]:
        """Numbers of the pieces that a reader gets, counted over all writers, with the first after the last.

        >>> exchange = Exchange("set", "ray", 4, 2, 1, "step", 8, 16, 1, False, 1, 1, "", "")
        >>> [exchange.pieces_of_reader(reader) for reader in range(2)]
        [[0, 1], [2, 3]]
        """
        count = self.bytes_per_reader // self.piece_bytes
        total = self.writers * self.pieces_per_writer
        return [piece % total for piece in range(reader * count, (reader + 1) * count)]


class Source:
    """The contents that a writer writes."""

    def __init__(self, exchange: Exchange, writer: int) -> None:
        words = exchange.bytes_per_writer // WORD_BYTES
        self.words = np.random.default_rng([exchange.seed, writer]).integers(0, 1 << 64, words, dtype=np.uint64)
        self.pieces = np.split(self.words, exchange.pieces_per_writer)

    def next_step(self) -> list[int]:
        """Make the contents of the next step; return the checksum of each piece."""
        self.words += STRIDE
        return [checksum(piece) for piece in self.pieces]


class Sink:
    """A reader's own copy of what it has read, as an application would have it."""

    def __init__(self, exchange: Exchange, reader: int) -> None:
        self.numbers = exchange.pieces_of_reader(reader)
        self.pieces = np.zeros((len(self.numbers), exchange.piece_bytes // WORD_BYTES), dtype=np.uint64)

    def wrong(self, checksums: Mapping[int, int]) -> list[int]:
        """The numbers of the pieces that differ from what their writers wrote, by the writers' checksums."""
        pairs = zip(self.numbers, self.pieces, strict=True)
        return [number for number, piece in pairs if checksum(piece) != checksums[number]]


def checksum(words: np.ndarray) -> int:
    """CRC-32 of a piece."""
    return zlib.crc32(words.data)
