"""Images from where they are kept: container datasets of DataLad, archives of Docker and OCI, and a registry, which
may lack an image or hold a changed one."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path

import pytest
import yaml
from conftest import need
from container_images import Engine, make_archives, tiny_root
from neurotier.containers.store import Store, sha256
from neurotier.core.errors import ContainerError, NeurotierError, SettingsError, SourceError
from stores import names, runs, store_in
from support import ENVIRONMENT, IDENTITY, git, wait_for

SAID = yaml.safe_load(Path(__file__).with_name("references.yaml").read_text())


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
    subprocess.run(["datalad", *arguments], cwd=folder, env=ENVIRONMENT | IDENTITY, check=True)


@pytest.fixture
def store(engine: Engine, tmp_path: Path) -> Store:
    return store_in(tmp_path, engine)


def test_an_image_is_fetched_from_its_dataset_once(
    source: Path, store: Store, tiny_image: Path, engine: Engine, tmp_path: Path
) -> None:
    said, text = list[str](), f"datalad:{source}#lab-tiny"
    store = replace(store, say=said.append)
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
    assert store.obtain(f"{text}@sha256:{image.sha256}", "app.image").sha256 == image.sha256
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


@pytest.mark.parametrize(("path", "said"), SAID["paths"].items())
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
    with pytest.raises(SourceError, match=rf"^container dataset .*hostile: {re.escape(said)}.*\Z"):  # in a line
        store.obtain(text, "app.image")
    assert names(store.kept) == []


def test_a_configuration_that_is_a_link_is_not_read(store: Store, hostile: Callable[..., str], tmp_path: Path) -> None:
    text, config = hostile("images"), tmp_path / "hostile/.datalad/config"
    config.rename(tmp_path / "config")
    config.symlink_to(tmp_path / "config")
    git(tmp_path / "hostile", "commit", "-qam", "link")
    with pytest.raises(SourceError, match=r"\.datalad/config or \.gitmodules is a link"):
        store.obtain(text, "app.image")


@pytest.mark.parametrize(("reference", "said"), SAID["refused"].items())
def test_references_that_cannot_be_are_refused(
    store: Store, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, reference: str, said: str
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "README.md").touch()
    with pytest.raises(SettingsError, match=rf"^config key app\.image: {re.escape(reference)}.*{re.escape(said)}"):
        store.obtain(reference, "app.image")


def test_archives_of_docker_and_oci_are_converted_once(store: Store, engine: Engine, tmp_path: Path) -> None:
    said: list[str] = []
    store = replace(store, say=said.append)
    for archive in make_archives(tiny_root(tmp_path), tmp_path):
        image = store.obtain(archive, "app.image")
        assert store.obtain(archive, "app.image") == image
        assert runs(engine, store.file(image), tmp_path / image.name)
    assert [line.split(":")[0] for line in said] == ["converting docker-archive", "converting oci"]
    assert sorted(path.name.split("-")[0] for path in store.images.glob("*.sif")) == ["lab", "layout"]
    os.truncate(tmp_path / "lab.tar", 5000)
    with pytest.raises(ContainerError, match=r"^converting docker-archive:.*lab\.tar: is not there"):
        store.obtain(f"docker-archive:{tmp_path / 'lab.tar'}", "app.image")
    shutil.rmtree(tmp_path / "layout/blobs")
    (tmp_path / "layout/index.json").touch()
    with pytest.raises(NeurotierError, match=r"^converting oci:.*layout: is not there, or is a damaged archive"):
        store.obtain(f"oci:{tmp_path / 'layout'}", "app.image")


CONFIGURATION = """version: 0.1
log: {{level: info}}
storage: {{filesystem: {{rootdirectory: {folder}}}}}
http: {{addr: "127.0.0.1:0"}}
"""


@pytest.fixture
def pushed(engine: Engine, tiny_image: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[str]:
    """What names the tiny image in Debian's docker-registry, which listens on a port of loopback that it chooses."""
    program = need("docker-registry", "docker-registry")
    monkeypatch.setenv("APPTAINER_NOHTTPS", "1")
    configuration, log = tmp_path / "registry.yml", tmp_path / "registry.log"
    configuration.write_text(CONFIGURATION.format(folder=tmp_path / "registry"))
    listening = re.compile(r"listening on (127\.0\.0\.1:\d+)")
    with log.open("wb") as file:
        process = subprocess.Popen([program, "serve", str(configuration)], stdout=file, stderr=file)
    try:
        address = wait_for(lambda: listening.search(log.read_text()), process)[1]
        push = [engine.path, "--quiet", "push", str(tiny_image), f"oras://{address}/tiny:1"]
        subprocess.run(push, check=True, capture_output=True)
        (manifest,) = tmp_path.glob("registry/**/_manifests/revisions/sha256/*")
        yield f"oras://{address}/tiny@sha256:{manifest.name}"
    finally:
        process.terminate()
        process.wait()


def test_pulled_image_is_the_pushed_one_and_runs(
    pushed: str, store: Store, engine: Engine, tiny_image: Path, tmp_path: Path
) -> None:
    image = store.obtain(pushed, "tool.image")
    placed = store.file(image)
    assert (image.name, image.size_bytes) == ("tiny", tiny_image.stat().st_size)
    assert image.sha256 == sha256(placed) == sha256(tiny_image)
    assert names(store.images) == [placed.name]
    assert [Path(name).suffix for name in names(store.kept)] == [".json", ".sif"]
    assert runs(engine, placed, tmp_path / "run")


@pytest.mark.parametrize("changed", [False, True])
def test_what_the_registry_has_not_or_has_changed_leaves_nothing(
    pushed: str, store: Store, tiny_image: Path, tmp_path: Path, changed: bool
) -> None:
    """Content is not what its digest says where the registry's disk is bad, or somebody is between."""
    if changed:
        (content,) = tmp_path.glob(f"registry/**/blobs/sha256/*/{sha256(tiny_image)}/data")
        with content.open("r+b") as file:
            file.seek(-1000, os.SEEK_END)
            file.write(b"changed")
    other = f"{pushed.partition('@')[0]}@sha256:{64 * '0'}"
    why = "sha256 checksum" if changed else "the registry has no such image"
    with pytest.raises(SourceError, match=rf"^pulling oras://.*{why}.*\Z"):  # in a line
        store.obtain(pushed if changed else other, "tool.image")
    assert names(store.kept) == names(store.images) == []
