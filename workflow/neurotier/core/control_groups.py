"""Control groups: what a batch system or a container lets this process take of its machine.

Limits hold for a group and all below it, so those of every group above count, too. Read without a library, because
every job on a tier that is memory asks. Source: Linux ``Documentation/admin-guide/cgroup-v2.rst`` and ``cgroup-v1``.
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
"""Version 1 has no limit as the largest number of whole pages."""

MEMORY_FILES = (
    ("memory.max", "memory.current", "inactive_file"),
    ("memory.limit_in_bytes", "memory.usage_in_bytes", "total_inactive_file"),
)
"""A group's limit, what it uses, and the line of ``memory.stat`` for cached files, in each version."""


def groups(controller: str) -> Iterator[Path]:
    """Folders of a process's control groups and of their parents.

    Parameters
    ----------
    controller
        What they control, such as ``memory``.
    """
    with suppress(OSError):
        for line in MEMBERSHIP.read_text().splitlines():
            _, controllers, path = line.split(":", 2)
            if controllers and controller not in controllers.split(","):
                continue
            root, inner = MOUNTED / controller if controllers else MOUNTED, PurePosixPath(path.lstrip("/"))
            for group in (inner, *inner.parents):  # in a container, the own group may be mounted as the root
                yield root / group


def memory() -> Iterator[tuple[int, int]]:
    """The memory limit of each of a process's groups that has one, and what the group may still take, bytes.

    Files that are in the page cache alone are given up when memory is needed.
    """
    for folder in groups("memory"):
        for limit, used, cached in MEMORY_FILES:
            with suppress(OSError, ValueError):  # not there, or 'max'
                limit_bytes, used_bytes = (int((folder / name).read_text()) for name in (limit, used))
                given_up = dict(map(str.split, (folder / "memory.stat").read_text().splitlines())).get(cached, "0")
                if limit_bytes < NO_LIMIT_BYTES:
                    yield limit_bytes, max(0, limit_bytes - used_bytes + int(given_up))


def usable_cores() -> float:
    """How many cores' time this process may take: that of the cores it is bound to, and no more than its quotas."""
    return min([len(os.sched_getaffinity(0)), *core_limits()])


def core_limits() -> Iterator[float]:
    """Quotas of a process's groups, cores."""
    for folder in groups("cpu"):
        with suppress(OSError, ValueError):  # not there, or 'max'
            quota, period = (folder / "cpu.max").read_text().split()
            yield int(quota) / int(period)
        with suppress(OSError, ValueError):
            quota_us = int((folder / "cpu.cfs_quota_us").read_text())
            if quota_us > 0:
                yield quota_us / int((folder / "cpu.cfs_period_us").read_text())
