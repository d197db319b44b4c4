"""Caches: folders that apps read, placed once on a tier, whole or not at all."""

from __future__ import annotations

import os
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path

import pytest
from neurotier.containers.store import Shelf, look_at, place_cache
from neurotier.core.errors import InputError, SourceError
from neurotier.core.files import write_text
from support import ENVIRONMENT, wait_for, while_running

PLACE = """
import sys
from pathlib import Path
from neurotier.containers.store import Shelf, look_at, place_cache
folder = Path(sys.argv[1])
cache = look_at("flow", str(folder / "source"))
place_cache(Shelf(folder / "kept", folder / "images", print, folder / "verified", "one"), cache)
"""
"""A program that places a cache, as a job does."""


@pytest.fixture
def source(tmp_path: Path) -> Path:
    """A small TemplateFlow: a file, a link that stays, and a folder of another name."""
    folder = tmp_path / "source"
    write_text(folder / "tpl-A/tpl-A_T1w.nii.gz", "x" * 1000)
    write_text(folder / "template_description.json", "{}")
    (folder / "tpl-A/latest.nii.gz").symlink_to("tpl-A_T1w.nii.gz")
    return folder


@pytest.fixture
def store(tmp_path: Path) -> Shelf:
    (tmp_path / "images").mkdir()
    return Shelf(tmp_path / "kept", tmp_path / "images", print, tmp_path / "verified", "one")


def contents(folder: Path) -> dict[str, bytes]:
    return {path.relative_to(folder).as_posix(): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


def test_a_cache_is_placed_once_and_known_by_its_contents(source: Path, store: Shelf) -> None:
    said: list[str] = []
    store = replace(store, say=said.append)
    cache = look_at("flow", str(source))
    placed = place_cache(store, cache)
    assert contents(placed) == contents(source)
    assert os.readlink(placed / "tpl-A/latest.nii.gz") == "tpl-A_T1w.nii.gz"
    assert placed.name == f"flow-{cache.sha256[:12]}.folder"
    for again in (store, replace(store, run="two")):
        assert place_cache(again, cache) == placed
    assert len(said) == 1
    (source / "template_description.json").chmod(0o600)
    assert look_at("flow", str(source)) == cache, "permissions are those of a file system"
    (source / "template_description.json").write_text("[]")
    assert look_at("flow", str(source)).sha256 != cache.sha256


def test_an_altered_cache_is_placed_again_by_the_next_run(source: Path, store: Shelf) -> None:
    cache = look_at("flow", str(source))
    placed = place_cache(store, cache)
    (placed / "template_description.json").write_text("[]")
    assert (place_cache(store, cache) / "template_description.json").read_text() == "[]", "this run has compared it"
    assert contents(place_cache(replace(store, run="two"), cache)) == contents(source)
    (placed / "planted").symlink_to("/etc")
    assert contents(place_cache(replace(store, run="three"), cache)) == contents(source)


def test_a_source_that_has_changed_or_gone_is_said_so(source: Path, store: Shelf) -> None:
    cache = look_at("flow", str(source))
    (source / "more").write_text("more")
    with pytest.raises(SourceError, match=r"^app\.caches\.flow: .*source: has changed since it was looked at; start w"):
        place_cache(store, cache)
    source.rename(source.with_name("away"))
    with pytest.raises(SourceError, match="is not there any more"):
        place_cache(store, cache)
    assert [path.name for path in store.images.iterdir() if not path.name.endswith(".lock")] == []


@pytest.mark.parametrize("kind", ["absolute", "upwards", "pipe"])
def test_what_leads_out_of_a_cache_is_refused(source: Path, kind: str) -> None:
    if kind == "pipe":
        os.mkfifo(source / "bad")
    else:
        (source / "bad").symlink_to("/etc/passwd" if kind == "absolute" else "../kept")
    with pytest.raises(InputError, match=r"^flow/bad: is a "):
        look_at("flow", str(source))


def test_a_copy_that_is_killed_half_way_has_no_name_and_is_made_again(
    source: Path, store: Shelf, tmp_path: Path
) -> None:
    for number in range(3000):  # it takes a moment
        (source / f"{number:04d}").write_bytes(b"x")
    command = [sys.executable, "-c", PLACE, str(tmp_path)]
    killed = subprocess.Popen(command, env=ENVIRONMENT)
    wait_for(lambda: list(store.images.glob(".flow-*.partial/0*")), while_running(killed))
    killed.kill()
    killed.wait()
    assert not list(store.images.glob("flow-*"))
    said: list[str] = []
    with ThreadPoolExecutor(3) as others:
        jobs = others.map(place_cache, [replace(store, say=said.append)] * 3, [look_at("flow", str(source))] * 3)
    (placed,) = {*jobs}
    assert len(said) == 1, "others wait for the one that copies"
    assert contents(placed) == contents(source)
    assert not list(store.images.glob(".*.partial"))
