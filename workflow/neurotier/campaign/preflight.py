"""Preflight: what a campaign will do, how many bytes on which tier, and that all of it can be done.

A campaign runs for hours; what cannot fit is refused before its first run and not found out by its twentieth.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

import humanfriendly

from neurotier.analysis.participant import work_bytes
from neurotier.campaign.matrix import PlannedRun
from neurotier.campaign.records import Campaign
from neurotier.dataset.bids import Image
from neurotier.errors import SettingsError, TierError
from neurotier.parallelism import fits
from neurotier.planning import Plan
from neurotier.report.quantities import counted
from neurotier.settings import Settings
from neurotier.tables import Row
from neurotier.tiers import Tier

RESULTS_FACTOR = 2
"""Bytes of results per byte of compressed input: the brain, at most as large, and what is kept beside it."""

Needs = dict[str, dict[str, int]]
"""Tier to role to bytes."""


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
            **{f"{role}_tier": tier for role, tier in run.configuration["placement"].items()},
            "folder": f"{run.name}/{run.repetition}",
            "there": campaign.condition_of(run) is not None,
        }
        for run in campaign.planned
    ]


def check_campaign(campaign: Campaign) -> None:
    """Say what will be done, and refuse what cannot be.

    Raises
    ------
    TierError
        If a tier is not there, not what it is declared to be, or has no room.
    SettingsError
        If memory has no room for the parallelism asked for.
    """
    settings, planned, say = campaign.settings, campaign.planned, campaign.say
    plan = Plan(settings, campaign.places)
    people = plan.read(campaign.places.index / "images.tsv")
    kinds = counted(len({run.condition for run in planned}), "condition")
    what = f"{counted(len(planned), 'run')} of {counted(len(people), 'participant')}"
    say(f"Campaign: {what} ({kinds}, {settings.campaign.repetitions} times, seed {settings.campaign.seed})")
    for name, roles in needs(planned, settings, people).items():
        tier = Tier.from_settings(settings.tiers[name])
        tier.check()
        check_room(tier, roles, say)
    for parallelism in sorted({run.condition.parallelism for run in planned}):
        if parallelism > len(people):
            say(f"  {parallelism} at once: there are {len(people)} participants, and no more will run at once")
        check_memory(parallelism, [plan.mem_mb(name) for name in people], campaign.limits)


def needs(planned: Sequence[PlannedRun], settings: Settings, people: Mapping[str, list[Image]]) -> Needs:
    """Bytes that each role needs on each tier at the same time, at most."""
    dataset = sum(image.size_bytes or 0 for images in people.values() for image in images)
    each = sorted((work_bytes(images, settings) for images in people.values()), reverse=True)
    kept = len(planned) if settings.campaign.keep_outputs else 1
    found: Needs = {}
    for run in planned:
        placed = run.configuration["placement"]
        for role, needed in (
            ("dataset", dataset),
            ("work", sum(each[: run.condition.parallelism])),
            ("results", kept * RESULTS_FACTOR * dataset),
        ):
            roles = found.setdefault(placed[role], {})
            roles[role] = max(needed, roles.get(role, 0))
    return found


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


def check_memory(parallelism: int, each_mb: Sequence[int], limits: Mapping[str, int]) -> None:
    """Refuse a parallelism that memory has no room for: its runs would all be invalid."""
    room = fits(limits, {"mem_mb": each_mb}).get("mem_mb")
    if room is not None and room < min(parallelism, len(each_mb)):
        raise SettingsError(
            f"{parallelism} at once need more memory than there is: {room} fit into {limits['mem_mb']:,} MB",
            where="config key campaign.parallelism",
            fix="lower it, or say --resources mem_mb=N if the jobs need less than estimated",
        )


def size(count: int) -> str:
    """Bytes for people, in binary units."""
    return str(humanfriendly.format_size(count, binary=True))
