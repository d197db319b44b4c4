"""Memory: how much is available to analyse an image on this machine, in this job or container."""

from __future__ import annotations

from neurotier.core.control_groups import memory

LEAST_BYTES = 4 << 30
"""Always taken as available, so that a head of 512 x 512 x 512 voxels never counts as bad input: a job may get more
memory after it was killed, and what other jobs use now they will free."""


def memory_for_images() -> int:
    """Memory of this job, bytes: the least of what is available here and what its control groups allow."""
    import psutil

    available = psutil.virtual_memory().available
    return max(LEAST_BYTES, min([available, *(limit_bytes for limit_bytes, _ in memory())]))
