"""Replaying a description: files are made, read, flushed and removed, processors and memory used.

The work is divided into portions, each with files first and computing after, like the steps of a pipeline. Computing
goes on until this process has taken the CPU time described up to there, so that the cost of reading and writing is part
of it, not added. Bytes are counted in the same way: what this process itself reads and writes, such as Python modules,
is part of what is described.
"""

from __future__ import annotations

import errno
import hashlib
import os
import tempfile
import threading
import time
from contextlib import suppress
from pathlib import Path

import psutil

from neurotier.analysis.rehearsal.description import Description, Pairs
from neurotier.meter.tree import read_io

CHUNK_BYTES = 1 << 20
"""Most that is read or written by one call."""

BLOCK_BYTES = 64 << 10
"""What is hashed at a time to keep a processor busy: 0.1 ms."""


class Spent:
    """What this process had spent when its last replay ended; what it spends after that counts for the next one.

    Each phase is a process, which may replay several images in turn.
    """

    cpu_s = 0.0
    read_bytes = written_bytes = 0


def moved_bytes() -> list[int]:
    """Bytes that this process has read and written so far by its calls; 0 if the kernel does not count them."""
    with suppress(OSError):
        return read_io("/proc/self/io")[:2]
    return [0, 0]


def replay(description: Description, image: Path, folder: Path, results: Path) -> None:
    """Do for one image what a description says.

    Parameters
    ----------
    description
        What to do.
    image
        The image; it is read first.
    folder
        Scratch folder for the files that are made.
    results
        Folder for the files that are left; made if there are any.

    Raises
    ------
    OSError
        If the tier is full, or loses what was written.
    """
    # filled with zeros, so really allocated: together with what the process has, as much as described
    memory = bytearray(max(0, description.memory_bytes - psutil.Process().memory_info().rss))
    os.chdir(folder)  # relative paths are resolved faster; tools that make many files work in a folder, too
    Work(description, image, results).run()
    del memory
    Spent.cpu_s = time.process_time()
    Spent.read_bytes, Spent.written_bytes = moved_bytes()


class Work:
    """One replay, with the scratch folder as working folder; parameters as :func:`replay`.

    Attributes
    ----------
    made, removed
        Files made, and removed, so far; a file's number is its place in that order.
    read, written
        Bytes of this replay so far.
    """

    def __init__(self, description: Description, image: Path, results: Path) -> None:
        self.description, self.image, self.results = description, str(image), results
        self.made = self.removed = self.opened = self.overwritten = 0
        read, written = moved_bytes()
        self.read, self.written = read - Spent.read_bytes, written - Spent.written_bytes
        self.result_sizes = sizes(description.results)
        made_bytes = description.made_bytes + sum(self.result_sizes)
        self.surplus = max(0, description.written_bytes - made_bytes - self.written)
        # not compressible by any file system, and the same each time: a campaign compares the outputs of its runs
        self.filling = memoryview(hashlib.shake_128(b"rehearsal").digest(CHUNK_BYTES))
        self.buffer = memoryview(bytearray(CHUNK_BYTES))

    def run(self) -> None:
        """Do all portions, and write the results."""
        described = self.description
        for number in range(described.folders):
            os.mkdir(str(number), 0o700)
        with tempfile.TemporaryFile(dir=".", buffering=0) as spare:
            files = sizes(described.files)
            for number in range(1, described.portions + 1):
                share = number / described.portions
                for size_bytes in files[number - 1 :: described.portions]:  # some of every size
                    self.write_file(self.path(self.made), size_bytes)
                    self.made += 1
                self.overwrite(spare.fileno(), round(self.surplus * share))
                self.read_up_to(round(described.read_bytes * share), round(described.read_files * share))
                self.remove(round(described.removed_files * share))
                burn(Spent.cpu_s + described.cpu_s * share, described.threads)
        if described.results:
            self.results.mkdir(parents=True, exist_ok=True)
            for number, size_bytes in enumerate(self.result_sizes):
                self.write_file(f"{self.results}/{number:06d}.dat", size_bytes)

    def path(self, number: int) -> str:
        """Path of a file below the scratch folder: neighbours share a folder."""
        folders = self.description.folders
        return f"{number * folders // self.description.made_files}/f{number}" if folders else f"f{number}"

    def write_file(self, path: str, size_bytes: int) -> None:
        """Make a file; the part that exceeds the described written bytes is left as a hole."""
        left = max(0, min(size_bytes, self.description.written_bytes - self.written))
        self.written += left
        with open(path, "xb", buffering=0) as file:
            if left < size_bytes:
                file.truncate(size_bytes)
            while left:
                left -= file.write(self.filling[:left])

    def overwrite(self, spare: int, wanted: int) -> None:
        """Overwrite the same place of an open file until ``wanted`` bytes were written this way."""
        while self.overwritten < wanted:
            count = os.pwrite(spare, self.filling[: wanted - self.overwritten], 0)
            self.overwritten += count
            self.written += count

    def read_up_to(self, wanted: int, openings: int) -> None:
        """Read until ``wanted`` bytes were read and ``openings`` files opened in all: the image, then files in turn."""
        while self.opened < openings or self.read < wanted:
            left, there = max(1, openings - self.opened), self.made - self.removed
            path = self.path(self.removed + self.opened % there) if self.opened and there > 0 else self.image
            self.read_file(path, max(0, wanted - self.read) // left if left > 1 else wanted - self.read)
            self.opened += 1

    def read_file(self, path: str, wanted: int) -> None:
        """Read ``wanted`` bytes of a file; if it is shorter, continue with the image, over and over."""
        end, place = self.read + wanted, 0
        with open(path, "rb", buffering=0) as file:
            size_bytes = os.fstat(file.fileno()).st_size
            while self.read < end and (place < size_bytes or path == self.image):
                count = os.preadv(file.fileno(), [self.buffer[: end - self.read]], place % size_bytes)
                if not count:
                    raise OSError(errno.EIO, "is shorter than when it was opened", path)
                place += count
                self.read += count
        if self.read < end:
            self.read_file(self.image, end - self.read)

    def remove(self, wanted: int) -> None:
        """Remove files, oldest first, until ``wanted`` are gone."""
        while self.removed < min(wanted, self.made):
            os.unlink(self.path(self.removed))
            self.removed += 1


def sizes(pairs: Pairs) -> list[int]:
    """The sizes of files one by one.

    >>> sizes(((2, 10), (1, 0)))
    [10, 10, 0]
    """
    return [each for count, each in pairs for _ in range(count)]


def burn(until_s: float, threads: int) -> None:
    """Keep processors busy until this process has taken ``until_s`` of CPU time, s, with ``threads`` threads."""

    def work() -> None:
        while time.process_time() < until_s:
            hashlib.sha256(block)  # releases Python's lock, so other threads run

    block = bytes(BLOCK_BYTES)
    if time.process_time() < until_s:
        others = [threading.Thread(target=work) for _ in range(threads - 1)]
        for other in others:
            other.start()
        work()
        for other in others:
            other.join()
