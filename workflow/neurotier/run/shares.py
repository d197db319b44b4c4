"""Shares: what each participant may take of what Snakemake has granted a job, for apps that want to be told.

Snakemake grants less than was asked for where the machine has less, and more where the user said so
(``--set-threads``, ``--set-resources``), or at another attempt on a cluster.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from neurotier.analysis.app import Share
from neurotier.core.settings import Settings
from neurotier.dataset.bids import Image


class Granted(NamedTuple):
    """What a job has been granted.

    Attributes
    ----------
    threads, memory_mb
        Cores and memory (MB) of the job; ``None`` for a job that was started by hand.
    at_once
        Participants among whom they are divided.
    elsewhere
        Whether the job runs on a node of a cluster, where a Snakemake takes its part of the memory.
    """

    threads: int | None = None
    memory_mb: int | None = None
    at_once: int = 1
    elsewhere: bool = False

    def share(self, settings: Settings, images: Sequence[Image]) -> Share:
        """What the app may take for one participant, whose files may take memory, too, on a tier that is memory."""
        from neurotier.analysis.needs import work_bytes
        from neurotier.core.kinds import KINDS
        from neurotier.run.batches import MEGABYTE, SNAKEMAKE_MB

        threads = settings.app.threads if self.threads is None else max(1, self.threads // self.at_once)
        if self.memory_mb is None:
            return Share(threads, settings.app.memory_mb)
        share_mb = (self.memory_mb - SNAKEMAKE_MB * self.elsewhere) // self.at_once
        if KINDS[settings.tiers[settings.placement["work"]].kind].takes_memory:
            share_mb -= -(-work_bytes(list(images), settings) // MEGABYTE)
        return Share(threads, max(1, share_mb))
