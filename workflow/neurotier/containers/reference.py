"""References: how the configuration names a container image, and what pins it.

A registry reference must have a digest, since a tag could mean another image tomorrow. A file or archive is identified
by its content, a definition file by its text and build arguments, the image of a DataLad dataset by dataset and name.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path

from neurotier.containers.dataset_images import DatasetImage, read_dataset_image
from neurotier.core.errors import SettingsError
from neurotier.core.installed import ROOT

REGISTRY = re.compile(r"(docker|oras|library):")
DIGEST = re.compile(r"(@sha256:|:sha256\.)([0-9a-f]{64})$")
ARCHIVE = re.compile(r"(docker-archive|oci-archive|oci):(?P<path>[^:]+)")
"""Images as Docker saves them, and as the layout of the Open Container Initiative has them: a file, or a folder."""

KINDS = "give a .sif or .def file, docker-archive: or oci: and a path, datalad:SOURCE#NAME, or a registry's reference"


@dataclass(frozen=True)
class Reference:
    """A container image by name.

    Attributes
    ----------
    text
        As the configuration has it.
    kind
        ``registry``, ``file``, ``definition``, ``archive`` or ``dataset``.
    path
        Of a file, definition file or archive.
    name
        What to call it: the last part, without extension, tag and digest.
    dataset
        Where to find the image of a dataset.
    """

    text: str
    kind: str
    path: Path
    name: str
    dataset: DatasetImage | None = None


def read_reference(text: str, where: str) -> Reference:
    """Read the image reference of a configuration key.

    Raises
    ------
    SettingsError
        If a registry's image is not pinned, or a file does not exist or is neither an image nor a definition; see also
        :func:`neurotier.containers.dataset_images.read_dataset_image`.

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
        return Reference(text, "registry", Path(), short_name(text))
    if text.startswith("datalad:"):
        found = read_dataset_image(text, where)
        return Reference(text, "dataset", Path(), safe_name(found.name), found)
    if archive := ARCHIVE.fullmatch(text):
        path = find(Path(archive["path"]).expanduser(), "index.json" if text.startswith("oci:") else "")
        if path is None:
            raise SettingsError("no such archive", where=where, fix="correct the path (oci: takes a folder)")
        return Reference(f"{archive[1]}:{path}", "archive", path, short_name(text))
    path = find(Path(text).expanduser())
    if path is None:
        raise SettingsError("no such file", where=where, fix=KINDS)
    if path.suffix not in (".sif", ".simg", ".def"):
        raise SettingsError("is neither a .sif nor a .def file", where=where)
    return Reference(text, "definition" if path.suffix == ".def" else "file", path, short_name(text))


def find(path: Path, within: str = "") -> Path | None:
    """A file relative to the working folder, else to the repository; ``None`` if neither has it.

    With ``within``, it is a folder that has a file of that name.
    """
    for candidate in (path.absolute(), ROOT / path):
        if (candidate / within).is_file():
            return candidate
    return None


def short_name(text: str) -> str:
    """What to call the image of a reference.

    >>> short_name("docker://bids/example:1.0@sha256:" + 64 * "0"), short_name("datalad:///repronim/containers#bids-mriqc")
    ('example', 'bids-mriqc')
    >>> short_name("/images/mriqc-24.sif"), short_name("docker-archive:/images/mriqc.tar")
    ('mriqc-24', 'mriqc')
    """
    text = DIGEST.sub("", text)
    if archive := ARCHIVE.fullmatch(text):
        text = archive["path"].rstrip("/")
    last = re.split("[/#]", text)[-1].split(":")[0]
    return safe_name(re.sub(r"\.(sif|def|tar)$", "", last))


def safe_name(text: str) -> str:
    """A name that can stand in a file name.

    >>> safe_name("brain extractor")
    'brain_extractor'
    """
    return "".join(c if c.isalnum() or c in "._-" else "_" for c in text).strip("._-") or "image"
