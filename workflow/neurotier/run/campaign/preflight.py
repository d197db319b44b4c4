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
from neurotier.run.campaign.matrix import PlannedRun
from neurotier.run.campaign.records import Campaign
from neurotier.run.participants import selected_by
from neurotier.run.plan import Plan

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
    people = selected_by(campaign.places.index / "images.tsv")
    kinds = counted(len({run.condition for run in planned}), "condition")
    counts = f"{counted(len(planned), 'run')} of {counted(len(people), 'participant')}"
    say(f"Campaign: {counts} ({kinds}, {settings.campaign.repetitions} times, seed {settings.campaign.seed})")
    check_placements(campaign)
    for name, roles in needs(campaign, people).items():
        tier = Tier.from_settings(settings.tiers[name]).here()
        tier.check()
        check_room(tier, roles, say)
    for run in {run.condition: run for run in campaign.to_do}.values():
        own = Plan(run.settings, campaign.places)
        check_parallelism(run.condition.parallelism, [own.mem_mb(name) for name in people], campaign.limits)
        check_files(run, own, list(people))


def check_placements(campaign: Campaign) -> None:
    """Refuse placements that a campaign cannot have."""
    tiers = {run.settings.placement["dataset"] for run in campaign.planned}
    if read_json(campaign.places.index / "dataset.json")["kind"] == "folder" and len(tiers) > 1:
        raise SettingsError(
            f"the dataset is a plain folder, which is read where it lies, and cannot be on {len(tiers)} tiers",
            where="config key campaign.placements",
            fix="place the role dataset on one tier, or make the folder a DataLad dataset",
        )


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


def check_files(run: PlannedRun, own: Plan, people: Sequence[str]) -> None:
    """Refuse a run whose participants make more files at once than its work tier has inodes for."""
    room = own.room.get("work_files")
    needed = sum(sorted((own.work_files(name) for name in people), reverse=True)[: run.condition.parallelism])
    if room is not None and needed > room:
        raise TierError(
            f"{run.condition.parallelism} at once make about {needed:,} files there, and it has inodes for {room:,}",
            where=f"tier {own.settings.placement['work']!r}",
            fix="remove files there, lower campaign.parallelism, or leave its placements out",
        )


def check_parallelism(parallelism: int, each_mb: Sequence[int], limits: Mapping[str, int]) -> None:
    """Refuse a parallelism that cannot be reached: a figure 'at 96' that ran 60 jobs is none at 96."""
    if parallelism > len(each_mb):
        raise SettingsError(
            f"there are only {len(each_mb)} participants to run {parallelism} at once",
            where="config key campaign.parallelism",
            fix=f"lower it to at most {len(each_mb)}, or select more participants",
        )
    room = fits(limits, {"mem_mb": each_mb}).get("mem_mb")
    if room is not None and room < parallelism:
        raise SettingsError(
            f"{parallelism} at once need more memory than there is: {room} fit into {limits['mem_mb']:,} MB",
            where="config key campaign.parallelism",
            fix="lower it, or say --resources mem_mb=N if the jobs need less than estimated",
        )
