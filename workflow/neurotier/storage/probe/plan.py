"""What the rules ask: which tiers are probed, with how many streams, and what makes an earlier probe out of date."""

from __future__ import annotations

import math
import platform
from contextlib import suppress
from pathlib import Path
from typing import Any

from neurotier.core.errors import StateError
from neurotier.core.places import Places
from neurotier.core.settings import Settings
from neurotier.core.tables import read_table
from neurotier.core.tiers import find_mount, tier_named

MOST_STREAMS = 96
"""As the published experiment; more have to be asked for."""

LEAST_MINUTES = 21
"""Half an hour with the time that a probe has by default."""


class ProbePlan:
    """Answers for the rules.

    Parameters
    ----------
    settings, places
        Of the run.
    cores
        Cores that Snakemake was given, on a cluster those of a job.
    node_class
        Class of the nodes that are measured; empty for this host.
    elsewhere
        Whether they are others than this one, of which nothing here is true.
    """

    def __init__(
        self, settings: Settings, places: Places, cores: int | None, node_class: str = "", elsewhere: bool = False
    ) -> None:
        self.settings, self.places, self.cores = settings, places, cores
        self.node_class, self.elsewhere = node_class, elsewhere

    @property
    def tiers(self) -> list[str]:
        """Tiers to probe: those that are named, else those of all placements."""
        return self.settings.probe.tiers or self.settings.placed_tiers

    def tables(self) -> list[Path]:
        """Tables of those tiers."""
        return [self.table(name) for name in self.tiers]

    def table(self, tier: str) -> Path:
        """Table of a tier."""
        return self.places.probed(tier, self.node_class)

    def streams(self, tier: str) -> int:
        """Most streams at once.

        Where only ``--cores`` says it, a curve that was measured further stays: ``--cores 1`` is no reason to probe
        again what ``--cores 25`` has probed.
        """
        if self.settings.probe.streams:
            return self.settings.probe.streams
        if self.settings.is_campaign:
            return min(MOST_STREAMS, max(self.settings.campaign.parallelism))
        measured = 1
        with suppress(FileNotFoundError, StateError):  # a table that cannot be read is as none
            measured = max((row["streams"] for row in read_table(self.table(tier), "probe", {"streams"})), default=1)
        return max(measured, min(MOST_STREAMS, self.cores or 1))

    @property
    def minutes(self) -> int:
        """Time that the probe of a tier asks a cluster for, min; on a slow tier it takes longer than planned."""
        return LEAST_MINUTES + math.ceil(3 * self.settings.probe.time_s / 60)

    def asked(self, tier: str) -> dict[str, Any]:
        """What a probe depends on; when it changes, the tier is probed again.

        A tier that each node has for itself is found by the job, and is known here by its name alone; on a cluster, all
        are found so.
        """
        probe, declared = self.settings.probe, tier_named(self.settings, tier)
        effort = {key: getattr(probe, key) for key in ("file_mib", "share", "time_s", "repetitions")}
        place = {"path": str(declared.path), "kind": declared.kind}
        if not self.elsewhere:
            place["kernel"] = platform.release()
        if not declared.node and not self.elsewhere:
            mount = find_mount(declared.path)
            place |= {"mount_point": mount.mount_point, "fs_type": mount.fs_type, "device": mount.source}
        return {**place, **effort, "streams": self.streams(tier)}
