"""Images from a registry: a real one on loopback, which several processes pull from at once, which is away or slow."""

from __future__ import annotations

import http.client
import http.server
import json
import os
import re
import shutil
import subprocess
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest
from conftest import missing
from container_images import Engine
from neurotier.containers.run import Container
from neurotier.containers.store import sha256
from neurotier.core.errors import SourceError
from stores import SETTINGS, names, store_in
from support import wait_for, while_running

CONFIGURATION = """version: 0.1
log: {{level: info}}
storage: {{filesystem: {{rootdirectory: {folder}}}}}
http: {{addr: "127.0.0.1:0"}}
"""


@dataclass
class Registry:
    """A registry on loopback, with the tiny image in it."""

    process: subprocess.Popen[bytes]
    log: Path
    address: str = ""
    manifest: str = ""
    layer: str = ""

    def reference(self, digest: str = "") -> str:
        """As a configuration names the image; or with another digest."""
        return f"oras://{self.address}/tiny@{digest or self.manifest}"


@pytest.fixture
def registry(engine: Engine, tiny_image: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Registry]:
    """Debian's docker-registry, on a port that it chooses."""
    program = shutil.which("docker-registry")
    if program is None:
        missing("docker-registry is not installed")
    monkeypatch.setenv("APPTAINER_NOHTTPS", "1")
    configuration, log = tmp_path / "registry.yml", tmp_path / "registry.log"
    configuration.write_text(CONFIGURATION.format(folder=tmp_path / "registry"))
    with log.open("wb") as file:
        process = subprocess.Popen([str(program), "serve", str(configuration)], stdout=file, stderr=file)
    started = Registry(process, log)
    try:
        started.address = listening(started)
        push = [engine.path, "--quiet", "push", str(tiny_image), f"oras://{started.address}/tiny:1"]
        subprocess.run(push, check=True, capture_output=True)
        started.manifest, started.layer = digests(started.address)
        yield started
    finally:
        process.terminate()
        process.wait()


def listening(registry: Registry) -> str:
    """Where a registry listens, by its log."""
    listens = re.compile(r"listening on (127\.0\.0\.1:\d+)")
    return wait_for(lambda: listens.search(registry.log.read_text()), while_running(registry.process))[1]


def digests(address: str) -> tuple[str, str]:
    """Digests of the image's manifest and of its only layer, as the registry tells them."""
    connection = http.client.HTTPConnection(address)
    accept = {"Accept": "application/vnd.oci.image.manifest.v1+json"}
    connection.request("GET", "/v2/tiny/manifests/1", headers=accept)
    answer = connection.getresponse()
    (layer,) = json.loads(answer.read())["layers"]
    connection.close()
    return str(answer.getheader("Docker-Content-Digest")), layer["digest"]


def test_pulled_image_is_the_pushed_one_and_runs(
    registry: Registry, engine: Engine, tiny_image: Path, tmp_path: Path
) -> None:
    store = store_in(tmp_path, engine)
    image = store.obtain(registry.reference(), "tool.image")
    placed = store.file(image)
    assert (image.name, image.size_bytes) == ("tiny", tiny_image.stat().st_size)
    assert image.sha256 == sha256(placed) == sha256(tiny_image) == registry.layer.removeprefix("sha256:")
    assert names(store.images) == [placed.name]
    assert [Path(name).suffix for name in names(store.kept)] == [".json", ".sif"]
    code, _ = Container(engine.path, placed, SETTINGS, tmp_path / "scratch").run(["/bin/true"], tmp_path / "run.log")
    assert code == 0, (tmp_path / "run.log").read_text()


@pytest.mark.parametrize("changed", [False, True])
def test_what_the_registry_has_not_or_has_changed_leaves_nothing(
    registry: Registry, engine: Engine, tmp_path: Path, changed: bool
) -> None:
    """Content is not what its digest says where the registry's disk is bad, or somebody is between."""
    if changed:
        (content,) = tmp_path.glob(f"registry/**/blobs/sha256/*/{registry.layer.removeprefix('sha256:')}/data")
        with content.open("r+b") as file:
            file.seek(-1000, os.SEEK_END)
            file.write(b"changed")
    store = store_in(tmp_path, engine)
    with pytest.raises(SourceError, match="pulling oras://") as raised:
        store.obtain(registry.reference("" if changed else f"sha256:{64 * '0'}"), "tool.image")
    assert ("sha256 checksum" if changed else "the registry has no such image") in str(raised.value)
    assert len(str(raised.value).splitlines()) == 1
    assert names(store.kept) == names(store.images) == []
