"""Makers of container images for the tests: small real ones, built here in a second."""

from __future__ import annotations

import hashlib
import io
import json
import os
import shutil
import subprocess
import tarfile
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from support import script

COMMANDS = [
    *("sh", "cat", "chmod", "cp", "env", "false", "find", "grep", "id", "kill", "ln", "ls", "mkdir"),
    *("mkfifo", "mv", "nc", "rm", "sed", "seq", "setsid", "sleep", "stat", "touch", "true", "truncate", "wc"),
]


@dataclass(frozen=True)
class Engine:
    """The container engine of the tests."""

    path: str

    def build(self, target: Path, definition: Path, **arguments: str) -> Path:
        """Build an image from a definition file, or of a folder."""
        words = [word for name, value in arguments.items() for word in ("--build-arg", f"{name}={value}")]
        command = [self.path, "--quiet", "build", "--fakeroot", *words, str(target), str(definition)]
        subprocess.run(command, check=True, capture_output=True)
        return target

    def run(self, image: Path, work: Path, script: str) -> str:
        """What a shell script prints in an image, with a folder of the host as ``/work``."""
        bind = ["--contain", "--cleanenv", "--bind", f"{work}:/work"]
        command = [self.path, "--silent", "exec", *bind, str(image), "sh", "-c", script]
        return subprocess.run(command, check=True, capture_output=True, text=True).stdout


def make_tiny(
    engine: Engine, folder: Path, run_script: str = "exec sh", programs: Mapping[str, str] | None = None
) -> Path:
    """An image with busybox and nothing else but ``programs``; ``run_script`` is what it runs when run as an app.

    The image is readable for everyone, as one that several users share.
    """
    definition = folder / "tiny.def"
    root = tiny_root(folder, programs)
    definition.write_text(f"Bootstrap: localimage\nFrom: {root}\n\n%runscript\n{run_script}\n")
    image = engine.build(folder / "tiny.sif", definition)
    image.chmod(0o755)
    return image


def tiny_root(folder: Path, programs: Mapping[str, str] | None = None) -> Path:
    """The root file system of the tiny image, as a folder, with shell scripts by name as further programs."""
    root = folder / "root"
    for name in ("bin", "dev", "etc", "home", "opt", "proc", "root", "sys", "tmp", "usr", "var/tmp"):
        (root / name).mkdir(parents=True, exist_ok=True)
    busybox = shutil.which("busybox")
    assert busybox is not None
    shutil.copy(busybox, root / "bin/busybox")
    for command in COMMANDS:
        if not os.path.lexists(root / "bin" / command):
            (root / "bin" / command).symlink_to("busybox")
    for name, text in (programs or {}).items():
        (root / "bin" / name).unlink(missing_ok=True)
        script(root / "bin" / name, text)
    return root


def of_another_architecture(image: Path, target: Path) -> Path:
    """A copy of an image that says it is for ARM: its header's and its file system's architecture are changed.

    A SIF has two digits and a zero byte for it (``02`` is AMD64, ``04`` is ARM64): in the header at byte 45, and at
    the end of the file system's descriptor.
    """
    content = bytearray(image.read_bytes())
    content[45:48] = b"04\0"
    at = content.find(b"02\0", 4096, 32768)
    content[at : at + 3] = b"04\0"
    target.write_bytes(content)
    return target


def make_archives(root: Path, folder: Path) -> tuple[str, str]:
    """A root file system as an image of one layer: as ``docker save`` writes it, which is a tar file of the layout of
    the Open Container Initiative and of Docker's own manifest, and as such a layout; the references to them."""
    layout, archive = folder / "layout", folder / "lab.tar"
    (layout / "blobs/sha256").mkdir(parents=True)

    def kept(kind: str, content: bytes) -> dict[str, Any]:
        """Keep a blob; what names it."""
        digest = hashlib.sha256(content).hexdigest()
        (layout / "blobs/sha256" / digest).write_bytes(content)
        return {"mediaType": f"application/vnd.oci.image.{kind}", "digest": f"sha256:{digest}", "size": len(content)}

    content = io.BytesIO()
    with tarfile.open(fileobj=content, mode="w") as tar:
        tar.add(root, arcname=".")
    layer = kept("layer.v1.tar", content.getvalue())
    layers = {"type": "layers", "diff_ids": [layer["digest"]]}
    about = {"architecture": "amd64", "os": "linux", "config": {}, "rootfs": layers}
    config = kept("config.v1+json", json.dumps(about).encode())
    parts = {"schemaVersion": 2, "mediaType": "application/vnd.oci.image.manifest.v1+json", "config": config}
    manifest = kept("manifest.v1+json", json.dumps({**parts, "layers": [layer]}).encode())
    (layout / "oci-layout").write_text('{"imageLayoutVersion": "1.0.0"}')
    (layout / "index.json").write_text(json.dumps({"schemaVersion": 2, "manifests": [manifest]}))
    config_path, layer_path = (f"blobs/{one['digest'].replace(':', '/')}" for one in (config, layer))
    of_docker = [{"Config": config_path, "RepoTags": ["lab/tiny:1"], "Layers": [layer_path]}]
    (layout / "manifest.json").write_text(json.dumps(of_docker))
    with tarfile.open(archive, "w") as tar:
        for path in layout.iterdir():
            tar.add(path, path.name)
    return f"docker-archive:{archive}", f"oci:{layout}"
