"""What Snakemake has granted a job, and what each call of an app may take of it, for apps that want to be told.

Snakemake grants less than was asked for where the machine has less, and more where the user said so
(``--set-threads``, ``--set-resources``), or at another attempt on a cluster.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import NamedTuple

from neurotier.analysis.app import Share
from neurotier.analysis.needs import merged_bytes, placed_bytes, work_bytes
from neurotier.core.errors import TierError
from neurotier.core.kinds import KINDS
from neurotier.core.places import Places
from neurotier.core.settings import Settings
from neurotier.dataset.bids import Image

MEGABYTE = 1_000_000
"""Unit of Snakemake's ``*_mb`` resources, which are decimal."""

SNAKEMAKE_MB = 500
"""Memory of the Snakemake that a cluster job runs; measured: 450 to 475 MB."""

STAGING_MB = 100
"""Memory of a participant that copies, or waits to compute: at most what a tool's libraries take, which it shares with
the others. Measured: 4 MB of its own."""


class Granted(NamedTuple):
    """What a job has been granted.

    Attributes
    ----------
    threads, memory_mb
        Cores and memory (MB) of the job; ``None`` for a job that was started by hand.
    work_mb, work_files
        Room (MB) and files on the work tier, as far as they are granted.
    at_once
        Participants among whom they are divided: those who compute at the same time.
    beside
        How many more there are at the same time, who copy images in or results out, or wait to compute.
    elsewhere
        Whether the job runs on a node of a cluster, where a Snakemake takes its part of the memory.
    files_mb
        Part of the memory that is for files, on tiers that are memory, MB.
    """

    threads: int | None = None
    memory_mb: int | None = None
    work_mb: int | None = None
    work_files: int | None = None
    at_once: int = 1
    beside: int = 0
    elsewhere: bool = False
    files_mb: int = 0

    @property
    def present(self) -> int:
        """Participants who are there at the same time, whatever they do."""
        return self.at_once + self.beside

    def among(self, participants: int) -> Granted:
        """The same for so many participants: there are no more of them at once."""
        at_once = min(self.at_once, participants)
        return self._replace(at_once=at_once, beside=min(self.beside, participants - at_once))

    def with_files(self, settings: Settings, places: Places, everyone: Iterable[Sequence[Image]]) -> Granted:
        """The same, with the memory that was asked for as room of files.

        That is the room of the job's largest participants, and on a cluster of what it places for all of them.
        """
        if not settings.app.image:
            return self
        needs_mb: list[int] = []
        if KINDS[settings.tiers[settings.placement["work"]].kind].takes_memory:
            needs_mb = sorted((-(-work_bytes(list(images), settings) // MEGABYTE) for images in everyone), reverse=True)
        return self._replace(files_mb=sum(needs_mb[: self.present]) + self.placed_mb(settings, places))

    def with_outputs(self, settings: Settings, places: Places, participants: Iterable[str]) -> Granted:
        """The same for the group level, whose files are the outputs of participants, and what the job places.

        Raises
        ------
        TierError
            If they leave nothing of the job's memory.
        """
        merged_mb = -(-merged_bytes(settings, places, participants) // MEGABYTE)
        files_mb = merged_mb + self.placed_mb(settings, places)
        if self.memory_mb is not None and files_mb + SNAKEMAKE_MB * self.elsewhere >= self.memory_mb:
            raise TierError(
                f"the group level's job has {self.memory_mb} MB of memory, and its files take {files_mb} MB of it",
                where=f"tier {settings.placement['work']!r}",
                fix="ask for more (--set-resources run_group_level:mem_mb=N), or place work on another tier",
            )
        return self._replace(files_mb=files_mb)

    def placed_mb(self, settings: Settings, places: Places) -> int:
        """Memory of what a job on a cluster places on a tier that is memory, MB."""
        return -(-placed_bytes(settings, places) // MEGABYTE) if self.elsewhere else 0

    def share(self, settings: Settings) -> Share:
        """What the app may take for one participant: equal parts of what is not for files."""
        threads = settings.app.threads if self.threads is None else max(1, self.threads // self.at_once)
        if self.memory_mb is None:
            return Share(threads, settings.app.memory_mb)
        others_mb = SNAKEMAKE_MB * self.elsewhere + STAGING_MB * self.beside + self.files_mb
        share_mb = (self.memory_mb - others_mb) // self.at_once
        return Share(threads, max(1, share_mb))
