"""Folders of many small files, looked at again and again: only what has changed is read."""

from __future__ import annotations

import os
import time
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path

COARSE_NS = 2_000_000_000
"""Age below which a folder is read again all the same: clocks of file systems are coarse."""


@dataclass
class Folders:
    """Times of the files below some folders, each read again when something has come or gone."""

    root: Path
    suffix: str
    seen: dict[Path, tuple[int, dict[Path, float]]] = field(default_factory=dict)

    def times(self) -> dict[Path, float]:
        """Files with the suffix, and when each was written, s since 1970."""
        found: dict[Path, float] = {}
        waiting = [self.root]
        while waiting:
            folder = waiting.pop()
            with suppress(OSError):
                files, inner = self.read(folder)
                found |= files
                waiting += inner
        return found

    def read(self, folder: Path) -> tuple[dict[Path, float], list[Path]]:
        """Files and folders in one folder."""
        changed_ns = os.lstat(folder).st_mtime_ns
        known = self.seen.get(folder)
        if known is None or known[0] != changed_ns or time.time_ns() - changed_ns < COARSE_NS:
            files: dict[Path, float] = {}
            with os.scandir(folder) as entries:
                for entry in entries:
                    if entry.name.startswith("."):
                        continue
                    if entry.is_dir(follow_symlinks=False):
                        files[Path(entry.path)] = -1.0
                    elif entry.name.endswith(self.suffix):
                        files[Path(entry.path)] = entry.stat(follow_symlinks=False).st_mtime
            known = self.seen[folder] = (changed_ns, files)
        return (
            {path: time_s for path, time_s in known[1].items() if time_s >= 0},
            [path for path, time_s in known[1].items() if time_s < 0],
        )
