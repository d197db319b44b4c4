"""Settings with one tier, ``disk``, which has all roles, as far as a test does not say otherwise."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from neurotier.core.settings import ROLES, Settings
from neurotier.core.tiers import find_mount


def settings_at(folder: Path | str = ".", in_containers: bool = False, **sections: Any) -> Settings:
    """Settings whose tier is a folder; further tiers and placements are laid over it."""
    disk = {"path": str(folder), "kind": find_mount(Path(folder)).kind}
    tiers = {"disk": disk, **sections.pop("tiers", {})}
    placement = dict.fromkeys(ROLES, "disk") | sections.pop("placement", {})
    return Settings.from_config({"tiers": tiers, "placement": placement, **sections}, in_containers=in_containers)
