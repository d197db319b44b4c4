"""The plan of a campaign: which conditions it has, in what order their repetitions are run, and that all can be done.

Each repetition is a block, whose order is drawn (:func:`in_order`), so that what drifts meanwhile, a warmer machine or
a fuller disk, does not fall on one tier. A run is known by what it measures, not by its place in the order: tiers,
parallelism or repetitions can be added later, and what is there is not run again. A campaign runs for hours; what
cannot fit is refused before its first run and not found out by its twentieth.
"""

from __future__ import annotations

import copy
import itertools
import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from neurotier.analysis.app import app_name
from neurotier.analysis.needs import described, work_bytes
from neurotier.core.configuration import WORKLOADS
from neurotier.core.errors import SettingsError, TierError
from neurotier.core.files import read_json, whole_json
from neurotier.core.parallelism import fits
from neurotier.core.places import Places, short_hash
from neurotier.core.quantities import counted, size
from neurotier.core.settings import Settings
from neurotier.core.tables import Row
from neurotier.core.tiers import Tier
from neurotier.dataset.bids import Image
from neurotier.dataset.contents import is_present
from neurotier.run.conditions import CAMPAIGN, VALID, Condition
from neurotier.run.needs import Needs, needs_of
from neurotier.run.participants import selected_in
from neurotier.run.plan import Plan
from neurotier.run.profile_tables import Record
from neurotier.run.scripting import Context

APART = (
    *("results", "report", "campaign", "comparison", "published", "probe", "advice", "shares", "node_class"),
    *(*WORKLOADS, "bigbrain"),
)
"""Sections that do not change what a run measures, and that runs go without."""

FETCHING = ("concurrent_gets", "get_attempts", "get_backoff_s", "drop", "validation", "ahead")
"""Keys of section ``dataset`` that do not either: all of that is over when the participant jobs begin."""

PLACED = ("tiers", "placement", "in_containers")
"""Sections that do not change what a run makes."""


@dataclass(frozen=True)
class PlannedRun:
    """One repetition of a condition.

    Attributes
    ----------
    position
        Place in the order, from 1.
    repetition
        Which repetition, from 1.
    condition
        What is run.
    configuration, settings
        Configuration of the run, but for its results folder; the same, checked.
    identity
        What tells runs apart that measure different things under the same condition's name.
    analysis
        What tells apart runs whose outputs are not the same.
    """

    position: int
    repetition: int
    condition: Condition
    configuration: dict[str, Any]
    settings: Settings
    identity: str
    analysis: str

    @property
    def name(self) -> str:
        """A folder's name."""
        condition = self.condition
        cache = condition.cache.replace(" ", "-")
        return f"{condition.placement}_{condition.parallelism}_{cache}_{condition.tool}_{self.identity}"


def conditions(settings: Settings) -> list[Condition]:
    """The conditions of a campaign, in the order of the configuration.

    Raises
    ------
    SettingsError
        If there are none.
    """
    campaign = settings.campaign
    if not campaign.placements:
        raise SettingsError("a campaign needs a placement", where="config key campaign.placements", fix="name one")
    tools = [app_name(settings)] if settings.app.image else campaign.tools or [settings.tool.name]
    matrix = itertools.product(campaign.placements, campaign.parallelism, campaign.cache, tools)
    return [Condition(CAMPAIGN, tool, cache, parallelism, placement) for placement, parallelism, cache, tool in matrix]


def configuration_of(base: Mapping[str, Any], settings: Settings, condition: Condition) -> dict[str, Any]:
    """The configuration of a run of a condition, but for its results folder."""
    own = {key: value for key, value in copy.deepcopy(dict(base)).items() if key not in APART}
    placed = settings.campaign.placements[condition.placement]
    own["placement"] = settings.placement | {role: tier for role, tier in placed.items() if tier is not None}
    used = set(own["placement"].values())
    own["tiers"] = {name: tier for name, tier in own["tiers"].items() if name in used}
    if not settings.app.image:
        own["tool"] = {**(own.get("tool") or {}), "name": condition.tool}
    return own


def planned_runs(base: Mapping[str, Any], settings: Settings) -> list[PlannedRun]:
    """Every run of a campaign, in the order in which they are to be run.

    Parameters
    ----------
    base
        The configuration as it was given.
    settings
        The same, checked.
    """
    made = []
    for condition in conditions(settings):
        configuration = configuration_of(base, settings, condition)
        own = Settings.from_config(configuration, settings.in_containers)
        content = Plan(own, Places.from_settings(own)).image()["content"]
        measured = what_is_measured(own.to_json()) | {"content": content} | described(own)
        analysed = {key: value for key, value in measured.items() if key not in PLACED}
        identity, analysis = (short_hash(json.dumps(each, sort_keys=True)) for each in (measured, analysed))
        made.append((condition, configuration, own, identity, analysis))
    order = in_order(len(made), settings.campaign.repetitions, settings.campaign.seed)
    return [
        PlannedRun(position, repetition, *made[index]) for position, (repetition, index) in enumerate(order, start=1)
    ]


def in_order(conditions: int, repetitions: int, seed: int) -> list[tuple[int, int]]:
    """Repetition and index of the condition of every run: in random order, and in the next repetition backwards.

    Drawn anew each time, one of two would be the first in all of three repetitions every fourth time, and a steady
    drift would look like a difference.

    >>> [index for _, index in in_order(3, 4, seed=1)]
    [2, 0, 1, 1, 0, 2, 0, 1, 2, 2, 1, 0]
    """
    order = []
    for repetition in range(1, repetitions + 1):
        drawn = np.random.default_rng([seed, (repetition + 1) // 2]).permutation(conditions).tolist()
        order += [(repetition, index) for index in (drawn if repetition % 2 else reversed(drawn))]
    return order


def what_is_measured(checked: Mapping[str, Any]) -> dict[str, Any]:
    """The part of a run's settings that changes what it measures."""
    measured = {key: value for key, value in checked.items() if key not in (*APART, "validity")}
    measured["dataset"] = {key: value for key, value in checked["dataset"].items() if key not in FETCHING}
    if checked["dataset"]["source"] != "demo":
        del measured["demo"]
    return measured


@dataclass(frozen=True)
class Campaign:
    """A campaign and what it works with.

    Attributes
    ----------
    planned
        Its runs, in the order in which they are run.
    settings, places
        Of the results folder that keeps it.
    limits
        Snakemake resources that the jobs of a run share.
    say
        Where to tell the user.
    """

    planned: Sequence[PlannedRun]
    settings: Settings
    places: Places
    limits: Mapping[str, int]
    say: Callable[[str], None]

    @classmethod
    def of_script(cls, context: Context) -> Campaign:
        """The campaign that a script is about."""
        planned = planned_runs(context.params.configuration, context.settings)
        return cls(planned, context.settings, context.places, context.run_facts["limits"], context.say)

    def folder(self, run: PlannedRun) -> Path:
        """Where the records of a run are."""
        return self.places.campaign / "runs" / run.name / str(run.repetition)

    def condition_of(self, run: PlannedRun) -> Record | None:
        """What was run, and what speaks against it; ``None`` if it is not there, or that cannot be read any more."""
        return whole_json(self.folder(run) / "condition.json")

    @property
    def to_do(self) -> list[PlannedRun]:
        """The runs that are to be done: one that was stopped, in whole or in part, tells nothing of its condition."""
        again = self.settings.campaign.repeat_invalid
        noted = [(run, self.condition_of(run)) for run in self.planned]
        return [
            run
            for run, condition in noted
            if condition is None or condition.get("stopped") or (again and condition["valid"] != VALID)
        ]


SCARCE = {
    "mem_mb": ("memory", "MB", "or say --resources mem_mb=N if the jobs need less than estimated"),
    "work_files": ("room for files on the work tier", "inodes", "remove files there, or leave its placements out"),
}
"""Resources that limit a parallelism: what they are, their unit, and what else to do."""

RESULTS_FACTOR = 2
"""Bytes of results per byte of compressed input: the brain, at most as large, and what is kept beside it."""


def plan_rows(campaign: Campaign) -> list[Row]:
    """Rows of ``plan.tsv``."""
    return [
        {
            "position": run.position,
            "repetition": run.repetition,
            "placement": run.condition.placement,
            "parallelism": run.condition.parallelism,
            "cache": run.condition.cache,
            "tool": run.condition.tool,
            **{f"{role}_tier": tier for role, tier in run.settings.placement.items()},
            "folder": f"{run.name}/{run.repetition}",
            "there": campaign.condition_of(run) is not None,
        }
        for run in campaign.planned
    ]


def check_campaign(campaign: Campaign) -> None:
    """Say what will be done, and refuse what cannot be; runs that are there need nothing any more.

    Raises
    ------
    TierError
        If a tier is not there, not what it is declared to be, or has no room.
    SettingsError
        If the parallelism asked for cannot be reached, or a placement cannot be had.
    """
    settings, planned, say = campaign.settings, campaign.planned, campaign.say
    people = selected_in(campaign.places)
    kinds = counted(len({run.condition for run in planned}), "condition")
    counts = f"{counted(len(planned), 'run')} of {counted(len(people), 'participant')}"
    say(f"Campaign: {counts} ({kinds}, {settings.campaign.repetitions} times, seed {settings.campaign.seed})")
    tiers = {run.settings.placement["dataset"] for run in planned}
    if read_json(campaign.places.index / "dataset.json")["kind"] == "folder" and len(tiers) > 1:
        raise SettingsError(
            f"the dataset is a plain folder, which is read where it lies, and cannot be on {len(tiers)} tiers",
            where="config key campaign.placements",
            fix="place the role dataset on one tier, or make the folder a DataLad dataset",
        )
    for name, roles in needs(campaign, people).items():
        tier = Tier.from_settings(settings.tiers[name]).here()
        tier.check()
        check_room(tier, roles, say)
    for run in {run.condition: run for run in campaign.to_do}.values():
        check_parallelism(run, campaign, list(people))


def needs(campaign: Campaign, people: Mapping[str, list[Image]]) -> dict[str, dict[str, int]]:
    """Bytes that each role still needs on each tier (tier to role) at the same time, at most, but for images."""
    images = [image for own in people.values() for image in own]
    dataset = sum(image.size_bytes or 0 for image in images)
    needed: dict[str, dict[str, int]] = {}
    for run in {run.condition: run for run in campaign.to_do}.values():
        each = sorted((work_bytes(own, run.settings) for own in people.values()), reverse=True)
        tiers = run.settings.placement
        for role, count in (
            ("dataset", dataset - there_bytes(campaign, tiers["dataset"], images)),
            ("work", sum(each[: run.condition.parallelism])),
            ("results", RESULTS_FACTOR * dataset),
        ):
            roles = needed.setdefault(tiers[role], {})
            roles[role] = max(count, roles.get(role, 0))
    return needed


def there_bytes(campaign: Campaign, tier: str, images: Sequence[Image]) -> int:
    """Bytes of the dataset that a tier holds already; all of them if it is a folder that is read where it lies."""
    dataset = read_json(campaign.places.index / "dataset.json")
    clone = Path(dataset["path"])
    if dataset["kind"] != "folder":
        clone = Tier.from_settings(campaign.settings.tiers[tier]).folder("datasets") / clone.name
    links_to = campaign.settings.dataset.links_to
    return sum(image.size_bytes or 0 for image in images if is_present(clone, image.path, links_to))


def check_room(tier: Tier, roles: Mapping[str, int], say: Callable[[str], None]) -> None:
    """Say what a tier will hold, and refuse if it cannot."""
    needed, free = sum(roles.values()), tier.free_bytes()
    parts = ", ".join(f"{role} {size(count)}" for role, count in roles.items())
    say(f"  tier {tier.name}: {parts} at most; {size(free)} free")
    if needed > free:
        raise TierError(
            f"the campaign needs {size(needed)} there ({parts}), and {size(free)} are free",
            where=f"tier {tier.name!r}",
            fix="make room, lower campaign.parallelism, or leave its placements out",
        )


def check_parallelism(run: PlannedRun, campaign: Campaign, people: Sequence[str]) -> None:
    """Refuse a parallelism that cannot be reached: a figure 'at 96' that ran 60 jobs is none at 96."""
    asked, where = run.condition.parallelism, "config key campaign.parallelism"
    if asked > len(people):
        raise SettingsError(
            f"there are only {len(people)} participants to run {asked} at once",
            where=where,
            fix=f"lower it to at most {len(people)}, or select more participants",
        )
    own = Needs(run.settings, campaign.places, elsewhere=False)
    limits = {"work_files": own.room.get("work_files"), "mem_mb": campaign.limits.get("mem_mb")}
    known = {resource: limit for resource, limit in limits.items() if limit is not None}
    for resource, room in fits(known, needs_of(own, people)).items():
        if room < asked and resource in known:
            what, unit, fix = SCARCE[resource]
            problem = f"{asked} at once need more {what} than there is: {room} fit into {known[resource]:,} {unit}"
            raise SettingsError(problem, where=where, fix=f"lower it, {fix}")
