"""Memory: how much an image may take of this machine, job or container."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path, PurePosixPath

import psutil

LEAST_BYTES = 4 << 30
"""What is always granted. A cluster's job has what the size of its compressed images let expect, and may be given more
when it was killed, and others compute beside it: none of that makes a head of 512 x 512 x 512 voxels bad input."""

CGROUPS = Path("/sys/fs/cgroup")


def memory_for_images() -> int:
    """Memory that this job has, bytes: the least of what is available here, and of what its cgroups and Slurm allow."""
    available = psutil.virtual_memory().available
    return max(LEAST_BYTES, min([available, *cgroup_limits(Path("/proc/self/cgroup"), CGROUPS), *slurm_limits()]))


def slurm_limits() -> Iterator[int]:
    """What Slurm granted this job on each node, bytes, if it is one and did not get all that there is."""
    with suppress(KeyError, ValueError):
        granted_mib = int(os.environ["SLURM_MEM_PER_NODE"])
        if granted_mib > 0:
            yield granted_mib << 20


def cgroup_limits(membership: Path, mounted: Path) -> Iterator[int]:
    """Memory limits, bytes, of the cgroups that a process is in, and of those around them.

    Parameters
    ----------
    membership
        The process's ``cgroup`` file.
    mounted
        Where cgroups are mounted: version 2 itself, or version 1 with its ``memory`` folder.
    """
    with suppress(OSError):
        for line in membership.read_text().splitlines():
            _, controllers, path = line.split(":", 2)
            if not controllers:
                root, name = mounted, "memory.max"
            elif "memory" in controllers.split(","):
                root, name = mounted / "memory", "memory.limit_in_bytes"
            else:
                continue
            inner = PurePosixPath(path.lstrip("/"))
            for group in (inner, *inner.parents):  # in a container, its own may be mounted as the root
                with suppress(OSError, ValueError):  # not there, or 'max'
                    yield int((root / group / name).read_text())
