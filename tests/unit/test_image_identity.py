"""What an image is told by in the store, before it is made."""

from __future__ import annotations

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


def test_files_that_a_definition_copies_count_and_folders_do_not(tmp_path: Path) -> None:
    (tmp_path / "code").mkdir()
    (tmp_path / "a.txt").write_text("a")
    files = "# a comment\na.txt /opt\ncode /opt\n*.txt /opt\n/etc/hostname /opt\n"
    (tmp_path / "app.def").write_text(f"Bootstrap: scratch\n%files\n{files}%post\n true\n")
    before = ingredients(tmp_path / "app.def", {})
    (tmp_path / "code" / "x").write_text("x")
    assert ingredients(tmp_path / "app.def", {}) == before, "results may lie in there"
    (tmp_path / "a.txt").write_text("b")
    assert ingredients(tmp_path / "app.def", {}) != before
