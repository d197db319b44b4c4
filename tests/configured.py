"""Settings with one tier, ``disk``, which has all roles, as far as a test does not say otherwise."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from neurotier.core.settings import ROLES, Settings
from neurotier.core.tiers import find_mount


def tier(path: Path | str, **more: Any) -> dict[str, Any]:
    """A tier in a folder, of the kind that the folder has unless another is given."""
    return {"path": str(path), "kind": find_mount(Path(path)).kind, **more}


def settings_at(folder: Path | str = ".", in_containers: bool = False, **sections: Any) -> Settings:
    """Settings whose tier is a folder; further tiers and placements are laid over it."""
    tiers = {"disk": tier(folder), **sections.pop("tiers", {})}
    placement = dict.fromkeys(ROLES, "disk") | sections.pop("placement", {})
    return Settings.from_config({"tiers": tiers, "placement": placement, **sections}, in_containers=in_containers)
