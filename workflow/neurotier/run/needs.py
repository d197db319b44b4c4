"""What jobs need of shared resources, how much there is of each, and what Snakemake has granted a job.

Snakemake grants less than requested if the machine has less, and more if the user says so (``--set-threads``,
``--set-resources``) or in a further attempt on a cluster. An app gets what it may use as options.
"""

from __future__ import annotations

import math
import os
from collections.abc import Iterable, Sequence
from contextlib import suppress
from functools import cache, cached_property
from typing import NamedTuple

import psutil

from neurotier.analysis.brains import Share
from neurotier.analysis.needs import threads_of, work_bytes, work_files
from neurotier.analysis.staging import MARGIN_BYTES
from neurotier.analysis.tools import make_tool
from neurotier.core.control_groups import memory
from neurotier.core.errors import TierError
from neurotier.core.files import read_intact_json
from neurotier.core.places import Places
from neurotier.core.settings import Settings
from neurotier.core.tiers import tiers_of
from neurotier.dataset.bids import Image
from neurotier.run.participants import members_of, selected_in

MEGABYTE = 1_000_000
"""Unit of Snakemake's ``*_mb`` resources, which are decimal."""

SNAKEMAKE_MB = 500
"""Memory of the Snakemake that runs inside a cluster job, MB; measured: 450 to 475 MB."""

UNPACKED_FACTOR = 4.0
"""Bytes that an unpacked image takes per byte of its file; measured: 3.1 for the default image."""

STAGING_MB = 100
"""Memory of a participant that copies, or waits to compute, MB: at most that of a tool's libraries, which it shares
with other participants. Measured: 4 MB of its own."""


class Granted(NamedTuple):
    """The resources that a job requests, or has been granted.

    Attributes
    ----------
    threads, memory_mb
        Cores and memory (MB) of the job; ``None`` for a job that was started by hand.
    work_mb, work_files
        Room (MB) and files on the work tier; ``None`` if not granted.
    at_once
        Participants that compute at the same time; they get equal parts of the above.
    copying
        Further participants at the same time, which copy images in or results out, or wait to compute.
    """

    threads: int | None = None
    memory_mb: int | None = None
    work_mb: int | None = None
    work_files: int | None = None
    at_once: int = 1
    copying: int = 0

    @property
    def present(self) -> int:
        """Participants that are in the job at the same time, whatever they do."""
        return self.at_once + self.copying


class Need(NamedTuple):
    """What a participant needs: memory (MB), and room (MB) and files on the work tier."""

    mem_mb: int
    work_mb: int
    work_files: int


def megabytes(size_bytes: int) -> int:
    """A size in whole MB, rounded up.

    >>> megabytes(1_000_001)
    2
    """
    return -(-size_bytes // MEGABYTE)


def largest(needs: Iterable[int], count: int) -> int:
    """The sum of the ``count`` largest needs."""
    return sum(sorted(needs, reverse=True)[:count])


class Needs:
    """Computes the resources that rules request: which participants there are, which of them share a job, and what that
    job needs.

    Attributes
    ----------
    settings, places
        Of the run.
    on_cluster
        Whether jobs run on other nodes than this one.
    slots
        How many participants this machine analyses at once; ``None`` if unknown, as on a cluster.
    is_app
        Whether a BIDS App runs instead of a tool.
    threads
        Cores that one participant takes.
    """

    def __init__(self, settings: Settings, places: Places, on_cluster: bool) -> None:
        self.settings, self.places, self.on_cluster = settings, places, on_cluster
        self.slots: int | None = None
        self.is_app, self.threads = settings.is_app, threads_of(settings)
        self.fills_memory = settings.kind_of("work").takes_memory
        self.share = cache(self.needs_of_share)

    def images(self, participant: str) -> list[Image]:
        """A participant's images; empty while there is no index."""
        return selected_in(self.places).get(participant, [])

    def members(self, share: str) -> list[str]:
        """Participants of a share."""
        return members_of(share, self.places)

    def of(self, participant: str, attempt: int = 1) -> Need:
        """What a participant needs, whether or not there is as much.

        The memory of its processes is multiplied by the number of the attempt; that of its files on a work tier in
        memory is not. If the work tier has no limit of inodes, no files are counted.
        """
        images, settings = self.images(participant), self.settings
        work_mb = megabytes(work_bytes(images, settings))
        if self.is_app:
            needed_mb = settings.app.memory_mb
        else:
            base_mb, per_mb = make_tool(settings.tool).memory_mb
            needed_mb = base_mb + per_mb * max((image.size_bytes or 0 for image in images), default=0) // MEGABYTE
        needed_mb = needed_mb * attempt + work_mb * self.fills_memory
        return Need(needed_mb, work_mb, work_files(images, settings) or 0)

    def concurrency(self, slots: int | None, members: Sequence[str]) -> Granted:
        """How many participants compute, and how many copy, at the same time in ``slots`` slots; ``None`` if their
        number is unknown."""
        most = (self.settings.shares.at_once or 1) if self.on_cluster else slots or 1
        at_once = min(max(1, most if slots is None else min(most, slots)), len(members))
        return Granted(at_once=at_once, copying=min(self.settings.shares.staging_beside, len(members) - at_once))

    def needs_of_share(self, share: str, attempt: int = 1) -> Granted:
        """What the job of a share requests: the needs of its largest participants, as many as run at once.

        On a cluster the job's memory includes that of its Snakemake, and of what it places on an images tier in memory:
        it may be the first job on its node.
        """
        members = self.members(share)
        asked = self.concurrency(self.slots, members)
        mem_mb, work_mb, files = self.combined((self.of(name, attempt) for name in members), asked)
        return asked._replace(
            threads=self.threads * asked.at_once,
            memory_mb=self.within("mem_mb", mem_mb + self.own_mb(attempt)),
            work_mb=self.within("work_mb", work_mb),
            work_files=self.within("work_files", files),
        )

    def combined(self, needs: Iterable[Need], asked: Granted) -> Need:
        """What participants need together, the largest ones, if no more of them compute and are present than ``asked``
        says."""
        mem_mb, work_mb, files = zip(*needs, strict=True)
        copying = len(mem_mb[asked.at_once : asked.present])
        copying_mb = STAGING_MB * copying + largest(work_mb, copying) * self.fills_memory
        return Need(
            largest(mem_mb, asked.at_once) + copying_mb, largest(work_mb, asked.present), largest(files, asked.present)
        )

    def own_mb(self, attempt: int = 1) -> int:
        """Memory of a job in addition to that of its participants, MB.

        If the images tier is in memory, this includes the container image and an app's caches, once they have been
        obtained. Whether the image is unpacked is decided where it is placed; unless the user has chosen a form, it is
        assumed to be.
        """
        if not self.on_cluster:
            return 0
        settings, placed_bytes = self.settings, 0
        if settings.image and settings.kind_of("images").takes_memory:
            image_bytes = read_intact_json(self.places.index / "image.json").get("size_bytes", 0)
            caches = read_intact_json(self.places.index / "caches.json") if self.is_app and settings.app.caches else {}
            factor = 1.0 if settings.containers.form == "sif" else UNPACKED_FACTOR
            placed_bytes = int(factor * image_bytes) + sum(cache["size_bytes"] for cache in caches.values())
        return SNAKEMAKE_MB * attempt + megabytes(placed_bytes)

    def share_of(self, granted: Granted, files_mb: int) -> Share:
        """What the app may use for one participant: an equal part of what files and other uses leave."""
        threads = self.threads if granted.threads is None else max(1, granted.threads // granted.at_once)
        if granted.memory_mb is None:
            return Share(threads, self.settings.app.memory_mb)
        left_mb = granted.memory_mb - self.own_mb() - STAGING_MB * granted.copying - files_mb
        return Share(threads, max(1, left_mb // granted.at_once))

    def share_in_pool(self, granted: Granted, participants: Iterable[str]) -> Share:
        """What the app may use for one participant in a pool, where the files of the largest participants are on the
        work tier."""
        files_mb = (self.of(name).work_mb for name in participants)
        return self.share_of(granted, largest(files_mb, granted.present) * self.fills_memory)

    def merged_mb(self, participants: Iterable[str]) -> int:
        """Memory of the group level's copy of the participants' outputs on a work tier in memory, MB; 0 on other
        tiers."""
        if not self.fills_memory:
            return 0
        outputs_bytes = MARGIN_BYTES
        for name in participants:
            with suppress(AttributeError, TypeError, ValueError):
                manifest = read_intact_json(self.places.record(name)).get(
                    "derivatives", {}
                )  # earlier versions' have none
                outputs_bytes += sum(int(size_bytes) for size_bytes, _ in manifest.values())
        return megabytes(outputs_bytes)

    def share_of_group(self, granted: Granted, participants: Iterable[str]) -> Share:
        """What the app may use for the group level, whose files are the participants' outputs.

        Raises
        ------
        TierError
            If these files leave nothing of the job's memory.
        """
        files_mb = self.merged_mb(participants)
        taken_mb = files_mb + self.own_mb()
        if granted.memory_mb is not None and taken_mb >= granted.memory_mb:
            raise TierError(
                f"the group level's job has {granted.memory_mb} MB of memory, and its files take {taken_mb} MB of it",
                f"tier {self.settings.placement['work']!r}",
                "ask for more (--set-resources run_group_level:mem_mb=N), or place work on another tier",
            )
        return self.share_of(granted, files_mb)

    def app_memory_mb(self, participants: Iterable[str], attempt: int = 1) -> int:
        """Memory of the group level of some participants, MB, capped at what the machine has.

        It covers the app and the participants' outputs and, on a cluster, the job's Snakemake and the images that the
        job places.
        """
        needed_mb = self.settings.app.memory_mb * attempt + self.own_mb(attempt)
        return self.within("mem_mb", needed_mb + self.merged_mb(participants))

    def within(self, resource: str, need: int) -> int:
        """A need, capped at what there is of the resource, if known; a job that needs more reports that itself."""
        return min(need, self.room.get(resource) or need)

    @cached_property
    def room(self) -> dict[str, int]:
        """How much there is of each resource for jobs, as far as known.

        Memory: what the machine and control groups allow this process, unless jobs run on other nodes. Room on the work
        tier: unless each node has its own, or its path is missing here. Inodes: if files are counted. Limits given to
        Snakemake take precedence, once the start of a run has read them.
        """
        room: dict[str, int] = {}
        if not self.on_cluster:
            all_bytes = min([psutil.virtual_memory().total, *(limit_bytes for limit_bytes, _ in memory())])
            room["mem_mb"] = int(0.95 * all_bytes / MEGABYTE)
        if not self.on_cluster or self.settings.kind_of("work").remote:
            tier = tiers_of(self.settings)["work"]
            if os.path.isdir(tier.path):
                room["work_mb"] = tier.free_bytes() // MEGABYTE
                if work_files([], self.settings) is not None and math.isfinite(files := tier.free_files()):
                    room["work_files"] = int(files)
        return room

    def limits(self) -> dict[str, int]:
        """Limits of the resources that jobs share."""
        return {"gets": self.settings.dataset.concurrent_gets, "probes": 1, **self.room}


def needs_of(needs: Needs, participants: Iterable[str]) -> dict[str, list[int]]:
    """How much of each resource each participant needs, MB or files."""
    return dict(zip(Need._fields, map(list, zip(*map(needs.of, participants), strict=True)), strict=False))
