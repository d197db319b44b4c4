"""Small runs of ``ior`` on one tier, without Snakemake."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

from neurotier.core.places import Places
from neurotier.core.settings import Settings
from neurotier.core.tables import Row
from neurotier.storage.ior.walk import ior_here
from neurotier.storage.workload.walk import walk

MIB = 1 << 20
TINY: dict[str, Any] = {"processes": [1, 2], "file_size": "1 MiB", "block_size": "64 KiB"}


def settings_of(folder: Path, path: Path, kind: str = "tmpfs", **section: Any) -> Settings:
    """A configuration that measures one tier, and keeps its results elsewhere."""
    results = folder / "results"
    results.mkdir(exist_ok=True, parents=True)
    tiers = {"fast": {"path": str(path), "kind": kind}, "disk": {"path": str(results), "kind": "block"}}
    placement = dict.fromkeys(("dataset", "work", "images", "results"), "disk")
    return Settings.from_config({"tiers": tiers, "placement": placement, "ior": {"tiers": ["fast"], **section}})


def run(settings: Settings, say: Callable[[str], None] = print) -> list[Row]:
    return walk(ior_here(settings, Places.from_settings(settings)), say)["ior"]


def left(folder: Path) -> list[Path]:
    return [file for file in folder.rglob("*") if file.is_file()]
