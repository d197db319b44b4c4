"""Images from where they are kept: DataLad container datasets, and archives of Docker and OCI."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest
from configured import settings_at
from container_images import Engine, make_docker_archive, make_oci_layout, tiny_root
from neurotier.containers.store import Store, sha256
from neurotier.core.errors import ContainerError, NeurotierError, SettingsError, SourceError
from stores import names, runs, store_in
from support import ENVIRONMENT, ROOT, git

FETCHING = settings_at(dataset={"get_attempts": 1}).dataset


@pytest.fixture(scope="module")
def source(datalad_container: None, tiny_image: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A container dataset as datalad-container makes it, with the tiny image in it."""
    folder = tmp_path_factory.mktemp("containers") / "containers"
    datalad(folder.parent, "create", folder.name)
    words = ["--url", str(tiny_image), "--image", "images/lab/lab-tiny--1.0.sing", "lab-tiny"]
    datalad(folder, "containers-add", *words)
    return folder


def datalad(folder: Path, *arguments: str) -> None:
    """DataLad by hand."""
    subprocess.run(["datalad", *arguments], cwd=folder, env=ENVIRONMENT, check=True)


@pytest.fixture
def store(engine: Engine, tmp_path: Path) -> Store:
    return store_in(tmp_path, engine, dataset=FETCHING)


def test_an_image_is_fetched_from_its_dataset_once(
    source: Path, store: Store, tiny_image: Path, engine: Engine, tmp_path: Path
) -> None:
    said: list[str] = []
    store = replace(store, say=said.append)
    text = f"datalad:{source}#lab-tiny"
    image = store.obtain(text, "app.image")
    assert (image.name, image.sha256, image.size_bytes) == ("lab-tiny", sha256(tiny_image), tiny_image.stat().st_size)
    commit = git(source, "rev-parse", "HEAD")
    path = "images/lab/lab-tiny--1.0.sing"
    assert image.origin == {"dataset": str(source), "commit": commit, "path": path}
    assert said[-1] == f"fetching {path} of commit {commit[:12]}"
    assert store.obtain(text, "app.image") == image
    assert len(said) == 2
    assert runs(engine, store.file(image), tmp_path)
    assert [name.rpartition(".")[2] for name in names(store.kept)] == ["json", "sif"], "the clone is gone"
    pinned = store.obtain(f"{text}@sha256:{image.sha256}", "app.image")
    assert pinned.sha256 == image.sha256
    with pytest.raises(SourceError, match=r"lab-tiny@sha256:0+: is another image \(sha256 "):
        store.obtain(f"{text}@sha256:{64 * '0'}", "app.image")
    assert not list(store.kept.glob(".*.partial"))


@pytest.fixture
def hostile(source: Path, tmp_path: Path) -> Callable[..., str]:
    """Makes a container dataset whose image lies at some path; the reference to it."""
    folder = tmp_path / "hostile"
    git(tmp_path, "clone", str(source), folder.name)

    def make(path: str) -> str:
        git(folder, "config", "--file", ".datalad/config", "datalad.containers.bad.image", path)
        git(folder, "add", "--all")
        git(folder, "commit", "-qm", "image")
        return f"datalad:{folder}#bad"

    return make


@pytest.mark.parametrize(
    ("path", "said"),
    [
        ("/etc/hostname", r"its image 'bad' is at '/etc/hostname', which leads out of it"),
        ("../../secret", r"its image 'bad' is at '\.\./\.\./secret', which leads out of it"),
        (".git/config", r"its image 'bad' is at '\.git/config', which leads out of it"),
        ("images", r"its image 'bad' is at 'images', which is a folder, and no image file"),
        ("nowhere.sif", r"its image 'bad' is at 'nowhere\.sif', which is not in it; if that is in a sub-dataset"),
        ("-oops", r"its image 'bad' is at '-oops', which is not in it"),
        ("out", r"out: is a link that leads out of the dataset"),
        ("circle", r"circle: is a link that leads in a circle"),
        ("to-git", r"to-git: is a link that leads out of the dataset"),
        ("gone", r"gone: its content is not there"),
        ("images/lab/lab-tiny--1.0.sing", r"images/lab/.*\.sing: its content is not there"),
    ],
)
def test_a_dataset_cannot_lead_elsewhere(
    store: Store, hostile: Callable[..., str], tmp_path: Path, path: str, said: str
) -> None:
    folder = tmp_path / "hostile"
    (tmp_path / "secret").write_text("secret")
    (folder / "out").symlink_to(tmp_path / "secret")
    (folder / "circle").symlink_to("circle")
    (folder / "to-git").symlink_to(".git/config")
    key = "MD5E-s4--0123456789abcdef0123456789abcdef.sif"
    (folder / "gone").symlink_to(f".git/annex/objects/aa/bb/{key}/{key}")
    text = hostile(path)
    with pytest.raises(SourceError, match=rf"^container dataset .*hostile: {said}.*\Z"):  # in a line
        store.obtain(text, "app.image")
    assert names(store.kept) == []


def test_a_configuration_that_is_a_link_is_not_read(store: Store, hostile: Callable[..., str], tmp_path: Path) -> None:
    text, config = hostile("images"), tmp_path / "hostile/.datalad/config"
    config.rename(tmp_path / "config")
    config.symlink_to(tmp_path / "config")
    git(tmp_path / "hostile", "commit", "-qam", "link")
    with pytest.raises(SourceError, match=r"\.datalad/config or \.gitmodules is a link"):
        store.obtain(text, "app.image")


@pytest.mark.parametrize(
    ("reference", "said"),
    [
        ("docker://bids/example:latest", r"is not pinned"),
        ("docker://bids/example@sha256:123", r"is not pinned"),
        ("library://lab/set/tool:1.0", r"is not pinned"),
        ("containers/nowhere.def", r"no such file"),
        (str(ROOT / "README.md"), r"is neither a \.sif nor a \.def file"),
        ("datalad:nowhere#x", r"nowhere is no DataLad dataset; correct the path"),
        ("datalad:.#x", r" is no DataLad dataset"),
        ("datalad:///repronim/containers", r"names no image of a dataset; write datalad:SOURCE#NAME"),
        ("datalad:///repronim/containers#", r"names no image of a dataset"),
        ("datalad:///repronim/containers#a/b", r"names no image of a dataset"),
        ("datalad:///repronim/containers#a@sha256:12", r"names no image of a dataset"),
        ("datalad:ext::sh -c date#x", r"its address 'ext::sh -c date' would run a helper of git"),
        ("datalad:ssh://-oProxyCommand=date/x#x", r"would be read as an option"),
        ("docker-archive:nowhere.tar", r"no such archive"),
        ("oci:.", r"no such archive; correct the path \(oci: takes a folder\)"),
        (
            "oci:a:1",
            r"no such file; give a \.sif or \.def file, docker-archive: or oci: and a path, datalad:SOURCE#NAME",
        ),
    ],
)
def test_references_that_cannot_be_are_refused(
    store: Store, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, reference: str, said: str
) -> None:
    monkeypatch.chdir(tmp_path)
    with pytest.raises(SettingsError, match=rf"^config key app\.image: {re.escape(reference)}.*{said}"):
        store.obtain(reference, "app.image")


def test_archives_of_docker_and_oci_are_converted_once(store: Store, engine: Engine, tmp_path: Path) -> None:
    said: list[str] = []
    store = replace(store, say=said.append)
    root = tiny_root(tmp_path)
    for archive in (make_docker_archive(root, tmp_path / "lab.tar"), make_oci_layout(root, tmp_path / "layout")):
        image = store.obtain(archive, "app.image")
        assert store.obtain(archive, "app.image") == image
        assert runs(engine, store.file(image), tmp_path / image.name)
    assert [line.split(":")[0] for line in said] == ["converting docker-archive", "converting oci"]
    assert sorted(path.name.split("-")[0] for path in store.images.glob("*.sif")) == ["lab", "layout"]
    os.truncate(tmp_path / "lab.tar", 5000)
    with pytest.raises(ContainerError, match=r"^converting docker-archive:.*lab\.tar: is no such archive"):
        store.obtain(f"docker-archive:{tmp_path / 'lab.tar'}", "app.image")
    shutil.rmtree(tmp_path / "layout/blobs")
    (tmp_path / "layout/index.json").touch()
    with pytest.raises(NeurotierError, match=r"^converting oci:.*layout: is no such archive, or a damaged one"):
        store.obtain(f"oci:{tmp_path / 'layout'}", "app.image")
