"""The plan: answers to the rules while Snakemake builds its graph of jobs.

The rules ask thousands of times, so the index is read once per version of its file (:mod:`neurotier.run.participants`).
"""

from __future__ import annotations

from collections.abc import Iterable
from functools import cached_property
from pathlib import Path
from typing import Any

import psutil

from neurotier.analysis.app import app_name
from neurotier.analysis.participant import work_bytes
from neurotier.containers.store import content_of
from neurotier.core.errors import InputError, NeurotierError, SettingsError
from neurotier.core.files import read_json
from neurotier.core.places import Places, short_hash
from neurotier.core.settings import Settings
from neurotier.core.tiers import tiers_of
from neurotier.dataset.bids import Image
from neurotier.run.participants import Selected, selected_by

MEGABYTE = 1_000_000
"""Unit of Snakemake's ``*_mb`` resources, which are decimal."""


class Plan:
    """Answers for the rules' input functions, resources and parameters."""

    def __init__(self, settings: Settings, places: Places) -> None:
        self.settings, self.places = settings, places
        self.positions: tuple[Selected, dict[str, int]] = ({}, {})
        self.kind: tuple[int, str] | None = None

    @property
    def is_demo(self) -> bool:
        """Whether the dataset is the demonstration, which is then made first."""
        return self.settings.dataset.source == "demo"

    def images(self, participant: str) -> list[Image]:
        """A participant's images; none while there is no index."""
        table = self.places.index / "images.tsv"
        try:
            return self.read(table).get(participant, [])
        except FileNotFoundError:
            return []

    def read(self, table: Path | str) -> Selected:
        """Participant to images, by the current index."""
        return selected_by(Path(table))

    def position(self, participant: str) -> int:
        """Number of a participant in the index."""
        selected = self.read(self.places.index / "images.tsv")
        if self.positions[0] is not selected:
            self.positions = selected, {name: position for position, name in enumerate(selected)}
        return self.positions[1][participant]

    @property
    def is_plain(self) -> bool:
        """Whether the dataset is a plain folder, whose files are there without being fetched."""
        file = self.places.index / "dataset.json"
        version = file.stat().st_mtime_ns
        if self.kind is None or self.kind[0] != version:
            self.kind = (version, read_json(file)["kind"])
        return self.kind[1] == "folder"

    def participants(self, table: Path | str) -> list[str]:
        """Participants to analyse."""
        return list(self.read(table))

    def sites(self, table: Path | str) -> list[str]:
        """Sites of the participants to analyse; ``""`` for a dataset without sites."""
        return sorted({images[0].site for images in self.read(table).values()})

    @property
    def is_batched(self) -> bool:
        """Whether a cluster job has several participants."""
        return self.settings.participants_per_job > 1

    @property
    def must_be_valid(self) -> bool:
        """Whether an analysis waits for the validation of its site."""
        return self.settings.dataset.validation == "require"

    def batch(self, participant: str) -> int | None:
        """Number of the cluster job that a participant belongs to; ``None`` if each has a job of its own.

        All participants that the index selects count, done or not, so that all processes of a run agree.
        """
        size = self.settings.participants_per_job
        return self.position(participant) // size if self.is_batched and self.images(participant) else None

    def group(self, participant: str) -> str | None:
        """Snakemake's name for the group of that cluster job."""
        batch = self.batch(participant)
        return None if batch is None else f"participants_{batch}"

    def contents(self, participant: str) -> list[str]:
        """A participant's images with their contents' versions: when they change, they are analysed again."""
        return [f"{image.path} {image.content}" for image in self.images(participant)]

    def markers(self, participant: str) -> list[Path]:
        """Markers that an analysis waits for: of its images, unless the dataset is a plain folder, and of its batch.

        Raises
        ------
        InputError
            If the index does not select this participant.
        """
        if not self.images(participant):
            raise InputError("no such participant is selected", where=participant, fix="see index/images.tsv")
        got = [] if self.is_plain else [self.places.got(participant)]
        batch = self.batch(participant)
        return got if batch is None else [*got, self.places.batch(str(batch))]

    def ready(self, table: Path | str) -> list[Path]:
        """Files that must exist before the first participant job."""
        everyone = self.participants(table)
        markers = {path for name in everyone for path in self.markers(name)}
        return [self.places.index / "tool.json", *sorted(markers), *self.validations(table)]

    def dropped(self, table: Path | str) -> list[Path]:
        """Markers of dropped images, if images are dropped after their analysis."""
        return [self.places.dropped(name) for name in self.participants(table)] if self.settings.dataset.drop else []

    @property
    def is_campaign(self) -> bool:
        """Whether the configuration describes a campaign, which then replaces the single run."""
        return self.settings.is_campaign

    @property
    def is_comparing(self) -> bool:
        """Whether there is something to compare."""
        return self.is_campaign or bool(self.settings.comparison.results or self.settings.published)

    def compared(self) -> list[Path]:
        """Tables of runs of the results folders that a comparison waits for.

        Raises
        ------
        SettingsError
            If there is nothing to compare.
        """
        if not self.is_comparing:
            raise SettingsError(
                "there is nothing to compare",
                where="target comparison",
                fix="name campaign.placements, comparison.results or published",
            )
        return [Path(folder, "profile", "runs.tsv") for folder in self.settings.comparison.results]

    def campaign(self) -> list[Path]:
        """The plan of the campaign whose runs are compared, if there is one: done, or of an earlier configuration."""
        if self.is_campaign:
            return [self.places.campaign / "done.tsv"]
        return [plan for plan in [self.places.campaign / "plan.tsv"] if plan.exists()]

    @property
    def is_app(self) -> bool:
        """Whether a BIDS App runs instead of a tool."""
        return self.settings.app.image is not None

    def tool(self) -> dict[str, Any]:
        """The tool's name and options: when they change, all participants are analysed again."""
        app = self.settings.app
        given = {"environment": self.settings.containers.environment} if self.settings.image else {}
        if self.is_app:
            options = {"label_option": app.label_option, "work_option": app.work_option, "arguments": app.arguments}
            return {"name": app_name(self.settings), **options, **given}
        return {"name": self.settings.tool.name, **self.settings.tool.options, **given}

    @property
    def threads(self) -> int:
        """Cores that one participant takes."""
        return self.settings.app.threads if self.is_app else 1

    def image(self) -> dict[str, Any]:
        """The container image and what determines it: when these change, all participants are analysed again.

        Place and form of the image are not among them, since they do not change the results; each job sees to them.
        """
        containers, image = self.settings.containers, self.settings.image
        try:
            content = short_hash(content_of(image, containers.build_arguments)) if image else ""
        except (NeurotierError, OSError):
            content = ""  # the rule that obtains the image reports the reason
        return {"image": image, "arguments": containers.build_arguments, "content": content}

    def image_facts(self) -> list[Path]:
        """Files that an analysis in a container waits for."""
        return [self.places.index / "image.json"] if self.settings.image else []

    def validations(self, table: Path | str) -> list[Path]:
        """Findings of the validator for every site, if validation is on."""
        asked = self.settings.dataset.validation != "none"
        return [self.places.validation(site) for site in self.sites(table)] if asked else []

    def required_validation(self, participant: str) -> list[Path]:
        """Validation that an analysis waits for, if the dataset must be valid."""
        images = self.images(participant)[:1] if self.must_be_valid else []
        return [self.places.validation(image.site) for image in images]

    def of_site(self, site_folder: str) -> list[str]:
        """Participants of one site (``SITE/``, or empty)."""
        table, site = self.places.index / "images.tsv", site_folder.rstrip("/")
        return [name for name, images in self.read(table).items() if images[0].site == site]

    def outputs_of(self, site_folder: str) -> dict[str, list[Path]]:
        """Files that the group level of one site waits for."""
        members = self.of_site(site_folder)
        return {
            "tool": [self.places.index / "tool.json"],
            "records": [self.places.record(name) for name in members],
            "outputs": [self.places.analysed(name, by_app=True) for name in members],
        }

    @property
    def app_memory_mb(self) -> int:
        """Peak memory of the app, MB, at most what the machine has."""
        return min(self.settings.app.memory_mb, self.memory_limit_mb)

    def filters(self) -> dict[str, Any]:
        """The selection: when it changes, the dataset is indexed again."""
        dataset = self.settings.dataset
        chosen = {key: getattr(dataset, key) for key in ("sites", "participants", "sessions", "runs", "links_to")}
        return chosen | ({"suffixes": self.settings.app.suffixes} if self.is_app else {})

    def work_mb(self, participant: str) -> int:
        """Room on the work tier, MB, at most all of it; a job that needs more then fails with the reason."""
        return min(-(-work_bytes(self.images(participant), self.settings) // MEGABYTE), self.work_limit_mb or 2**40)

    def mem_mb(self, participant: str, attempt: int = 1) -> int:
        """Peak memory, MB, times the number of the attempt, at most what the machine has."""
        if self.is_app:
            return min(self.settings.app.memory_mb * attempt, self.memory_limit_mb)
        from neurotier.analysis.tools import TOOLS  # which loads what reads images

        base_mb, per_mb = TOOLS[self.settings.tool.name].memory_mb
        largest_bytes = max((image.size_bytes or 0 for image in self.images(participant)), default=0)
        needed_mb: int = (base_mb + per_mb * largest_bytes // MEGABYTE) * attempt
        return min(needed_mb, self.memory_limit_mb)

    @cached_property
    def work_limit_mb(self) -> int | None:
        """Free capacity of the work tier, MB; ``None`` if the tier is not on this node."""
        tier = tiers_of(self.settings)["work"]
        return tier.free_bytes() // MEGABYTE if tier.path.is_dir() else None

    @cached_property
    def memory_limit_mb(self) -> int:
        """Memory of this machine that jobs may fill, MB."""
        return int(0.95 * psutil.virtual_memory().total / MEGABYTE)

    def limits(self) -> dict[str, int]:
        """Limits of the resources that jobs share."""
        limits = {"gets": self.settings.dataset.concurrent_gets, "mem_mb": self.memory_limit_mb, "probes": 1}
        if self.work_limit_mb is not None:
            limits["work_mb"] = self.work_limit_mb
        return limits


def needs_of(settings: Settings, places: Places, participants: Iterable[str]) -> dict[str, list[int]]:
    """Amount of each resource that each participant job takes, MB."""
    plan, everyone = Plan(settings, places), list(participants)
    return {
        "mem_mb": [plan.mem_mb(name) for name in everyone],
        "work_mb": [plan.work_mb(name) for name in everyone],
    }
