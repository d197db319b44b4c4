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
    for name, script in (programs or {}).items():
        (root / "bin" / name).unlink(missing_ok=True)
        (root / "bin" / name).write_text(f"#!/bin/busybox sh\n{script}\n")
        (root / "bin" / name).chmod(0o755)
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


def layer_of(root: Path) -> bytes:
    """A root file system as the one layer of an image."""
    layer = io.BytesIO()
    with tarfile.open(fileobj=layer, mode="w") as tar:
        tar.add(root, arcname=".")
    return layer.getvalue()


def configuration_of(layer: bytes) -> bytes:
    """The configuration of an image of one layer."""
    layers = {"type": "layers", "diff_ids": [f"sha256:{digest_of(layer)}"]}
    return json.dumps({"architecture": "amd64", "os": "linux", "config": {}, "rootfs": layers}).encode()


def digest_of(content: bytes) -> str:
    return hashlib.sha256(content).hexdigest()


def make_docker_archive(root: Path, target: Path) -> str:
    """An image as ``docker save`` writes it; the reference to it."""
    layer = layer_of(root)
    config = configuration_of(layer)
    names = {"Config": f"{digest_of(config)}.json", "RepoTags": ["lab/tiny:1"], "Layers": ["layer/layer.tar"]}
    contents = {names["Config"]: config, "layer/layer.tar": layer, "manifest.json": json.dumps([names]).encode()}
    with tarfile.open(target, "w") as tar:
        for name, content in contents.items():
            entry = tarfile.TarInfo(str(name))
            entry.size = len(content)
            tar.addfile(entry, io.BytesIO(content))
    return f"docker-archive:{target}"


def make_oci_layout(root: Path, folder: Path) -> str:
    """An image in the layout of the Open Container Initiative; the reference to it."""
    kind = "application/vnd.oci.image"
    layer = layer_of(root)
    config = configuration_of(layer)

    def described(name: str, content: bytes) -> dict[str, object]:
        return {"mediaType": f"{kind}.{name}", "digest": f"sha256:{digest_of(content)}", "size": len(content)}

    parts = {"config": described("config.v1+json", config), "layers": [described("layer.v1.tar", layer)]}
    manifest = json.dumps({"schemaVersion": 2, "mediaType": f"{kind}.manifest.v1+json", **parts}).encode()
    blobs = folder / "blobs/sha256"
    blobs.mkdir(parents=True)
    for content in (layer, config, manifest):
        (blobs / digest_of(content)).write_bytes(content)
    (folder / "oci-layout").write_text('{"imageLayoutVersion": "1.0.0"}')
    index = {"schemaVersion": 2, "manifests": [described("manifest.v1+json", manifest)]}
    (folder / "index.json").write_text(json.dumps(index))
    return f"oci:{folder}"
