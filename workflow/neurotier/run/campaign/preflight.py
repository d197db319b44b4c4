"""Preflight: what a campaign will do, how many bytes on which tier, and that all of it can be done.

A campaign runs for hours; what cannot fit is refused before its first run and not found out by its twentieth.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

from neurotier.analysis.needs import work_bytes
from neurotier.core.errors import SettingsError, TierError
from neurotier.core.files import read_json
from neurotier.core.parallelism import fits
from neurotier.core.quantities import counted, size
from neurotier.core.tables import Row
from neurotier.core.tiers import Tier
from neurotier.dataset.bids import Image
from neurotier.dataset.contents import is_present
from neurotier.run.campaign.matrix import Campaign, PlannedRun
from neurotier.run.needs import Needs, needs_of
from neurotier.run.participants import selected_in

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
