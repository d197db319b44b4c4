"""What jobs need of the resources that they share, how much there is of each, and what Snakemake has granted a job.

Snakemake grants less than was asked for where the machine has less, and more where the user said so
(``--set-threads``, ``--set-resources``), or at another attempt on a cluster. Apps want to be told what they may take.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from functools import cached_property
from typing import NamedTuple

import psutil

from neurotier.analysis.brains import Share
from neurotier.analysis.needs import merged_bytes, placed_bytes, threads_of, work_bytes, work_files
from neurotier.core.errors import TierError
from neurotier.core.places import Places
from neurotier.core.settings import Settings
from neurotier.core.tiers import tiers_of
from neurotier.dataset.bids import Image
from neurotier.run.participants import selected_in
from neurotier.run.shares import members_of

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
    """

    threads: int | None = None
    memory_mb: int | None = None
    work_mb: int | None = None
    work_files: int | None = None
    at_once: int = 1
    beside: int = 0
    elsewhere: bool = False

    @property
    def present(self) -> int:
        """Participants who are there at the same time, whatever they do."""
        return self.at_once + self.beside

    def among(self, participants: int) -> Granted:
        """The same for so many participants: there are no more of them at once."""
        at_once = min(self.at_once, participants)
        return self._replace(at_once=at_once, beside=min(self.beside, participants - at_once))


def megabytes(size_bytes: int) -> int:
    """A size in whole MB, rounded up.

    >>> megabytes(1_000_001)
    2
    """
    return -(-size_bytes // MEGABYTE)


def largest(needs: Iterable[int], count: int) -> int:
    """The sum of so many of the largest needs."""
    return sum(sorted(needs, reverse=True)[:count])


def fills_memory(settings: Settings) -> bool:
    """Whether what a job has on its work tier takes memory."""
    return settings.kind_of("work").takes_memory


class Needs:
    """Answers for the rules' resources, by who the participants are and who shares a job.

    Attributes
    ----------
    settings, places
        Of the run.
    elsewhere
        Whether jobs run on other nodes than this one.
    slots
        How many participants this machine analyses at once; ``None`` if that is not known, as on a cluster.
    """

    def __init__(self, settings: Settings, places: Places, elsewhere: bool) -> None:
        self.settings, self.places, self.elsewhere = settings, places, elsewhere
        self.slots: int | None = None

    def images(self, participant: str) -> list[Image]:
        """A participant's images; none while there is no index."""
        return selected_in(self.places).get(participant, [])

    def members(self, share: str) -> list[str]:
        """Participants of a share."""
        return members_of(share, self.places)

    def at_once(self, share: str) -> int:
        """How many participants of a share are analysed at the same time: as many as this machine has cores for."""
        asked = (self.settings.shares.at_once if self.elsewhere else self.slots) or 1
        return min(asked, len(self.members(share)))

    def beside(self, share: str) -> int:
        """How many more participants of a share copy in or out meanwhile."""
        return min(self.settings.shares.staging_beside, len(self.members(share)) - self.at_once(share))

    def share_threads(self, share: str) -> int:
        """Cores that the job of a share takes."""
        return self.threads * self.at_once(share)

    @property
    def is_app(self) -> bool:
        """Whether a BIDS App runs instead of a tool."""
        return self.settings.app.image is not None

    @property
    def threads(self) -> int:
        """Cores that one participant takes."""
        return threads_of(self.settings)

    def of(self, participant: str, attempt: int = 1) -> tuple[int, int, int]:
        """What a participant takes: memory (MB), room (MB) and files on the work tier."""
        return self.mem_mb(participant, attempt), self.work_mb(participant), self.work_files(participant)

    def work_mb(self, participant: str) -> int:
        """Room that a participant takes on the work tier, MB, at most all of it: a job that needs more says so."""
        return self.within("work_mb", megabytes(work_bytes(self.images(participant), self.settings)))

    def work_files(self, participant: str) -> int:
        """Files that a participant takes on the work tier, at most all its inodes; 0 if none are counted."""
        return self.within("work_files", work_files(self.images(participant), self.settings) or 0)

    def mem_mb(self, participant: str, attempt: int = 1) -> int:
        """Peak memory of a participant with what it keeps on a tier that is memory, MB, at most what the machine has.

        That of its processes is multiplied by the number of the attempt.
        """
        if self.is_app:
            needed_mb = self.settings.app.memory_mb
        else:
            from neurotier.analysis.tools import make_tool  # which loads what reads images

            base_mb, per_mb = make_tool(self.settings.tool).memory_mb
            largest_bytes = max((image.size_bytes or 0 for image in self.images(participant)), default=0)
            needed_mb = base_mb + per_mb * largest_bytes // MEGABYTE
        files_mb = self.work_mb(participant) if fills_memory(self.settings) else 0
        return self.within("mem_mb", needed_mb * attempt + files_mb)

    def most(self, need: Callable[[str], int], share: str) -> int:
        """What those participants of a share need together at most who are there at the same time."""
        return largest(map(need, self.members(share)), self.at_once(share) + self.beside(share))

    def share_work_mb(self, share: str) -> int:
        """Room that a share takes on the work tier, MB: that of its largest participants, as many as are at once."""
        return self.within("work_mb", self.most(self.work_mb, share))

    def share_work_files(self, share: str) -> int:
        """Files that a share takes on the work tier, as :meth:`share_work_mb`."""
        return self.within("work_files", self.most(self.work_files, share))

    def share_mem_mb(self, share: str, attempt: int = 1) -> int:
        """Memory of the job of a share, MB: of those who compute, and beside them; on a cluster of its Snakemake.

        There it is the job's, too, what it places on an images tier that is memory: it may be the first on its node.
        """
        members, beside = self.members(share), self.beside(share)
        needed_mb = largest((self.mem_mb(name, attempt) for name in members), self.at_once(share)) + STAGING_MB * beside
        files_mb = largest(map(self.work_mb, members), beside) if fills_memory(self.settings) else 0
        return self.within("mem_mb", needed_mb + files_mb + self.own_mb(attempt))

    def own_mb(self, attempt: int = 1) -> int:
        """Memory of a job besides its participants', MB."""
        return SNAKEMAKE_MB * attempt + megabytes(placed_bytes(self.settings, self.places)) if self.elsewhere else 0

    def share_of(self, granted: Granted, files_mb: int) -> Share:
        """What the app may take for one participant: equal parts of what is not for files, and others."""
        threads = self.threads if granted.threads is None else max(1, granted.threads // granted.at_once)
        if granted.memory_mb is None:
            return Share(threads, self.settings.app.memory_mb)
        left_mb = granted.memory_mb - self.own_mb() - STAGING_MB * granted.beside - files_mb
        return Share(threads, max(1, left_mb // granted.at_once))

    def share_in_pool(self, granted: Granted, participants: Iterable[str]) -> Share:
        """The same in a pool, whose largest participants have their files on the work tier."""
        files_mb = (megabytes(work_bytes(self.images(name), self.settings)) for name in participants)
        return self.share_of(granted, largest(files_mb, granted.present) if fills_memory(self.settings) else 0)

    def share_of_group(self, granted: Granted, participants: Iterable[str]) -> Share:
        """The same of the group level, whose files are the outputs of participants.

        Raises
        ------
        TierError
            If they leave nothing of the job's memory.
        """
        files_mb = megabytes(merged_bytes(self.settings, self.places, participants))
        taken_mb = files_mb + self.own_mb()
        if granted.memory_mb is not None and taken_mb >= granted.memory_mb:
            raise TierError(
                f"the group level's job has {granted.memory_mb} MB of memory, and its files take {taken_mb} MB of it",
                where=f"tier {self.settings.placement['work']!r}",
                fix="ask for more (--set-resources run_group_level:mem_mb=N), or place work on another tier",
            )
        return self.share_of(granted, files_mb)

    def app_memory_mb(self, participants: Iterable[str], attempt: int = 1) -> int:
        """Memory of the group level of some participants, MB, at most what the machine has.

        It is that of the app and of their outputs on a work tier that is memory, which are known once they are done;
        on a cluster of the job's Snakemake, too, and of what the job places.
        """
        needed_mb = self.settings.app.memory_mb * attempt + self.own_mb(attempt)
        needed_mb += megabytes(merged_bytes(self.settings, self.places, participants))
        return self.within("mem_mb", needed_mb)

    def within(self, resource: str, need: int) -> int:
        """A need, at most what there is of the resource, if that is known: a job that needs more says so itself."""
        return min(need, self.room.get(resource) or need)

    @cached_property
    def room(self) -> dict[str, int]:
        """How much there is for jobs, as far as it is known: of this machine's memory, unless they run on others; of
        the work tier, unless each of those has its own, or its path is not there; of inodes, if anybody counts files.
        """
        room: dict[str, int | None] = {}
        if not self.elsewhere:
            room["mem_mb"] = int(0.95 * psutil.virtual_memory().total / MEGABYTE)
        if not self.elsewhere or self.settings.kind_of("work").remote:
            tier = tiers_of(self.settings)["work"]
            is_there, counted = tier.path.is_dir(), work_files([], self.settings) is not None
            room["work_mb"] = tier.free_bytes() // MEGABYTE if is_there else None
            room["work_files"] = tier.free_files() if is_there and counted else None
        return {name: limit for name, limit in room.items() if limit is not None}

    def limits(self) -> dict[str, int]:
        """Limits of the resources that jobs share."""
        return {"gets": self.settings.dataset.concurrent_gets, "probes": 1, **self.room}


def needs_of(needs: Needs, participants: Iterable[str]) -> dict[str, list[int]]:
    """Amount of each resource that each participant job takes, MB or files."""
    each = zip(*map(needs.of, participants), strict=True)
    return dict(zip(("mem_mb", "work_mb", "work_files"), map(list, each), strict=False))
