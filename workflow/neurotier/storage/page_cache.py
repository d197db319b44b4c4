"""Empty the page cache before a run, or fill it with the inputs, and verify its state.

Root drops the whole cache, as the published experiment did between runs. Other users evict the files concerned with
``posix_fadvise(2)``, which works for clean pages. Files on tmpfs and DAX mounts are always in memory.
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
"""Page cache, directory entries and inodes; see ``Documentation/admin-guide/sysctl/vm.rst`` of Linux."""

COLD_SHARE, WARM_SHARE = 0.01, 0.99
"""The largest share of the inputs in memory that counts as ``cold``, and the smallest that counts as ``warm``."""

CHUNK_BYTES = 1 << 20


@dataclass(frozen=True)
class CacheState:
    """What was done to the page cache, and its state afterwards.

    Attributes
    ----------
    state
        ``cold``, ``warm``, ``as found``, or ``memory`` if the inputs lie on a tier in memory.
    action
        What was done, in words.
    resident
        Share of the inputs in memory, from 0 to 1; ``None`` if the kernel does not report it.
    problem
        Why the cache is not in the requested state; empty if it is.
    """

    state: str
    action: str
    resident: float | None
    problem: str


def prepare_cache(
    asked: str, inputs: Sequence[Path], others: Sequence[Path], in_memory: bool, programs: bool = True
) -> CacheState:
    """Write back dirty pages, bring the page cache into the requested state, and verify it.

    Parameters
    ----------
    asked
        The requested state: ``cold``, ``warm`` or ``as found``.
    inputs
        Files that the participant jobs read.
    others
        Further files to evict or read: those of the container image.
    in_memory
        Whether the inputs lie on a tier in memory.
    programs
        Whether ``cold`` includes programs and libraries; root then drops the whole cache.
    """
    os.sync()  # otherwise the write-back of the previous run would compete with this run for the disks
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
        return f"{asked} was asked for, and the kernel did not report what was in memory"
    held = resident <= COLD_SHARE if asked == "cold" else resident >= WARM_SHARE
    return "" if held else f"{asked} was asked for, and {resident:.0%} of the inputs were in memory".replace("%", " %")


def drop() -> str:
    """Drop the whole page cache; return what was done, or an empty string if that is not allowed."""
    try:
        DROP.write_text(EVERYTHING)
    except OSError:
        return ""
    return "dropped the page cache"


def evict(files: Sequence[Path]) -> str:
    """Evict files from the page cache and return what was done. Dirty pages stay, so sync first."""
    evicted = 0
    for file in files:
        with suppress(PermissionError), file.open("rb", buffering=0) as opened:  # such as an image's /etc/shadow
            os.posix_fadvise(opened.fileno(), 0, 0, os.POSIX_FADV_DONTNEED)
            evicted += 1
    return f"evicted {evicted} files"


def read(files: Sequence[Path]) -> None:
    """Read files to bring them into the page cache."""
    for file in files:
        with suppress(PermissionError), file.open("rb", buffering=0) as opened:
            while opened.read(CHUNK_BYTES):
                pass
