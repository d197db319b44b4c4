"""Memory: how much is available to analyse an image on this machine, in this job or container."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path, PurePosixPath

LEAST_BYTES = 4 << 30
"""Always taken as available, so that a head of 512 x 512 x 512 voxels never counts as bad input: a job may get more
memory after it was killed, and what other jobs use now they will free."""

CGROUPS = Path("/sys/fs/cgroup")


def memory_for_images() -> int:
    """Memory of this job, bytes: the least of what is available here and what its cgroups and Slurm allow."""
    import psutil

    available = psutil.virtual_memory().available
    return max(LEAST_BYTES, min([available, *cgroup_limits(Path("/proc/self/cgroup"), CGROUPS), *slurm_limits()]))


def slurm_limits() -> Iterator[int]:
    """Memory that Slurm granted this job per node, bytes; nothing outside Slurm, or if the job got all of the node."""
    with suppress(KeyError, ValueError):
        granted_mib = int(os.environ["SLURM_MEM_PER_NODE"])
        if granted_mib > 0:
            yield granted_mib << 20


def cgroup_limits(membership: Path, mounted: Path) -> Iterator[int]:
    """Memory limits, bytes, of the cgroups of a process and of their parents.

    Parameters
    ----------
    membership
        The process's ``cgroup`` file.
    mounted
        Mount point of cgroups: version 2, or version 1 with its folder ``memory``.
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
            for group in (inner, *inner.parents):  # in a container, the own group may be mounted as the root
                with suppress(OSError, ValueError):  # not there, or 'max'
                    yield int((root / group / name).read_text())
