"""What the rules need to know about an advice: which placements and parallelisms are judged, and what it depends on."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from neurotier.core.errors import NeurotierError
from neurotier.core.files import Record, read_json
from neurotier.core.settings import Settings
from neurotier.core.tables import read_table
from neurotier.core.tiers import tier_named
from neurotier.run.plan import Plan
from neurotier.storage.probe.plan import ProbePlan

GIB = 1 << 30
COLD = "cold"

Placement = dict[str, str]
"""The name of each role's tier."""


class AdvicePlan:
    """Computes the rules' input files and parameters.

    Parameters
    ----------
    plan
        The plan of the run.
    cores
        Cores given to Snakemake; on a cluster, those of a job.
    """

    def __init__(self, plan: Plan, cores: int | None) -> None:
        self.plan, self.cores, self.settings, self.places = plan, cores, plan.settings, plan.places

    @property
    def candidates(self) -> dict[str, Placement]:
        """The placements to judge; those whose work tier has no room for a probe are left out, unless the user named
        them."""
        found = candidates(self.settings, self.checks)
        if self.checks or self.settings.is_campaign:
            return found
        probing = ProbePlan(self.settings, self.places, self.cores)
        used = self.settings.placement
        return {name: tiers for name, tiers in found.items() if tiers == used or probing.has_room(tiers["work"])}

    @property
    def checks(self) -> list[Path]:
        """What a node found of the tiers, if jobs run on other nodes than this one."""
        return [self.places.check_table(self.plan.node_class)] if self.plan.on_cluster else []

    def probe_tables(self, _calibration: Path | str) -> list[Path]:
        """Probe tables of the tiers that the placements use; requested only once the calibration has been chosen."""
        used = {
            tier
            for tiers in self.candidates.values()
            for role, tier in tiers.items()
            if role != "images" or self.settings.image
        }
        return [self.places.probe_table(name, self.plan.node_class) for name in self.settings.tiers if name in used]

    def rehearsal(self) -> list[Path]:
        """The result of analysing participants once more, if runs on this machine are predicted."""
        return [] if self.plan.on_cluster else [self.places.advice / "rehearsal.json"]

    def calibration_markers(self, calibration: Path | str) -> list[Path]:
        """Marker that the participants of the calibration are done, if there are any."""
        return self.plan.calibration_markers() if read_json(Path(calibration))["participants"] else []

    def others(self) -> list[Path]:
        """Records of another results folder, if ``advice.calibration`` names one."""
        named = self.settings.advice.calibration
        return sorted(Path(named, "profile", "records").rglob("*.json")) if named else []

    def asked(self) -> Record:
        """What the advice depends on in addition to its input files: if it changes, the advice is made again.

        This includes the free room, in whole GiB, and whether more participants are done.
        """
        records = self.places.profile.glob("records/**/*.json")
        return {
            "placement": self.settings.placement,
            "candidates": [
                {"name": name, "tiers": tiers} | ({} if self.checks else free_gib(self.settings, tiers))
                for name, tiers in self.candidates.items()
            ],
            "parallelism": self.parallelism,
            "cache": caches(self.settings),
            "tool": self.plan.tool(),
            "calibration": self.settings.advice.calibration,
            "newest_record_s": max((file.stat().st_mtime for file in records), default=None),
        }

    @property
    def parallelism(self) -> list[int]:
        """Numbers of participant jobs at once to judge."""
        if self.settings.is_campaign:
            return self.settings.campaign.parallelism
        slots = max(1, (self.cores or 1) // self.plan.threads)
        return [min(slots, self.settings.shares.at_once or 1) if self.plan.on_cluster else slots]


def candidates(settings: Settings, checks: Sequence[Path]) -> dict[str, Placement]:
    """The placements to judge, by the names that users see.

    In a campaign, these are its placements. Otherwise they are the one in use and, for every other tier that exists,
    one with the role ``work`` moved there.

    Parameters
    ----------
    settings
        The configuration.
    checks
        What a node found of the tiers, if jobs run on other nodes than this one.
    """
    used = settings.placement
    if settings.is_campaign:
        return {
            name: used | {role: tier for role, tier in changed.items() if tier is not None}
            for name, changed in settings.campaign.placements.items()
        }
    if checks:
        rows = [row for table in checks if table.exists() for row in read_table(table, "check")]
        there = {row["tier"] for row in rows if row["writable"] and not row["problem"]}
    else:
        there = {name for name in settings.tiers if exists(settings, name)}
    names = [used["work"], *(name for name in settings.tiers if name in there)]
    return {name: used | {"work": name} for name in names}


def exists(settings: Settings, name: str) -> bool:
    """Whether a declared tier can hold intermediate files on this machine."""
    try:
        tier = tier_named(settings, name)
        tier.check()
    except NeurotierError:
        return False
    return not tier.node and not tier.read_only


def caches(settings: Settings) -> list[str]:
    """States of the page cache to judge: those of the campaign, or ``as found``."""
    return settings.campaign.cache if settings.is_campaign else ["as found"]


def free_gib(settings: Settings, placement: Placement) -> dict[str, Sequence[int]]:
    """Free room on a placement's tiers, in whole GiB."""
    tiers = [tier_named(settings, name) for name in placement.values()]
    return {"free_gib": [tier.free_bytes() // GIB for tier in tiers if not tier.node and tier.path.is_dir()]}
