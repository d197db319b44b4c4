"""Images from a registry: a real one on loopback, which may lack an image or hold a changed one."""

from __future__ import annotations

import os
import re
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest
from conftest import need
from container_images import Engine
from neurotier.containers.store import sha256
from neurotier.core.errors import SourceError
from stores import names, runs, store_in
from support import wait_for, while_running

CONFIGURATION = """version: 0.1
log: {{level: info}}
storage: {{filesystem: {{rootdirectory: {folder}}}}}
http: {{addr: "127.0.0.1:0"}}
"""


@pytest.fixture
def reference(engine: Engine, tiny_image: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[str]:
    """What names the tiny image in Debian's docker-registry, which listens on a port of loopback that it chooses."""
    program = need("docker-registry", "docker-registry")
    monkeypatch.setenv("APPTAINER_NOHTTPS", "1")
    configuration, log = tmp_path / "registry.yml", tmp_path / "registry.log"
    configuration.write_text(CONFIGURATION.format(folder=tmp_path / "registry"))
    listening = re.compile(r"listening on (127\.0\.0\.1:\d+)")
    with log.open("wb") as file:
        process = subprocess.Popen([program, "serve", str(configuration)], stdout=file, stderr=file)
    try:
        address = wait_for(lambda: listening.search(log.read_text()), while_running(process))[1]
        push = [engine.path, "--quiet", "push", str(tiny_image), f"oras://{address}/tiny:1"]
        subprocess.run(push, check=True, capture_output=True)
        (manifest,) = tmp_path.glob("registry/**/_manifests/revisions/sha256/*")
        yield f"oras://{address}/tiny@sha256:{manifest.name}"
    finally:
        process.terminate()
        process.wait()


def test_pulled_image_is_the_pushed_one_and_runs(
    reference: str, engine: Engine, tiny_image: Path, tmp_path: Path
) -> None:
    store = store_in(tmp_path, engine)
    image = store.obtain(reference, "tool.image")
    placed = store.file(image)
    assert (image.name, image.size_bytes) == ("tiny", tiny_image.stat().st_size)
    assert image.sha256 == sha256(placed) == sha256(tiny_image)
    assert names(store.images) == [placed.name]
    assert [Path(name).suffix for name in names(store.kept)] == [".json", ".sif"]
    assert runs(engine, placed, tmp_path / "run")


@pytest.mark.parametrize("changed", [False, True])
def test_what_the_registry_has_not_or_has_changed_leaves_nothing(
    reference: str, engine: Engine, tiny_image: Path, tmp_path: Path, changed: bool
) -> None:
    """Content is not what its digest says where the registry's disk is bad, or somebody is between."""
    if changed:
        (content,) = tmp_path.glob(f"registry/**/blobs/sha256/*/{sha256(tiny_image)}/data")
        with content.open("r+b") as file:
            file.seek(-1000, os.SEEK_END)
            file.write(b"changed")
    store, other = store_in(tmp_path, engine), f"{reference.partition('@')[0]}@sha256:{64 * '0'}"
    why = "sha256 checksum" if changed else "the registry has no such image"
    with pytest.raises(SourceError, match=rf"^pulling oras://.*{why}.*\Z"):  # in a line
        store.obtain(reference if changed else other, "tool.image")
    assert names(store.kept) == names(store.images) == []
