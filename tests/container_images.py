"""Makers of container images for the tests: small real ones, built here in a second."""

from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

COMMANDS = [
    *("sh", "cat", "chmod", "cp", "env", "false", "grep", "id", "kill", "ln", "ls", "mkdir"),
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
    shutil.copy(busybox, root / "bin" / "busybox")
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
