"""Memory: how much is available to analyse an image on this machine, in this job or container."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import suppress

from neurotier.core.control_groups import memory_limits

LEAST_BYTES = 4 << 30
"""Always taken as available, so that a head of 512 x 512 x 512 voxels never counts as bad input: a job may get more
memory after it was killed, and what other jobs use now they will free."""


def memory_for_images() -> int:
    """Memory of this job, bytes: the least of what is available here and what its cgroups and Slurm allow."""
    import psutil

    available = psutil.virtual_memory().available
    return max(LEAST_BYTES, min([available, *memory_limits(), *slurm_limits()]))


def slurm_limits() -> Iterator[int]:
    """Memory that Slurm granted this job per node, bytes; nothing outside Slurm, or if the job got all of the node."""
    with suppress(KeyError, ValueError):
        granted_mib = int(os.environ["SLURM_MEM_PER_NODE"])
        if granted_mib > 0:
            yield granted_mib << 20
