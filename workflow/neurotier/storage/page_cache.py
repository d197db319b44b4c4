"""The page cache before a run: emptied, or filled with the inputs, and then verified.

Root drops the whole cache, as the published experiment did between runs; others evict the files concerned, which
``posix_fadvise(2)`` does for clean pages. Files on tmpfs and DAX mounts are in memory by nature.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from neurotier.meter.residency import resident_share

DROP = Path("/proc/sys/vm/drop_caches")
EVERYTHING = "3\n"
"""Page cache, directory entries and inodes: see ``Documentation/admin-guide/sysctl/vm.rst`` of Linux."""

COLD_SHARE, WARM_SHARE = 0.01, 0.99
"""Share of the inputs that may be in memory for ``cold``, and must be for ``warm``."""

CHUNK_BYTES = 1 << 20


@dataclass(frozen=True)
class CacheState:
    """What was done to the page cache, and its state afterwards.

    Attributes
    ----------
    state
        ``cold``, ``warm``, ``as found``, or ``memory`` where the inputs are in memory by nature.
    action
        What was done, for people.
    resident
        Share of the inputs in memory, from 0 to 1; ``None`` if the kernel would not tell.
    problem
        Why it is not the requested state; empty if it is.
    """

    state: str
    action: str
    resident: float | None
    problem: str


def prepare_cache(
    asked: str, inputs: Sequence[Path], others: Sequence[Path], in_memory: bool, programs: bool = True
) -> CacheState:
    """Write back what is dirty, bring the page cache into a state, and verify it.

    Parameters
    ----------
    asked
        ``cold``, ``warm`` or ``as found``.
    inputs
        Files that the participant jobs read.
    others
        Further files to evict or read: those of the container image.
    in_memory
        Whether the inputs lie on a tier in memory.
    programs
        Whether ``cold`` includes programs and libraries, where root may drop the whole cache.
    """
    os.sync()  # otherwise the run would share its disks with the write-back of the one before
    action = "synced"
    if asked == "cold":
        action += ", " + ((programs and drop()) or evict([*inputs, *others]))
    elif asked == "warm":
        read([*inputs, *others])
        action += f", read {len(inputs)} inputs"
    if in_memory:
        return CacheState("memory", action, None, "")
    resident = resident_share(inputs)
    return CacheState(asked, action, resident, problem(asked, resident))


def problem(asked: str, resident: float | None) -> str:
    """Why the page cache is not as requested; empty if it is.

    >>> problem("cold", 0.25), problem("warm", 1.0), problem("as found", None)
    ('cold was asked for, and 25 % of the inputs were in memory', '', '')
    """
    if asked == "as found":
        return ""
    if resident is None:
        return f"{asked} was asked for, and the kernel did not tell what was in memory"
    held = resident <= COLD_SHARE if asked == "cold" else resident >= WARM_SHARE
    return "" if held else f"{asked} was asked for, and {resident:.0%} of the inputs were in memory".replace("%", " %")


def drop() -> str:
    """Drop the whole page cache; returns what was done, or an empty text if that is not allowed."""
    try:
        DROP.write_text(EVERYTHING)
    except OSError:
        return ""
    return "dropped the page cache"


def evict(files: Sequence[Path]) -> str:
    """Evict files from the page cache; returns what was done. Dirty pages stay, so sync first."""
    evicted = 0
    for file in files:
        with suppress(PermissionError), file.open("rb", buffering=0) as opened:  # such as an image's /etc/shadow
            os.posix_fadvise(opened.fileno(), 0, 0, os.POSIX_FADV_DONTNEED)
            evicted += 1
    return f"evicted {evicted} files"


def read(files: Sequence[Path]) -> None:
    """Read files, so that they are in the page cache."""
    for file in files:
        with suppress(PermissionError), file.open("rb", buffering=0) as opened:
            while opened.read(CHUNK_BYTES):
                pass
