"""Stores of container images, for the unit tests of them."""

from __future__ import annotations

from pathlib import Path

from container_images import Engine
from neurotier.containers.store import Store
from neurotier.core.settings import ContainerSettings
from support import quiet

SETTINGS = ContainerSettings("sif", network=False, environment={}, binds=[], build_arguments={})


def store_in(folder: Path, engine: Engine, form: str = "sif", **arguments: str) -> Store:
    """A store that keeps images in one folder, and places them in another."""
    settings = ContainerSettings(form, network=False, environment={}, binds=[], build_arguments=arguments)
    kept, images, log = (folder / name for name in ("kept", "images", "log"))
    return Store(kept, images, quiet, engine=engine.path, settings=settings, log=log)


def names(folder: Path) -> list[str]:
    """What lies in a folder but for locks, which are empty and stay."""
    return sorted(path.name for path in folder.glob("*") if not path.name.endswith(".lock"))
