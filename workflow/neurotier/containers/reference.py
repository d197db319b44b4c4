"""References: how the configuration names a container image, and what pins it.

A registry reference must have a digest, since a tag could mean another image tomorrow. A file or archive is identified
by its content, a definition file by its text and build arguments, the image of a DataLad dataset by dataset and name.
"""

from __future__ import annotations

import re
from pathlib import Path
from typing import NamedTuple

from neurotier.core.errors import SettingsError
from neurotier.core.installed import ROOT
from neurotier.dataset.addresses import refusal
from neurotier.dataset.source import is_address, is_plain_folder

REGISTRY = re.compile(r"(docker|oras|library):")
DIGEST = re.compile(r"(@sha256:|:sha256\.)([0-9a-f]{64})$")
ARCHIVE = re.compile(r"(docker-archive|oci-archive|oci):(?P<path>[^:]+)")
"""Images as Docker saves them, and as the layout of the Open Container Initiative has them: a file, or a folder."""

DATASET = re.compile(r"datalad:(?P<source>.+)#(?P<name>[A-Za-z0-9_-]+)(?P<pin>@sha256:(?P<digest>[0-9a-f]{64}))?")

KINDS = "give a .sif or .def file, docker-archive: or oci: and a path, datalad:SOURCE#NAME, or a registry's reference"


class Reference(NamedTuple):
    """A container image by name.

    Attributes
    ----------
    text
        As the configuration has it, with paths made absolute.
    kind
        ``registry``, ``file``, ``definition``, ``archive`` or ``dataset``.
    name
        What to call it: the last part, without extension, tag and digest.
    path
        Of a file, definition file or archive.
    source, name_there, digest
        The DataLad source that has the image, its name there, and the digest that it must have, if one is given.
    """

    text: str
    kind: str
    name: str
    path: Path = Path()
    source: str = ""
    name_there: str = ""
    digest: str | None = None


def read_reference(text: str, where: str) -> Reference:
    """Read the image reference of a configuration key.

    Raises
    ------
    SettingsError
        If a registry's image is not pinned, a file does not exist or is neither an image nor a definition, or the
        source of a dataset is a local folder and no dataset, or no address that git may be given.

    Examples
    --------
    >>> read_reference("docker://bids/example@sha256:" + 64 * "0", "app.image").name
    'example'
    >>> read_reference("docker://bids/example:latest", "app.image")
    Traceback (most recent call last):
    ...
    neurotier.core.errors.SettingsError: ...
    >>> read_reference("datalad:///repronim/containers#bids-mriqc", "app.image").source
    '///repronim/containers'
    """
    where, name = f"config key {where}: {text}", short_name(text)
    if REGISTRY.match(text):
        if not DIGEST.search(text):
            fix = "add @sha256:DIGEST (library://: :sha256.DIGEST)"
            raise SettingsError("is not pinned: another image may have this name tomorrow", where=where, fix=fix)
        return Reference(text, "registry", name)
    if text.startswith("datalad:"):
        found = DATASET.fullmatch(text)
        if found is None:
            fix = "write datalad:SOURCE#NAME, and @sha256:DIGEST after it if it must be that image"
            raise SettingsError("names no image of a dataset", where=where, fix=fix)
        source = found["source"]
        if is_address(source):
            if reason := refusal(source):
                raise SettingsError(reason, where=where, fix="correct it")
        else:
            folder = Path(source).expanduser().absolute()
            if not folder.is_dir() or is_plain_folder(folder):
                raise SettingsError(f"{folder} is no DataLad dataset", where=where, fix="correct the path")
            source = str(folder)
        whole = f"datalad:{source}#{found['name']}{found['pin'] or ''}"
        return Reference(whole, "dataset", name, Path(), source, found["name"], found["digest"])
    archive = ARCHIVE.fullmatch(text)
    path = Path(archive["path"] if archive else text).expanduser()
    within = "index.json" if text.startswith("oci:") else ""
    path = next((each for each in (path.absolute(), ROOT / path) if (each / within).is_file()), path)
    if archive and (path / within).is_file():
        return Reference(f"{archive[1]}:{path}", "archive", name, path)
    if archive:
        raise SettingsError("no such archive", where=where, fix="correct the path (oci: takes a folder)")
    if not path.is_file():
        raise SettingsError("no such file", where=where, fix=KINDS)
    if path.suffix not in (".sif", ".simg", ".def"):
        raise SettingsError("is neither a .sif nor a .def file", where=where)
    return Reference(str(path), "definition" if path.suffix == ".def" else "file", name, path)


def short_name(text: str) -> str:
    """What to call the image of a reference, also in the name of a file.

    >>> short_name("docker://bids/example:1.0@sha256:" + 64 * "0"), short_name("datalad:///repronim/containers#bids-mriqc")
    ('example', 'bids-mriqc')
    >>> short_name("/images/mriqc-24.sif"), short_name("docker-archive:/images/my mriqc.tar")
    ('mriqc-24', 'my_mriqc')
    """
    text = DIGEST.sub("", text)
    if archive := ARCHIVE.fullmatch(text):
        text = archive["path"].rstrip("/")
    last = re.sub(r"\.(sif|def|tar)$", "", re.split("[/#]", text)[-1].split(":")[0])
    return re.sub(r"[^\w.-]", "_", last).strip("._-") or "image"
