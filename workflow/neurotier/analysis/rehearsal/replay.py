"""Doing again what a description says: files made, read, flushed and removed, processors and memory used.

The work is divided into portions, in each of which files come first and computing after, as steps of a pipeline do.
Computing goes on until this process has taken the CPU time that is described up to there, so that what reading and
writing takes is part of it and not added to it. Bytes are counted in the same way: what this process has read and
written by itself, such as modules of Python, is part of what is described.
"""

from __future__ import annotations

import errno
import hashlib
import mmap
import os
import threading
import time
from collections.abc import Iterator
from pathlib import Path

from neurotier.analysis.rehearsal.description import Description, Pairs

CHUNK_BYTES = 1 << 20
"""Most that is read or written by one call."""

BLOCK_BYTES = 64 << 10
"""What is hashed at a time to keep a processor busy: 0.1 ms."""

NEW_FILE = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC


class Spent:
    """What this process has spent before a replay began, of which an earlier one of the same process has its share.

    Attributes
    ----------
    process
        The process that the figures are of: each phase is one, in which several images are done in turn.
    """

    process = 0
    cpu_s = 0.0
    read_bytes = written_bytes = 0

    @classmethod
    def begin(cls) -> None:
        """All that a new process has spent belongs to its first replay."""
        if cls.process != os.getpid():
            cls.process, cls.cpu_s, cls.read_bytes, cls.written_bytes = os.getpid(), 0.0, 0, 0

    @classmethod
    def end(cls) -> None:
        """What is spent from now on belongs to the next."""
        cls.cpu_s = time.process_time()
        cls.read_bytes, cls.written_bytes = moved_bytes()


def moved_bytes() -> tuple[int, int]:
    """Bytes that this process has read and written so far, by its calls; 0 where the kernel does not count them."""
    try:
        with open("/proc/self/io", "rb") as file:
            counts = dict(line.split(b": ") for line in file.read().splitlines())
    except OSError:
        return 0, 0
    return int(counts[b"rchar"]), int(counts[b"wchar"])


def replay(description: Description, image: Path, folder: Path, results: Path) -> None:
    """Do for one image what a description says.

    Parameters
    ----------
    description
        What to do.
    image
        The image, which is read first.
    folder
        Scratch folder for the files that are made.
    results
        Folder for the files that are left; made if there are any.

    Raises
    ------
    OSError
        If the tier is full, or loses what was written.
    """
    Spent.begin()
    memory = taken_memory(description.memory_bytes)
    os.chdir(folder)  # relative paths are found sooner: tools that make many files work in a folder, too
    Work(description, image, results).run()
    if memory is not None:
        memory.close()
    Spent.end()


def taken_memory(wanted_bytes: int) -> mmap.mmap | None:
    """Memory that is really taken, so that the process has as much as is described, with what it has anyway."""
    with open("/proc/self/statm", "rb") as file:
        resident_bytes = int(file.read().split()[1]) * mmap.PAGESIZE
    length = wanted_bytes - resident_bytes
    if length < mmap.PAGESIZE:
        return None
    memory = mmap.mmap(-1, length, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS)
    for start in range(0, length, CHUNK_BYTES):  # a byte for each page, a chunk at a time
        pages = -(-min(CHUNK_BYTES, length - start) // mmap.PAGESIZE)
        memory[start : start + CHUNK_BYTES : mmap.PAGESIZE] = b"\1" * pages
    return memory


class Work:
    """One replay, in the scratch folder as working folder; parameters as of :func:`replay`.

    Attributes
    ----------
    made, removed
        Files that were made, and removed, so far; a file's number is its place in the order.
    read, written
        Bytes of this replay so far.
    """

    def __init__(self, description: Description, image: Path, results: Path) -> None:
        self.description, self.image, self.results = description, str(image), results
        self.made = self.removed = self.opened = self.overwritten = 0
        moved = moved_bytes()
        self.read, self.written = moved[0] - Spent.read_bytes, moved[1] - Spent.written_bytes
        sizes_bytes = description.made_bytes + description.result_bytes
        self.surplus = max(0, description.written_bytes - sizes_bytes - self.written)
        self.folders, self.files = description.folders, description.made_files
        self.limit = description.written_bytes
        # which no file system can compress, and the same each time: outputs of all runs of a campaign are compared
        self.filling = memoryview(hashlib.shake_128(b"rehearsal").digest(CHUNK_BYTES))
        self.buffer = bytearray(CHUNK_BYTES)
        self.spare: int | None = None
        self.portions = description.portions

    def run(self) -> None:
        """All portions, and the results."""
        described = self.description
        for number in range(described.folders):
            os.mkdir(str(number), 0o700)
        try:
            for number in range(1, self.portions + 1):
                share = number / self.portions
                self.make(number)
                self.overwrite(round(self.surplus * share))
                self.read_up_to(round(described.read_bytes * share), round(described.read_files * share))
                self.remove(round(described.removed_files * share))
                burn(Spent.cpu_s + described.cpu_s * share, described.threads)
        finally:
            if self.spare is not None:
                os.close(self.spare)
        if described.results:
            self.results.mkdir(parents=True, exist_ok=True)
            for number, size_bytes in enumerate(sizes(described.results)):
                self.write_file(f"{self.results}/{number:06d}.dat", size_bytes, flushes=0)

    def path(self, number: int) -> str:
        """Where a file lies below the scratch folder: neighbours share a folder."""
        return f"{number * self.folders // self.files}/f{number}" if self.folders else f"f{number}"

    def make(self, portion: int) -> None:
        """Make the files of a portion, and flush some of them; files of each size are spread over all portions."""
        described, flushed = self.description, portion_of(self.description.fsyncs, portion, self.portions)
        here = [(portion_of(count, portion, self.portions), each) for count, each in described.files]
        count = sum(number for number, _ in here)
        for place, size_bytes in enumerate(sizes(tuple(here))):
            flushes = flushed * (place + 1) // count - flushed * place // count if flushed else 0
            self.write_file(self.path(self.made), size_bytes, flushes)
            self.made += 1
        for _ in range(flushed if not count else 0):
            os.fsync(self.spare_file())

    def write_file(self, path: str, size_bytes: int, flushes: int) -> None:
        """Make a file; what is beyond the bytes that are described as written is left as a hole."""
        file = os.open(path, NEW_FILE, 0o600)
        try:
            left = size_bytes
            if self.written + size_bytes > self.limit:
                left = max(0, self.limit - self.written)
                os.ftruncate(file, size_bytes)
            while left:
                count = os.write(file, self.filling[:left])
                self.written += count
                left -= count
            for _ in range(flushes):
                os.fsync(file)
        finally:
            os.close(file)

    def spare_file(self) -> int:
        """An open file without a name, for what is written beyond the sizes of files."""
        if self.spare is None:
            name = "overwritten"
            self.spare = os.open(name, NEW_FILE, 0o600)
            os.unlink(name)
        return self.spare

    def overwrite(self, wanted: int) -> None:
        """Write over the same place again, until so many bytes were written beyond the sizes of files."""
        while self.overwritten < wanted:
            count = os.pwrite(self.spare_file(), self.filling[: wanted - self.overwritten], 0)
            self.overwritten += count
            self.written += count

    def read_up_to(self, wanted: int, openings: int) -> None:
        """Read until so many bytes were read in all, by so many openings: first the image, then files in turn."""
        while self.opened < openings or self.read < wanted:
            left, there = max(1, openings - self.opened), self.made - self.removed
            path = self.path(self.removed + self.opened % there) if self.opened and there > 0 else self.image
            self.read_file(path, max(0, wanted - self.read) // left if left > 1 else wanted - self.read)
            self.opened += 1

    def read_file(self, path: str, wanted: int) -> None:
        """Read so many bytes of a file; if it is shorter, the rest of the image, over and over."""
        file = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
        try:
            size_bytes = os.fstat(file).st_size
            end, place, view = self.read + wanted, 0, memoryview(self.buffer)
            while self.read < end and (place < size_bytes or path == self.image):
                count = os.preadv(file, [view[: end - self.read]], place % size_bytes)
                if not count:
                    raise OSError(errno.EIO, "is shorter than when it was opened", path)
                place += count
                self.read += count
        finally:
            os.close(file)
        if self.read < end:
            self.read_file(self.image, end - self.read)

    def remove(self, wanted: int) -> None:
        """Remove files, oldest first, until so many are gone."""
        while self.removed < min(wanted, self.made):
            os.unlink(self.path(self.removed))
            self.removed += 1


def portion_of(total: int, portion: int, portions: int) -> int:
    """What one portion has of a total, so that all portions together have it.

    >>> [portion_of(7, number, 3) for number in (1, 2, 3)]
    [2, 2, 3]
    """
    return total * portion // portions - total * (portion - 1) // portions


def sizes(pairs: Pairs) -> Iterator[int]:
    """The sizes of files one by one.

    >>> list(sizes(((2, 10), (1, 0))))
    [10, 10, 0]
    """
    for count, each in pairs:
        for _ in range(count):
            yield each


def burn(until_s: float, threads: int) -> None:
    """Keep processors busy until this process has taken so much CPU time, s, with so many threads."""
    if time.process_time() >= until_s:
        return
    others = [threading.Thread(target=hash_until, args=(until_s,)) for _ in range(threads - 1)]
    for other in others:
        other.start()
    hash_until(until_s)
    for other in others:
        other.join()


def hash_until(until_s: float) -> None:
    """Hash, which lets other threads of Python run, until the process has taken so much CPU time, s."""
    block = bytes(BLOCK_BYTES)
    while time.process_time() < until_s:
        hashlib.sha256(block)
