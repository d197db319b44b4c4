"""What a folder holds: files, folders and bytes, counted by walks, also while a phase runs.

The kernel offers no cheap way to learn how many files a process tree makes: watching each folder (inotify) misses files
that are gone before their folder is watched, and watching a file system (fanotify) makes every job read the events of
all others. So a folder is walked as a whole before and after a phase, which is exact, and between the two in slices so
short that the phase's end is noticed in time. What is made and removed between two walks is not seen.
"""

from __future__ import annotations

import os
import stat
import time
from collections.abc import Iterator

COST_SHARE = 0.01
"""Share of the time that may go to walks while the phase runs."""

FIRST_WALK_S, AGE_SHARE = 0.25, 0.05
"""When the first walk begins, s, and after which share of the phase's age the next one does."""

SLICE_S, SLICE_ENTRIES = 0.002, 64
"""How long a slice of a walk takes, s, and after how many entries that is checked."""


class Held:
    """What was counted in a folder. Everything but a folder counts as a file: links and pipes take an inode, too.

    Attributes
    ----------
    files, folders
        How many, without the folder itself.
    bytes
        Sum of the sizes of regular files.
    sizes
        Files and their bytes by magnitude: key n for 2^(n-1) bytes or more and less than 2^n; key 0 for empty files.
    """

    files = folders = bytes = 0

    def __init__(self) -> None:
        self.sizes: dict[int, tuple[int, int]] = {}

    def add_file(self, size_bytes: int) -> None:
        """Count one file."""
        self.files += 1
        self.bytes += size_bytes
        magnitude = size_bytes.bit_length()
        files, total = self.sizes.get(magnitude, (0, 0))
        self.sizes[magnitude] = files + 1, total + size_bytes

    def add(self, other: Held, sign: int = 1) -> None:
        """Add what was counted elsewhere or, with sign -1, subtract it, down to 0."""
        for name in ("files", "folders", "bytes"):
            setattr(self, name, max(0, getattr(self, name) + sign * getattr(other, name)))
        for magnitude, (files, total) in other.sizes.items():
            known_files, known_bytes = self.sizes.get(magnitude, (0, 0))
            self.sizes[magnitude] = max(0, known_files + sign * files), max(0, known_bytes + sign * total)

    def histogram(self) -> list[list[int]]:
        """``sizes`` as lists of magnitude, files and bytes, without empty ones."""
        return [[magnitude, *counts] for magnitude, counts in sorted(self.sizes.items()) if counts[0]]


def walk(folder: str | os.PathLike[str], held: Held) -> Iterator[None]:
    """Count what is below a folder; yields to the caller after every few entries. Links are not followed."""
    folders = [os.fspath(folder)]  # no recursion, since a tool may nest folders deeper than Python's stack
    seen = 0
    while folders:
        try:
            entries = os.scandir(folders.pop())
        except OSError:  # removed meanwhile, not ours to read, or a path too long for the kernel
            continue
        with entries:
            while True:
                try:
                    entry = next(entries, None)
                except OSError:  # on a network file system, another host has changed the folder
                    break
                if entry is None:
                    break
                try:
                    if entry.is_dir(follow_symlinks=False):
                        folders.append(entry.path)
                        held.folders += 1
                    else:
                        facts = entry.stat(follow_symlinks=False)
                        held.add_file(facts.st_size if stat.S_ISREG(facts.st_mode) else 0)
                except OSError:  # removed meanwhile
                    continue
                seen += 1
                if seen % SLICE_ENTRIES == 0:
                    yield


def held_in(folder: str | os.PathLike[str]) -> Held:
    """What is below a folder, by one walk."""
    held = Held()
    for _ in walk(folder, held):
        pass
    return held


class FolderWatch:
    """Counts what a folder holds before, during and after a phase.

    Attributes
    ----------
    before
        By a whole walk.
    walks
        How many walks were done in between.
    peak_files, peak_bytes
        Most that any walk has found.
    gone_files
        How many fewer files walks found than the walks before them: at least so many were removed.
    due_s
        When the next slice of a walk is due, by the monotonic clock, s.
    """

    walks = gone_files = 0

    def __init__(self, folder: str | os.PathLike[str]) -> None:
        self.folder = folder
        self.before = self.last = held_in(folder)
        self.peak_files, self.peak_bytes = self.before.files, self.before.bytes
        self.begin_s = time.monotonic()
        self.due_s = self.begin_s + FIRST_WALK_S
        self.under_way: tuple[Held, Iterator[None]] | None = None

    def look(self) -> None:
        """Walk on for a slice."""
        begin_s = now_s = time.monotonic()
        if self.under_way is None:
            held = Held()
            self.under_way = held, walk(self.folder, held)
        held, steps = self.under_way
        done = False
        while not done and now_s - begin_s < SLICE_S:
            done = next(steps, steps) is steps  # a walk yields None; the iterator itself marks its end
            now_s = time.monotonic()
        pause_s = (now_s - begin_s) / COST_SHARE
        if done:
            self.under_way = None
            self.walks += 1
            self.take(held)
            pause_s = max(pause_s, FIRST_WALK_S, AGE_SHARE * (now_s - self.begin_s))
        self.due_s = now_s + pause_s

    def take(self, held: Held) -> None:
        """Note what a walk found."""
        self.peak_files, self.peak_bytes = max(self.peak_files, held.files), max(self.peak_bytes, held.bytes)
        self.gone_files += max(0, self.last.files - held.files)
        self.last = held

    def finish(self) -> Held:
        """Walk the folder as a whole once more; returns what it holds now."""
        held = held_in(self.folder)
        self.take(held)
        return held


class Removal(Held):
    """What a job removed of its own work after the tool had ended, counted right before.

    Attributes
    ----------
    most_files, most_bytes
        Of the folder that had most; a participant's images have one folder after the other.
    removal_s, removal_cpu_s
        How long counting and removing took, and its CPU time, s.
    """

    most_files = most_bytes = 0
    removal_s = removal_cpu_s = 0.0

    def take(self, held: Held, removal_s: float, removal_cpu_s: float) -> None:
        """Add one folder."""
        self.add(held)
        self.most_files, self.most_bytes = max(self.most_files, held.files), max(self.most_bytes, held.bytes)
        self.removal_s += removal_s
        self.removal_cpu_s += removal_cpu_s
