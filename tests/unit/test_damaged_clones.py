"""Clones and contents that a power cut left half on the device: found, and had again."""

from __future__ import annotations

import itertools
import os
import shutil
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest
from configured import settings_at
from conftest import nightly
from neurotier.core.errors import SourceError
from neurotier.core.private import private_folder
from neurotier.dataset.contents import content_of, get_images
from neurotier.dataset.source import Dataset, fault_of, is_whole, obtain
from support import git, quiet, script

IMAGE = "SiteA/sub-0099001/ses-1/anat/sub-0099001_ses-1_run-1_T1w.nii.gz"
SETTINGS = settings_at(dataset={"sites": ["SiteA"], "get_attempts": 1}).dataset


def clone(source: Path, tmp_path: Path, say: Callable[[str], None] = quiet) -> Dataset:
    return obtain(SETTINGS, str(source), private_folder(tmp_path) / "clones", say)


@pytest.mark.parametrize("left_bytes", [0, 1000])
def test_content_of_another_size_than_its_key_is_fetched_again(
    demo_source: Path, tmp_path: Path, left_bytes: int
) -> None:
    dataset = clone(demo_source, tmp_path)
    assert get_images(dataset.path, [IMAGE], SETTINGS, quiet) == 1
    whole, content = content_of(dataset.path, IMAGE), (dataset.path / IMAGE).resolve()
    assert whole.is_here
    content.chmod(0o644)
    os.truncate(content, left_bytes)
    assert content_of(dataset.path, IMAGE).is_damaged
    said: list[str] = []
    assert get_images(dataset.path, [IMAGE], SETTINGS, said.append) == 1
    assert f"{left_bytes} of {whole.size_bytes} bytes are here: fetched again" in said[0]
    assert (dataset.path / IMAGE).read_bytes() == (demo_source / IMAGE).read_bytes()


SPOILED = ["HEAD", "an object", "annex/index", "index", "config", "no object"]
AT_ONCE = [("SiteA", "HEAD"), ("SiteA", "an object"), ("SiteA", "annex/index"), ("", "HEAD")]
LATER = [case for case in itertools.product(("SiteA", ""), SPOILED) if case not in AT_ONCE]


@pytest.mark.parametrize(("site", "name"), [*AT_ONCE, *nightly(*LATER)])
def test_clone_that_git_cannot_use_is_cloned_anew(demo_source: Path, tmp_path: Path, name: str, site: str) -> None:
    dataset = clone(demo_source, tmp_path)
    repository = dataset.path / site
    assert not fault_of(repository)
    tree = git(repository, "rev-parse", "HEAD^{tree}")
    for pack in (repository / ".git/objects/pack").glob("*.pack"):  # so that its objects are files
        pack.rename(tmp_path / pack.name)
        with (tmp_path / pack.name).open("rb") as packed:
            subprocess.run(["git", "-C", str(repository), "unpack-objects", "-q"], stdin=packed, check=True)
    file = repository / ".git" / name
    if "object" in name:
        file = repository / ".git/objects" / tree[:2] / tree[2:]
    file.parent.mkdir(parents=True, exist_ok=True)
    file.unlink(missing_ok=True)
    if name != "no object":
        file.touch()
    assert fault_of(repository)
    said: list[str] = []
    again = clone(demo_source, tmp_path, said.append)
    assert again == dataset
    assert not fault_of(repository)
    assert any("cloned anew" in line or "installing 1" in line for line in said), said
    assert get_images(again.path, [IMAGE], SETTINGS, quiet) == 1


GIT = """\
{git} "$@"
code=$?
for word; do [ "$word" != clone ] || cloned=yes; last=$word; done
[ -z "$cloned" ] || [ -e {spoiled} ] || [ "${{last%{name}}}" = "$last" ] || rm "$last"/.git/index >{spoiled}
exit $code
"""
"""A git that leaves a clone as one does that is ended by Ctrl-C at its end, once; DataLad does not notice."""


@pytest.mark.parametrize("name", [".partial", "/SiteA"])
def test_a_clone_whose_git_was_ended_is_made_again(
    demo_source: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    tools, spoiled = tmp_path / "tools", tmp_path / "spoiled"
    script(tools / "git", GIT.format(git=shutil.which("git"), spoiled=spoiled, name=name))
    monkeypatch.setenv("PATH", f"{tools}{os.pathsep}{os.environ['PATH']}")
    with pytest.raises(SourceError, match="was ended while it was cloned"):
        clone(demo_source, tmp_path)
    assert spoiled.exists()
    dataset = clone(demo_source, tmp_path)
    assert all(is_whole(dataset.path / site) for site in ("", "SiteA"))


def test_source_of_the_user_is_never_removed(demo_copy: Path, tmp_path: Path) -> None:
    """The source is broken, and not the clone."""
    clone(demo_copy, tmp_path)
    (demo_copy / "SiteA/.git/HEAD").write_text("")
    clone(demo_copy, tmp_path)
    assert (demo_copy / IMAGE).exists()


def test_a_name_in_a_key_is_not_taken_for_a_size(tmp_path: Path) -> None:
    """A key without a size ends in the name, here of site ``s01``: the good copy would be dropped as damaged."""
    git(tmp_path, "init")
    git(tmp_path, "annex", "init")
    (tmp_path / "head").write_bytes(b"x" * 100)
    key = "URL--https&c%%x.org%ds-s01-T1w.nii.gz"
    git(tmp_path, "annex", "setkey", key, "head")
    git(tmp_path, "annex", "fromkey", "--force", key, "T1w.nii.gz")
    content = content_of(tmp_path, "T1w.nii.gz")
    assert content.key.startswith("URL--")
    assert (content.size_bytes, content.is_damaged) == (100, False)
    assert get_images(tmp_path, ["T1w.nii.gz"], SETTINGS, print) == 0
    assert (tmp_path / "T1w.nii.gz").stat().st_size == 100
