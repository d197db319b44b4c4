"""What a folder contains: files, folders and bytes, counted by walks, also while a phase runs.

The kernel offers no cheap way to find out how many files a process tree makes: watching each folder (inotify) misses
files that are gone before their folder is watched, and watching a file system (fanotify) makes every job read the
events of all others. So the folder is walked as a whole before and after a phase, which gives exact counts, and in
between in slices so short that the end of the phase is noticed in time. Files that are made and removed between two
walks are not seen.
"""

from __future__ import annotations

import os
import stat
import time
from collections.abc import Iterator

COST_SHARE = 0.01
"""Share of the time that walks may take while the phase runs."""

FIRST_WALK_S, AGE_SHARE = 0.25, 0.05
"""When the first walk begins, s, and the pause before the next one, as a share of the phase's age."""

SLICE_S, SLICE_ENTRIES = 0.002, 64
"""How long a slice of a walk may take, s, and after how many entries the time is checked."""


class Held:
    """What was counted in a folder. Every entry that is not a folder counts as a file: links and pipes take an inode,
    too.

    Attributes
    ----------
    files, folders
        Their numbers, without the folder itself.
    bytes
        Sum of the sizes of regular files.
    sizes
        Number of files and of their bytes by magnitude: key n for files of at least 2^(n-1) and less than 2^n bytes;
        key 0 for empty files.
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
        """Add another count or, with sign -1, subtract it; nothing falls below 0."""
        for name in ("files", "folders", "bytes"):
            setattr(self, name, max(0, getattr(self, name) + sign * getattr(other, name)))
        for magnitude, (files, total) in other.sizes.items():
            known_files, known_bytes = self.sizes.get(magnitude, (0, 0))
            self.sizes[magnitude] = max(0, known_files + sign * files), max(0, known_bytes + sign * total)

    def histogram(self) -> list[list[int]]:
        """``sizes`` as lists of magnitude, files and bytes, without magnitudes that have no files."""
        return [[magnitude, *counts] for magnitude, counts in sorted(self.sizes.items()) if counts[0]]


def walk(folder: str | os.PathLike[str], held: Held) -> Iterator[None]:
    """Count the contents of a folder; yields to the caller after every few entries. Links are not followed."""
    folders = [os.fspath(folder)]  # no recursion, since a tool may nest folders deeper than Python's stack
    seen = 0
    while folders:
        try:
            entries = os.scandir(folders.pop())
        except OSError:  # removed meanwhile, not readable, or a path too long for the kernel
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
    """The contents of a folder, counted by one walk."""
    held = Held()
    for _ in walk(folder, held):
        pass
    return held


class FolderWatch:
    """Counts the contents of a folder before, during and after a phase.

    Attributes
    ----------
    before
        The count before the phase, by a complete walk.
    walks
        How many walks were completed during the phase.
    peak_files, peak_bytes
        The most that any walk has found.
    gone_files
        How many fewer files walks found than the walks before them, in total: at least so many were removed.
    due_s
        When the next slice of a walk is due, s, by the monotonic clock.
    """

    walks = gone_files = 0

    def __init__(self, folder: str | os.PathLike[str]) -> None:
        self.folder = folder
        self.before = self.last = held_in(folder)
        self.peak_files, self.peak_bytes = self.before.files, self.before.bytes
        self.begin_s = time.monotonic()
        self.due_s = self.begin_s + FIRST_WALK_S
        self.current_walk: tuple[Held, Iterator[None]] | None = None

    def look(self) -> None:
        """Continue the present walk, or begin one, for a slice."""
        begin_s = now_s = time.monotonic()
        if self.current_walk is None:
            held = Held()
            self.current_walk = held, walk(self.folder, held)
        held, steps = self.current_walk
        done = False
        while not done and now_s - begin_s < SLICE_S:
            done = next(steps, steps) is steps  # a walk yields None; the iterator itself marks its end
            now_s = time.monotonic()
        pause_s = (now_s - begin_s) / COST_SHARE
        if done:
            self.current_walk = None
            self.walks += 1
            self.take(held)
            pause_s = max(pause_s, FIRST_WALK_S, AGE_SHARE * (now_s - self.begin_s))
        self.due_s = now_s + pause_s

    def take(self, held: Held) -> None:
        """Note the result of a complete walk."""
        self.peak_files, self.peak_bytes = max(self.peak_files, held.files), max(self.peak_bytes, held.bytes)
        self.gone_files += max(0, self.last.files - held.files)
        self.last = held

    def finish(self) -> Held:
        """Walk the folder as a whole once more; returns its present contents."""
        held = held_in(self.folder)
        self.take(held)
        return held


class Removal(Held):
    """Files of its own work that a job removed after the tool had ended, counted immediately before their removal.

    Attributes
    ----------
    most_files, most_bytes
        Those of the folder with the most: a participant's images have one folder after the other.
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
