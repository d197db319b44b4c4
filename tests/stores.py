"""Stores of container images, for the unit tests of them."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

from configured import settings_at
from container_images import Engine
from neurotier.containers.run import Container
from neurotier.containers.store import Store
from support import quiet

USUAL = settings_at(containers={"form": "sif"}, dataset={"get_attempts": 1})
SETTINGS, DATASET = USUAL.containers, USUAL.dataset


def store_in(folder: Path, engine: Engine, form: str = "sif", **own: Any) -> Store:
    """A store that keeps images in one folder, and places them in another."""
    kept, images, log = (folder / name for name in ("kept", "images", "log"))
    settings = replace(SETTINGS, form=form)
    return replace(Store(kept, images, quiet, engine=engine.path, settings=settings, log=log, dataset=DATASET), **own)


def names(folder: Path) -> list[str]:
    """What lies in a folder but for locks, which are empty and stay."""
    return sorted(path.name for path in folder.glob("*") if not path.name.endswith(".lock"))


def container_of(engine: Engine, image: Path, folder: Path, **settings: Any) -> Container:
    """A container of an image, with settings that differ so from the usual ones."""
    return Container(engine.path, image, replace(SETTINGS, **settings), folder / "scratch")


def runs(engine: Engine, image: Path, folder: Path) -> bool:
    """Whether a container starts from an image."""
    code, _ = container_of(engine, image, folder).run(["/bin/true"], folder / "log")
    return code == 0
