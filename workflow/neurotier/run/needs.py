"""What jobs need of the resources that they share, and how much there is of each."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from functools import cached_property
from pathlib import Path

import psutil

from neurotier.analysis.needs import merged_bytes, placed_bytes, threads_of, work_bytes, work_files
from neurotier.core.kinds import KINDS
from neurotier.core.places import Places
from neurotier.core.settings import Settings
from neurotier.core.tiers import Tier, tiers_of
from neurotier.dataset.bids import Image
from neurotier.run.granted import MEGABYTE, SNAKEMAKE_MB, STAGING_MB
from neurotier.run.participants import Selected, selected_by
from neurotier.run.shares import members_of


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
        try:
            return self.read(self.places.index / "images.tsv").get(participant, [])
        except FileNotFoundError:
            return []

    def read(self, table: Path | str) -> Selected:
        """Participant to images, by the current index."""
        return selected_by(Path(table))

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

    def work_mb(self, participant: str) -> int:
        """Room that a participant takes on the work tier, MB, at most all of it: a job that needs more says so."""
        return min(-(-work_bytes(self.images(participant), self.settings) // MEGABYTE), self.work_limit_mb or 2**40)

    def work_files(self, participant: str) -> int:
        """Files that a participant takes on the work tier, at most all its inodes; 0 if none are counted."""
        return min(work_files(self.images(participant), self.settings) or 0, self.work_files_limit or 2**62)

    def mem_mb(self, participant: str, attempt: int = 1) -> int:
        """Peak memory of a participant with what it keeps on a tier that is memory, MB, at most what the machine has.

        That of its processes is multiplied by the number of the attempt.
        """
        if self.is_app:
            needed_mb = self.settings.app.memory_mb * attempt
        else:
            from neurotier.analysis.tools import make_tool  # which loads what reads images

            base_mb, per_mb = make_tool(self.settings.tool).memory_mb
            largest_bytes = max((image.size_bytes or 0 for image in self.images(participant)), default=0)
            needed_mb = (base_mb + per_mb * largest_bytes // MEGABYTE) * attempt
        if KINDS[self.work_kind].takes_memory:
            needed_mb += self.work_mb(participant)
        return min(needed_mb, self.memory_limit_mb or 2**40)

    def most(self, need: Callable[[str], int], share: str, count: int) -> int:
        """What so many participants of a share need together at most."""
        return sum(sorted(map(need, self.members(share)), reverse=True)[:count])

    def share_work_mb(self, share: str) -> int:
        """Room that a share takes on the work tier, MB: that of its largest participants, as many as are at once."""
        present = self.at_once(share) + self.beside(share)
        return min(self.most(self.work_mb, share, present), self.work_limit_mb or 2**40)

    def share_work_files(self, share: str) -> int:
        """Files that a share takes on the work tier, as :meth:`share_work_mb`."""
        present = self.at_once(share) + self.beside(share)
        return min(self.most(self.work_files, share, present), self.work_files_limit or 2**62)

    def share_mem_mb(self, share: str, attempt: int = 1) -> int:
        """Memory of the job of a share, MB: of those who compute, and beside them; on a cluster of its Snakemake.

        There it is the job's, too, what it places on an images tier that is memory: it may be the first on its node.
        """
        beside = self.beside(share)
        needed_mb = self.most(lambda name: self.mem_mb(name, attempt), share, self.at_once(share)) + STAGING_MB * beside
        if KINDS[self.work_kind].takes_memory:
            needed_mb += self.most(self.work_mb, share, beside)
        return min(needed_mb + self.own_mb(attempt), self.memory_limit_mb or 2**40)

    def own_mb(self, attempt: int = 1) -> int:
        """Memory of a job besides its participants', MB."""
        return SNAKEMAKE_MB * attempt + self.placed_mb if self.elsewhere else 0

    def app_memory_mb(self, participants: Iterable[str], attempt: int = 1) -> int:
        """Memory of the group level of some participants, MB, at most what the machine has.

        It is that of the app and of their outputs on a work tier that is memory, which are known once they are done;
        on a cluster of the job's Snakemake, too, and of what the job places.
        """
        merged_mb = -(-merged_bytes(self.settings, self.places, participants) // MEGABYTE)
        return min(
            self.settings.app.memory_mb * attempt + self.own_mb(attempt) + merged_mb, self.memory_limit_mb or 2**40
        )

    @property
    def placed_mb(self) -> int:
        """Memory that image and caches take on an images tier that is memory, MB."""
        return -(-placed_bytes(self.settings, self.places) // MEGABYTE)

    @property
    def work_kind(self) -> str:
        """Kind of the work tier."""
        return self.settings.tiers[self.settings.placement["work"]].kind

    @cached_property
    def work_tier(self) -> Tier | None:
        """The work tier; ``None`` if that of this node is not that of the jobs, or its path is not there."""
        if self.elsewhere and not KINDS[self.work_kind].remote:
            return None
        tier = tiers_of(self.settings)["work"]
        return tier if tier.path.is_dir() else None

    @cached_property
    def work_limit_mb(self) -> int | None:
        """Free capacity of the work tier, MB, as far as it is known."""
        return self.work_tier.free_bytes() // MEGABYTE if self.work_tier else None

    @cached_property
    def work_files_limit(self) -> int | None:
        """Files that the work tier has inodes for; ``None`` if they have no limit, or nobody counts those of jobs."""
        counted = work_files([], self.settings) is not None
        return self.work_tier.free_files() if self.work_tier and counted else None

    @cached_property
    def memory_limit_mb(self) -> int | None:
        """Memory of this machine that jobs may fill, MB; ``None`` if the jobs run on others."""
        return None if self.elsewhere else int(0.95 * psutil.virtual_memory().total / MEGABYTE)

    def limits(self) -> dict[str, int]:
        """Limits of the resources that jobs share."""
        limits = {"gets": self.settings.dataset.concurrent_gets, "probes": 1}
        known = {"mem_mb": self.memory_limit_mb, "work_mb": self.work_limit_mb, "work_files": self.work_files_limit}
        return limits | {name: limit for name, limit in known.items() if limit is not None}
