"""Small runs of storage workloads, without Snakemake, and what their tests share."""

from __future__ import annotations

import subprocess
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

from conftest import missing
from devices import loop_device
from neurotier.core.places import Places
from neurotier.core.settings import ROLES, Settings
from neurotier.core.tables import Row
from neurotier.core.tiers import find_mount
from neurotier.storage.daq.walk import Daq
from neurotier.storage.ior.walk import Ior
from neurotier.storage.staging.walk import Staging
from neurotier.storage.sweep.walk import Sweep
from neurotier.storage.workload import walk

MIB = 1 << 20
TINY_SWEEP: dict[str, Any] = {
    "block_sizes": ["4 KiB", "64 KiB"],
    "processes": [1, 2],
    "file_size": "1 MiB",
    "seconds": 0.02,
}
TINY_IOR: dict[str, Any] = {"processes": [1, 2], "file_size": "1 MiB", "block_size": "64 KiB"}


def settings_of(
    target: str, results: Path, tiers: Mapping[str, Path | Mapping[str, Any]], /, **section: Any
) -> Settings:
    """A configuration that measures some tiers, given by paths or as declared, and keeps its results elsewhere."""
    results.mkdir(exist_ok=True, parents=True)
    declared = {
        name: {"path": str(given), "kind": find_mount(given).kind} if isinstance(given, Path) else given
        for name, given in {**tiers, "home": results}.items()
    }
    asked = {"tiers": list(tiers), **section}
    return Settings.from_config({"tiers": declared, "placement": dict.fromkeys(ROLES, "home"), target: asked})


def run(target: str, settings: Settings, say: Callable[[str], None] = print) -> dict[str, list[Row]]:
    """The tables of a workload, as its rule would write them."""
    given = settings, Places.from_settings(settings)
    workload: Any = {"sweep": Sweep, "daq": Daq, "ior": Ior, "staging": Staging}[target](*given)
    return walk(workload, say)


def left(folder: Path) -> list[Path]:
    """Files that stayed on a tier."""
    return [file for file in folder.rglob("*") if file.is_file() and file.name != "ballast"]


@contextmanager
def throttled(mib: int, bytes_per_s: int, below: str = "/var/tmp") -> Iterator[Path]:
    """An ext4 on a device of so many MiB that is no faster, each way."""
    with ExitStack() as stack:
        try:
            folder = stack.enter_context(loop_device(mib, bytes_per_s, below))
        except (OSError, subprocess.CalledProcessError) as error:
            missing(f"no device can be slowed down here: {error}")
        yield folder
