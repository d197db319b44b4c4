"""Answers for the rules: which placements and which parallelism are judged, and what the advice depends on."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
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


@dataclass(frozen=True)
class Candidate:
    """A placement to judge.

    Attributes
    ----------
    name
        Name for people.
    tiers
        Role to name of the tier.
    in_use
        Whether the next run uses it as configured.
    """

    name: str
    tiers: dict[str, str]
    in_use: bool


class AdvicePlan:
    """Answers for the input functions and parameters of the rules.

    Parameters
    ----------
    plan
        The plan of the run.
    cores
        Cores that Snakemake was given, on a cluster those of a job.
    """

    def __init__(self, plan: Plan, cores: int | None) -> None:
        self.plan, self.cores, self.settings, self.places = plan, cores, plan.settings, plan.places

    @property
    def candidates(self) -> list[Candidate]:
        """Placements to judge; those whose tier has no room for a probe are not, unless they were asked for."""
        found = candidates(self.settings, self.checks)
        if self.checks or self.settings.campaign.placements:
            return found
        probing = ProbePlan(self.settings, self.places, self.cores)
        return [one for one in found if one.in_use or probing.has_room(one.tiers["work"])]

    @property
    def checks(self) -> list[Path]:
        """What a node has found of the tiers, if jobs run on others than this one."""
        return [self.places.checked(self.plan.node_class)] if self.plan.elsewhere else []

    def probed(self, _calibration: Path | str) -> list[Path]:
        """Probe tables of the tiers that placements use; asked for once the calibration has been chosen."""
        used = {
            tier
            for one in self.candidates
            for role, tier in one.tiers.items()
            if role != "images" or self.settings.image
        }
        return [self.places.probed(name, self.plan.node_class) for name in self.settings.tiers if name in used]

    def rehearsal(self) -> list[Path]:
        """What was found when participants were analysed once more, if runs on this machine are predicted."""
        return [] if self.plan.elsewhere else [self.places.advice / "rehearsal.json"]

    def analysed(self, calibration: Path | str) -> list[Path]:
        """Marker that those are done who are analysed first, if anybody is."""
        return self.plan.calibrated() if read_json(Path(calibration))["participants"] else []

    def others(self) -> list[Path]:
        """Records of another results folder, if ``advice.calibration`` names one."""
        named = self.settings.advice.calibration
        return sorted(Path(named, "profile", "records").rglob("*.json")) if named else []

    def asked(self) -> Record:
        """What the advice depends on besides its input files: when it changes, the advice is made again.

        That includes free room, in whole GiB, and whether more participants are done.
        """
        records = sorted(self.places.profile.glob("records/**/*.json"))
        return {
            "candidates": [
                vars(one) | ({} if self.checks else free_gib(self.settings, one)) for one in self.candidates
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
        return [min(slots, self.settings.shares.at_once or 1) if self.plan.elsewhere else slots]


def candidates(settings: Settings, checks: Sequence[Path] = ()) -> list[Candidate]:
    """The campaign's placements; without a campaign, the one in use, and for every other tier that exists, one with the
    role ``work`` moved there.

    Parameters
    ----------
    settings
        The configuration.
    checks
        What a node has found of the tiers, if jobs run on others than this one.
    """
    used = settings.placement
    if settings.campaign.placements:
        chosen = []
        for name, changed in settings.campaign.placements.items():
            tiers = used | {role: tier for role, tier in changed.items() if tier is not None}
            chosen.append(Candidate(name, tiers, tiers == used))
        return chosen
    if checks:
        rows = [row for table in checks if table.exists() for row in read_table(table, "check")]
        there = {row["tier"] for row in rows if not row["problem"]}
    else:
        there = {name for name in settings.tiers if exists(settings, name)}
    others = [name for name in settings.tiers if name in there and name != used["work"]]
    return [
        Candidate(used["work"], dict(used), True),
        *(Candidate(name, used | {"work": name}, False) for name in others),
    ]


def exists(settings: Settings, name: str) -> bool:
    """Whether a declared tier can hold intermediate files on this machine."""
    try:
        tier = tier_named(settings, name)
        tier.check()
    except NeurotierError:
        return False
    return not tier.node and not tier.read_only


def caches(settings: Settings) -> list[str]:
    """States of the page cache to judge: those of the campaign, else ``as found``."""
    return settings.campaign.cache if settings.campaign.placements else ["as found"]


def free_gib(settings: Settings, candidate: Candidate) -> dict[str, Sequence[int]]:
    """Free room on a placement's tiers, in whole GiB."""
    tiers = [tier_named(settings, name) for name in candidate.tiers.values()]
    return {"free_gib": [tier.free_bytes() // GIB for tier in tiers if not tier.node and tier.path.is_dir()]}
