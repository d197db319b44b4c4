"""References: how the configuration names a container image, and what pins it.

A registry reference must have a digest, since a tag could mean another image tomorrow. A file is identified by its
content, a definition file by its text and build arguments.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path

from neurotier.core.errors import SettingsError
from neurotier.core.installed import ROOT

REGISTRY = re.compile(r"(docker|oras|library):")
DIGEST = re.compile(r"(@sha256:|:sha256\.)([0-9a-f]{64})$")


@dataclass(frozen=True)
class Reference:
    """A container image by name.

    Attributes
    ----------
    text
        As the configuration has it.
    kind
        ``registry``, ``file`` or ``definition``.
    path
        Of a file or definition file; ``None`` for a registry's image.
    name
        What to call it: the last part, without extension, tag and digest.
    """

    text: str
    kind: str
    path: Path | None
    name: str


def read_reference(text: str, where: str) -> Reference:
    """Read the image reference of a configuration key.

    Raises
    ------
    SettingsError
        If a registry's image is not pinned, or a file does not exist or is neither an image nor a definition.

    Examples
    --------
    >>> read_reference("docker://bids/example@sha256:" + 64 * "0", "app.image").name
    'example'
    >>> read_reference("docker://bids/example:latest", "app.image")
    Traceback (most recent call last):
    ...
    neurotier.core.errors.SettingsError: ...
    """
    where = f"config key {where}: {text}"
    if REGISTRY.match(text):
        if not DIGEST.search(text):
            fix = "add @sha256:DIGEST (library://: :sha256.DIGEST)"
            raise SettingsError("is not pinned: another image may have this name tomorrow", where=where, fix=fix)
        last = DIGEST.sub("", text).rsplit("/", 1)[-1].split(":")[0]
        return Reference(text, "registry", None, safe_name(last))
    path = find(Path(text).expanduser())
    if path is None:
        raise SettingsError("no such file", where=where, fix="give a .sif or .def file, or a registry reference")
    if path.suffix not in (".sif", ".simg", ".def"):
        raise SettingsError("is neither a .sif nor a .def file", where=where)
    return Reference(text, "definition" if path.suffix == ".def" else "file", path, safe_name(path.stem))


def find(path: Path) -> Path | None:
    """A file relative to the working folder, else to the repository; ``None`` if neither has it."""
    for candidate in (path.absolute(), ROOT / path):
        if candidate.is_file():
            return candidate
    return None


def safe_name(text: str) -> str:
    """A name that can stand in a file name.

    >>> safe_name("brain extractor")
    'brain_extractor'
    """
    return "".join(c if c.isalnum() or c in "._-" else "_" for c in text).strip("._-") or "image"
