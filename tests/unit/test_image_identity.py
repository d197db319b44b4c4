"""What an image is told by in the store, before it is made."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from neurotier.containers.build import ingredients
from neurotier.containers.identity import identity
from neurotier.containers.reference import Reference, read_reference


@pytest.fixture
def app(tmp_path: Path) -> Reference:
    """A definition file that is built on another image."""
    (tmp_path / "app.def").write_text("Bootstrap: localimage\nFrom: {{ BASE }}\n")
    return read_reference(str(tmp_path / "app.def"), "app.image")


def test_a_store_in_another_place_makes_no_other_image(app: Reference, tmp_path: Path) -> None:
    here, there = tmp_path / "here", tmp_path / "there"
    one = identity(app, {"BASE": f"{here}/base-1.sif"}, here)
    assert one == identity(app, {"BASE": f"{there}/base-1.sif"}, there)
    assert one != identity(app, {"BASE": f"{there}/base-2.sif"}, there)


def test_a_base_image_of_the_user_counts_by_its_path(app: Reference, tmp_path: Path) -> None:
    store = tmp_path / "store"
    assert identity(app, {"BASE": "/a/base.sif"}, store) != identity(app, {"BASE": "/b/base.sif"}, store)
    assert identity(app, {}, store) == identity(app, {}, tmp_path)


def copying(folder: Path, *sources: str) -> Path:
    """A definition file that copies something from beside it."""
    lines = "".join(f"    {source} /opt/copied\n" for source in sources)
    (folder / "app.def").write_text(f"Bootstrap: localimage\nFrom: base.sif\n\n%files\n{lines}\n%post\n    true\n")
    return folder / "app.def"


CHANGES = {
    "content": lambda folder: (folder / "below" / "tool.py").write_text("other"),
    "another file": lambda folder: (folder / "below" / "more.py").write_text(""),
    "a file less": lambda folder: (folder / "below" / "tool.py").unlink(),
    "another name": lambda folder: (folder / "below").rename(folder / "under"),
    "an empty folder": lambda folder: (folder / "empty").mkdir(),
    "may be run": lambda folder: (folder / "below" / "tool.py").chmod(0o755),
    "another link": lambda folder: (folder / "another").symlink_to("below"),
}
"""What is done to a folder that is copied into an image."""


@pytest.mark.parametrize("source", ["code", "cod?", "./code/", "'a code'", "linked"])
@pytest.mark.parametrize("change", CHANGES)
def test_a_folder_that_is_copied_counts_with_all_that_is_in_it(tmp_path: Path, source: str, change: str) -> None:
    folder = tmp_path / source.strip("'./").replace("?", "e")
    if source == "linked":
        folder.symlink_to("code")
        folder = tmp_path / "code"
    (folder / "below").mkdir(parents=True)
    (folder / "below" / "tool.py").write_text("tool")
    (folder / "below" / "tool.py").chmod(0o644)
    definition = copying(tmp_path, source)
    before = ingredients(definition, {})
    os.utime(folder / "below" / "tool.py", (0, 0))
    assert ingredients(definition, {}) == before, "times are no matter"
    CHANGES[change](folder)
    assert ingredients(definition, {}) != before


def test_files_by_a_pattern_count_and_others_do_not(tmp_path: Path) -> None:
    (tmp_path / "one.py").write_text("1")
    (tmp_path / "two.txt").write_text("2")
    definition = copying(tmp_path, "*.py", "", "nowhere", "/etc/host*")
    before = ingredients(definition, {})
    (tmp_path / "two.txt").write_text("other")
    assert ingredients(definition, {}) == before
    (tmp_path / "one.py").write_text("other")
    assert ingredients(definition, {}) != before


def test_what_leads_through_the_machine_or_blocks_is_not_read(tmp_path: Path) -> None:
    """Links to everything and in circles count by what they say, and a pipe by being one."""
    (tmp_path / "code").mkdir()
    for name, leads_to in (("machine", "/"), ("circle", "."), ("itself", "itself"), ("nowhere", "nothing")):
        (tmp_path / "code" / name).symlink_to(leads_to)
    os.mkfifo(tmp_path / "code" / "pipe")
    os.mkfifo(tmp_path / "beside")
    (tmp_path / "round").symlink_to("round")
    definition = copying(tmp_path, "code", "beside", "rou*")
    before = ingredients(definition, {})
    (tmp_path / "code" / "machine").unlink()
    (tmp_path / "code" / "machine").symlink_to("/usr")
    assert ingredients(definition, {}) != before


def test_a_definition_that_copies_plain_files_is_told_by_what_it_always_was(tmp_path: Path) -> None:
    """Images that were built by earlier versions are not built again."""
    (tmp_path / "tool.py").write_text("tool\n")
    definition = copying(tmp_path, "tool.py", "/etc/hosts")
    said = ingredients(definition, {"BASE": "base.sif", "MIRROR": "a"})
    assert said == definition.read_text() + "tool\n[('BASE', 'base.sif')]"
