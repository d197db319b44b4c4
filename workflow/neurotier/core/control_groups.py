"""Control groups: how much of its machine a batch system or a container lets this process use.

A limit applies to a group and all groups below it, so those of all parent groups count, too. Every job on a tier in
memory reads these limits; that is why no library is imported for them.

Source: Linux ``Documentation/admin-guide/cgroup-v2.rst``, ``cgroup-v1``.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path, PurePosixPath

MEMBERSHIP = Path("/proc/self/cgroup")
MOUNTED = Path("/sys/fs/cgroup")
"""Where control groups are mounted: version 2, or version 1 with a folder for each controller."""

NO_LIMIT_BYTES = 1 << 60
"""Limits from here on mean "no limit", which version 1 expresses as the largest number of whole pages."""

MEMORY_FILES = (
    ("memory.max", "memory.current", "inactive_file"),
    ("memory.limit_in_bytes", "memory.usage_in_bytes", "total_inactive_file"),
)
"""A group's limit, what it uses, and the line of ``memory.stat`` for cached files, in each version."""


def groups(controller: str) -> Iterator[Path]:
    """Folders of this process's control groups and of their parents.

    Parameters
    ----------
    controller
        The resource that they control, such as ``memory``.
    """
    with suppress(OSError):
        for line in MEMBERSHIP.read_text().splitlines():
            _, controllers, path = line.split(":", 2)
            if controllers and controller not in controllers.split(","):
                continue
            root, inner = MOUNTED / controller if controllers else MOUNTED, PurePosixPath(path.lstrip("/"))
            for group in (inner, *inner.parents):  # in a container, this process's group may be mounted as the root
                yield root / group


def memory() -> Iterator[tuple[int, int]]:
    """For each of this process's groups with a memory limit: the limit, and what the group may still take, bytes.

    Memory that only caches files counts as free: the kernel gives it up when memory is needed.
    """
    for folder in groups("memory"):
        for limit, used, cached in MEMORY_FILES:
            with suppress(OSError, ValueError):  # not there, or 'max'
                limit_bytes, used_bytes = (int((folder / name).read_text()) for name in (limit, used))
                given_up = dict(map(str.split, (folder / "memory.stat").read_text().splitlines())).get(cached, "0")
                if limit_bytes < NO_LIMIT_BYTES:
                    yield limit_bytes, max(0, limit_bytes - used_bytes + int(given_up))


def usable_cores() -> float:
    """How many cores this process may use: those it is bound to, or fewer if a quota says so."""
    return min([len(os.sched_getaffinity(0)), *core_limits()])


def core_limits() -> Iterator[float]:
    """Quotas of this process's groups, cores."""
    for folder in groups("cpu"):
        with suppress(OSError, ValueError):  # not there, or 'max'
            quota, period = (folder / "cpu.max").read_text().split()
            yield int(quota) / int(period)
        with suppress(OSError, ValueError):
            quota_us = int((folder / "cpu.cfs_quota_us").read_text())
            if quota_us > 0:
                yield quota_us / int((folder / "cpu.cfs_period_us").read_text())
