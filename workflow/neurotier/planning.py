"""Planning: what the rules ask when Snakemake builds its graph of jobs.

Asked thousands of times, so the index is read once per version of its file.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from functools import cached_property
from pathlib import Path
from typing import Any

import psutil

from neurotier.bids import Image
from neurotier.errors import InputError
from neurotier.files import read_json
from neurotier.index import image_of
from neurotier.participant import work_bytes
from neurotier.places import Places
from neurotier.settings import Settings
from neurotier.tables import read_table
from neurotier.tiers import tiers_of

MEGABYTE = 1_000_000
"""Snakemake's ``*_mb`` resources are decimal."""

MEMORY_MB = {"brainextractor": (500, 260), "bet": (200, 40), "noop": (100, 0)}
"""Peak memory of a participant job by tool: a base, and MB per MB of the largest compressed image (measured on
heads of 1 mm and 0.67 mm: 0.9 to 1.2 GB and 3.9 GB with brainextractor, 0.2 GB per 1 mm head with bet)."""


class Plan:
    """Answers for the rules' input functions, resources and parameters."""

    def __init__(self, settings: Settings, places: Places) -> None:
        self.settings, self.places = settings, places
        self.read_at: tuple[str, int] | None = None
        self.by_participant: dict[str, list[Image]] = {}

    @property
    def is_demo(self) -> bool:
        """Whether the dataset is the demonstration, to be made first."""
        return self.settings.dataset.source == "demo"

    def images(self, participant: str) -> list[Image]:
        """A participant's images; none while there is no index."""
        table = self.places.index / "images.tsv"
        return self.read(table).get(participant, []) if table.exists() else []

    def read(self, table: Path | str) -> dict[str, list[Image]]:
        """Participant to images, as the index has them now."""
        version = (str(table), os.stat(table).st_mtime_ns)
        if version != self.read_at:
            self.by_participant = {}
            for row in read_table(Path(table), "images"):
                self.by_participant.setdefault(row["participant"], []).append(image_of(row))
            self.read_at = version
        return self.by_participant

    def participants(self, table: Path | str) -> list[str]:
        """Everyone to analyse."""
        return list(self.read(table))

    def sites(self, table: Path | str) -> list[str]:
        """Sites of everyone to analyse; ``""`` for a dataset without sites."""
        return sorted({images[0].site for images in self.read(table).values()})

    def contents(self, participant: str) -> list[str]:
        """A participant's images with their contents' versions: when they change, they are analysed again."""
        return [f"{image.path} {image.content}" for image in self.images(participant)]

    def got_marker(self, participant: str) -> list[Path]:
        """What an analysis waits for: the fetched images, unless the dataset is a plain folder.

        Raises
        ------
        InputError
            If the index does not select this participant.
        """
        if not self.images(participant):
            raise InputError("no such participant is selected", where=participant, fix="see index/images.tsv")
        plain = read_json(self.places.index / "dataset.json")["kind"] == "folder"
        return [] if plain else [self.places.got(participant)]

    def tool(self) -> dict[str, Any]:
        """The tool's name and options: when they change, everyone is analysed again."""
        return {"name": self.settings.tool.name, **self.settings.tool.options}

    def filters(self) -> dict[str, Any]:
        """The selection: when it changes, the dataset is indexed again."""
        dataset = self.settings.dataset
        return {key: getattr(dataset, key) for key in ("sites", "participants", "sessions", "runs")}

    def work_mb(self, participant: str) -> int:
        """Room on the work tier, MB; a job that asks for more than there is gets all of it, and says so itself."""
        return min(-(-work_bytes(self.images(participant)) // MEGABYTE), self.work_limit_mb or 2**40)

    def mem_mb(self, participant: str) -> int:
        """Peak memory, MB, at most what the machine has."""
        base_mb, per_mb = MEMORY_MB[self.settings.tool.name]
        largest_bytes = max((image.size_bytes or 0 for image in self.images(participant)), default=0)
        return min(base_mb + per_mb * largest_bytes // MEGABYTE, self.memory_limit_mb)

    @cached_property
    def work_limit_mb(self) -> int | None:
        """Free capacity of the work tier, MB; ``None`` if the tier is not on this node."""
        tier = tiers_of(self.settings)["work"]
        return tier.free_bytes() // MEGABYTE if tier.path.is_dir() else None

    @cached_property
    def memory_limit_mb(self) -> int:
        """Memory of this machine that jobs may fill, MB."""
        return int(0.95 * psutil.virtual_memory().total / MEGABYTE)

    def limits(self, given: Mapping[str, Any]) -> dict[str, int]:
        """Limits of the resources that jobs share, but for those the user gave on the command line."""
        limits = {"gets": self.settings.dataset.concurrent_gets, "mem_mb": self.memory_limit_mb}
        if self.work_limit_mb is not None:
            limits["work_mb"] = self.work_limit_mb
        return {name: limit for name, limit in limits.items() if name not in given}
