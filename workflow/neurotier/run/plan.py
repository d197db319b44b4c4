"""The plan: answers to the rules while Snakemake builds its graph of jobs.

The rules ask thousands of times, so the index is read once per version of its file (:mod:`neurotier.run.participants`).
"""

from __future__ import annotations

import json
from collections.abc import Collection, Iterable, Mapping
from pathlib import Path
from typing import Any

from neurotier.analysis.app import app_name, app_options
from neurotier.analysis.needs import rehearsal_of
from neurotier.containers.identity import content_of
from neurotier.core.errors import NeurotierError, SettingsError, StateError
from neurotier.core.files import once_per_version, read_json, remove_whatever
from neurotier.core.places import Places, short_hash
from neurotier.core.settings import Settings
from neurotier.core.tiers import on_nodes
from neurotier.run.batches import (
    Batches,
    Made,
    by_urgency,
    decide,
    decided_analysis,
    size_for,
    wanted_by,
)
from neurotier.run.needs import Needs

read_dataset = once_per_version(read_json)
"""Reads what is known of the dataset: each batch asks."""


class Plan(Needs):
    """Answers for the rules' input functions, resources and parameters.

    Parameters
    ----------
    settings, places
        Of the run.
    elsewhere
        Whether participant jobs run on the nodes of a cluster, of which this one need not be one.
    in_job
        Whether this is a Snakemake inside such a job, which must not read the index of everyone.
    cluster_class
        Class of the cluster's nodes, unless the configuration names it.
    """

    def __init__(
        self,
        settings: Settings,
        places: Places,
        elsewhere: bool = False,
        in_job: bool = False,
        cluster_class: str = "",
    ) -> None:
        super().__init__(settings, places, elsewhere)
        self.in_job, self.cluster_class = in_job, cluster_class
        self.ranks: tuple[Batches, dict[str, int]] = ({}, {})

    @property
    def node_class(self) -> str:
        """Class of the nodes that jobs run on; empty for this host, which nobody has named."""
        return self.settings.node_class or (self.cluster_class if self.elsewhere else "")

    @property
    def is_demo(self) -> bool:
        """Whether the dataset is the demonstration, which is then made first."""
        return self.settings.dataset.source == "demo"

    @property
    def is_plain(self) -> bool:
        """Whether the dataset is a plain folder, whose files are there without being fetched."""
        kind: str = read_dataset(self.places.index / "dataset.json")["kind"]
        return kind == "folder"

    def sites(self, table: Path | str) -> list[str]:
        """Sites of the participants to analyse; ``""`` for a dataset without sites."""
        return sorted({images[0].site for images in self.read(table).values()})

    @property
    def must_be_valid(self) -> bool:
        """Whether an analysis waits for the validation of its site."""
        return self.settings.dataset.validation == "require"

    @property
    def apart(self) -> list[str]:
        """Participants whom an advice waits for: they share no job."""
        try:
            return list(read_json(self.places.advice / "calibration.json")["participants"])
        except (FileNotFoundError, StateError, LookupError, TypeError):
            return []

    def analysed_of(self, names: Collection[str]) -> list[Path]:
        """Markers of the batches of some participants."""
        numbers = [number for number, of in self.batches.items() if not set(of).isdisjoint(names)]
        return [self.places.batch(number) for number in numbers]

    def markers(self, number: str) -> list[Path]:
        """Marker that the images of a batch are there, for which its analysis waits, unless each waits for its own."""
        together = not self.fetches or not set(self.members(number)).isdisjoint(self.apart)
        return [self.places.got(number)] if together and not self.is_plain else []

    @property
    def fetches(self) -> bool:
        """Whether one job fetches images while others analyse; nodes of a cluster do not, nor a campaign meanwhile."""
        return not self.elsewhere and not self.is_campaign

    def fetched(self) -> list[Path]:
        """Marker that all images have been fetched while others were analysed."""
        return [self.places.fetched_all] if self.fetches and self.batches and not self.is_plain else []

    def before_fetching(self, table: Path | str) -> list[Path]:
        """What must be there before images are fetched, if few may be ahead: all that their analysis waits for."""
        if self.settings.dataset.ahead is None:
            return []
        valid = self.validations(table) if self.must_be_valid else []
        return [self.places.index / "tool.json", *self.image_facts(), *valid]

    def batches_at_once(self) -> int:
        """How many batches are analysed at the same time."""
        each = max((self.at_once(number) for number in self.batches), default=1)
        return max(1, (self.slots or 1) // each)

    def analysed(self) -> list[Path]:
        """Markers of all batches."""
        return [self.places.batch(number) for number in self.batches]

    def ready(self, table: Path | str) -> list[Path]:
        """Files that must exist before the first participant job."""
        markers = [] if self.is_plain else [self.places.got(number) for number in self.batches]
        return [self.places.index / "tool.json", *markers, *self.validations(table)]

    def dropped(self) -> list[Path]:
        """Markers of dropped images, if images are dropped after their analysis."""
        return [self.places.dropped(number) for number in self.batches] if self.settings.dataset.drop else []

    def decide(self, made: Mapping[str, Made], anew: bool, slots: int | None, write: bool = True) -> None:
        """Divide those who are missing into batches (:mod:`neurotier.run.batches`), if the dataset is indexed.

        Parameters
        ----------
        made
            Those who have a record and whole derivatives.
        anew
            Whether everyone is analysed again.
        slots
            How many jobs run at once; ``None`` on a cluster.
        write
            Whether to write the decision, or only to answer by it.
        """
        self.slots = slots
        table = self.places.index / "images.tsv"
        if not table.exists():
            if write:  # or Snakemake, asked for the participants alone, would find all that it was asked for
                remove_whatever(self.places.complete)
            return
        selected = self.read(table)
        wanted = wanted_by(self.places, self.analysis, self.tool()["name"], anew)
        batches = decide(
            self.places,
            selected,
            made,
            wanted,
            size=lambda missing: size_for(self.settings, missing, slots),
            apart=self.apart,
            by_site=self.must_be_valid,
            write=write,
            elsewhere=self.elsewhere,
        )
        self.would_be = None if write else batches

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

    def tool(self) -> dict[str, Any]:
        """The tool's name and options: others are others' results (:mod:`neurotier.run.mixing`)."""
        given = {"environment": self.settings.containers.environment} if self.settings.image else {}
        if self.is_app:
            return {"name": app_name(self.settings), **app_options(self.settings.app), **given}
        rehearsal = rehearsal_of(self.settings)
        described = {"description": rehearsal.content_key()} if rehearsal else {}
        return {"name": self.settings.tool.name, **self.settings.tool.options, **described, **given}

    def image(self) -> dict[str, Any]:
        """The container image and what determines it: another is a reason to analyse all participants again.

        Place and form of the image are not among them, since they do not change the results; each job sees to them.
        """
        containers, image = self.settings.containers, self.settings.image
        try:
            content = short_hash(content_of(image, containers.build_arguments)) if image else ""
        except (NeurotierError, OSError):
            content = ""  # the rule that obtains the image reports the reason
        return {"image": image, "arguments": containers.build_arguments, "content": content}

    @property
    def images_on_nodes(self) -> bool:
        """Whether each node of a cluster has a container image of its own; the tool is then tried on one of them."""
        has_image = self.settings.image is not None
        return self.elsewhere and has_image and on_nodes(self.settings, self.settings.placement["images"])

    def image_facts(self) -> list[Path]:
        """Files that an analysis in a container waits for."""
        names = ["image.json", "caches.json"] if self.is_app and self.settings.app.caches else ["image.json"]
        return [self.places.index / name for name in names] if self.settings.image else []

    @property
    def analysis(self) -> str:
        """What determines the results of everyone, but for the images."""
        decided = decided_analysis(self.places) if self.in_job else None
        return decided or short_hash(json.dumps([self.tool(), self.image()], sort_keys=True))

    def validations(self, table: Path | str) -> list[Path]:
        """Findings of the validator for every site, if validation is on."""
        asked = self.settings.dataset.validation != "none"
        return [self.places.validation(site) for site in self.sites(table)] if asked else []

    def required_validation(self, number: str) -> list[Path]:
        """Validations that the analysis of a batch waits for, if the dataset must be valid."""
        sites = {self.images(name)[0].site for name in self.members(number)} if self.must_be_valid else set()
        return [self.places.validation(site) for site in sorted(sites)]

    def of_site(self, site_folder: str) -> list[str]:
        """Participants of one site (``SITE/``, or empty)."""
        table, site = self.places.index / "images.tsv", site_folder.rstrip("/")
        return [name for name, images in self.read(table).items() if images[0].site == site]

    def outputs_of(self, site_folder: str) -> dict[str, list[Path]]:
        """Files that the group level of one site waits for."""
        return {
            "tool": [self.places.index / "tool.json"],
            "analysed": self.analysed_of(self.of_site(site_folder)),
        }

    def filters(self) -> dict[str, Any]:
        """The selection: when it changes, the dataset is indexed again."""
        dataset = self.settings.dataset
        chosen = {key: getattr(dataset, key) for key in ("sites", "participants", "sessions", "runs", "links_to")}
        return chosen | ({"suffixes": self.settings.app.suffixes} if self.is_app else {})

    def urgency(self, number: str) -> float:
        """Between 0 and 1: the longest batches begin first, so that they end with others, and in a known order."""
        if self.in_job:
            return 0.0
        batches = self.batches
        if self.ranks[0] is not batches:
            order = by_urgency({one: self.batch_bytes(one) for one in batches})
            self.ranks = batches, {one: rank for rank, one in enumerate(order)}
        return 1 - self.ranks[1][number] / len(batches)

    def batch_bytes(self, number: str) -> int:
        """Size of the images of a batch, bytes."""
        return sum(image.size_bytes or 0 for name in self.members(number) for image in self.images(name))

    def batch_minutes(self, number: str, attempt: int = 1) -> int:
        """Time that the job of a batch asks a cluster for, min."""
        rounds = -(-len(self.members(number)) // self.at_once(number))
        return self.settings.batches.minutes_per_participant * rounds * attempt


def needs_of(settings: Settings, places: Places, participants: Iterable[str]) -> dict[str, list[int]]:
    """Amount of each resource that each participant job takes, MB or files."""
    plan, everyone = Plan(settings, places), list(participants)
    return {
        "mem_mb": [plan.mem_mb(name) for name in everyone],
        "work_mb": [plan.work_mb(name) for name in everyone],
        "work_files": [plan.work_files(name) for name in everyone],
    }
