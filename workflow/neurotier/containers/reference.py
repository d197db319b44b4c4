"""References: how the configuration names a container image, what pins it, and how it is obtained.

A registry reference must have a digest, since a tag could mean another image tomorrow. A file or archive is identified
by path, size and time, a definition file by its text and build arguments, the image of a DataLad dataset by dataset and
name.

A container dataset, as made by datalad-container (ReproNim/containers is one), says in its ``.datalad/config`` where
each of its images lies: ``datalad.containers.NAME.image``. It is cloned to fetch one image, of which the store keeps a
copy; then the clone is removed. The authors of the dataset are not trusted: a path or a link that leads out of it is
refused, and no command that it names is run. That is why this module reads the one key that it needs itself:
datalad-container runs commands that such a dataset names.

Definition files name no mirror: ``{{ MIRROR }}`` is the Debian mirror that this machine installs from, and pip and
conda take theirs from the machine's configuration.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
from collections.abc import Mapping
from dataclasses import replace
from glob import glob
from pathlib import Path, PurePosixPath
from typing import NamedTuple

from neurotier.containers.engine import clean_environment, explain, run_logged
from neurotier.core.configuration import suggestion
from neurotier.core.errors import InputError, NeurotierError, SettingsError, SourceError, one_line
from neurotier.core.files import absolute_path, remove_tree
from neurotier.core.foreign import copy_file, open_in_dataset
from neurotier.core.installed import ROOT
from neurotier.core.places import safe_name
from neurotier.core.quantities import first_of
from neurotier.core.settings import DatasetSettings, Say
from neurotier.core.tiers import is_plain_folder
from neurotier.dataset.addresses import check_own_files, config_of, refusal
from neurotier.dataset.commands import ask_git, datalad_errors, prepare_environment, retry
from neurotier.dataset.contents import get_images
from neurotier.dataset.source import clone, commit, is_address

REGISTRY = re.compile(r"(docker|oras|library):")
DIGEST = re.compile(r"(@sha256:|:sha256\.)([0-9a-f]{64})$")
ARCHIVE = re.compile(r"(docker-archive|oci-archive|oci):(?P<path>[^:]+)")
"""Images as Docker saves them, a file, or in the layout of the Open Container Initiative, a file or a folder."""

DATASET = re.compile(r"datalad:(?P<source>.+)#(?P<name>[A-Za-z0-9_-]+)(?P<pin>@sha256:(?P<digest>[0-9a-f]{64}))?")

KINDS = "give a .sif or .def file, docker-archive: or oci: and a path, datalad:SOURCE#NAME, or a registry's reference"


class Reference(NamedTuple):
    """A container image by name.

    Attributes
    ----------
    text
        As in the configuration, with paths made absolute.
    kind
        ``registry``, ``file``, ``definition``, ``archive`` or ``dataset``.
    path
        Path of a file, definition file or archive.
    source, name_there, digest
        The DataLad source that has the image, its name there, and its required digest, if given.
    """

    text: str
    kind: str
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
        source of a dataset is a local folder without one, or an address that git must not be given.

    Examples
    --------
    >>> read_reference("docker://bids/example@sha256:" + 64 * "0", "app.image").kind
    'registry'
    >>> read_reference("docker://bids/example:latest", "app.image")
    Traceback (most recent call last):
    ...
    neurotier.core.errors.SettingsError: ...
    >>> read_reference("datalad:///repronim/containers#bids-mriqc", "app.image").source
    '///repronim/containers'
    """
    where = f"config key {where}: {text}"
    if REGISTRY.match(text):
        if not DIGEST.search(text):
            raise SettingsError(
                "is not pinned: another image may have this name tomorrow",
                where,
                "add @sha256:DIGEST (library://: :sha256.DIGEST)",
            )
        return Reference(text, "registry")
    if text.startswith("datalad:"):
        found = DATASET.fullmatch(text)
        if found is None:
            raise SettingsError(
                "names no image of a dataset",
                where,
                "write datalad:SOURCE#NAME, and @sha256:DIGEST after it if it must be that image",
            )
        source = found["source"]
        if is_address(source):
            if reason := refusal(source):
                raise SettingsError(reason, where, "correct it")
        else:
            folder = absolute_path(source)
            if not folder.is_dir() or is_plain_folder(folder):
                raise SettingsError(f"{folder} is not a DataLad dataset", where, "correct the path")
            source = str(folder)
        whole = f"datalad:{source}#{found['name']}{found['pin'] or ''}"
        return Reference(whole, "dataset", Path(), source, found["name"], found["digest"])
    archive = ARCHIVE.fullmatch(text)
    path = Path(os.path.expanduser(archive["path"] if archive else text))
    within = "index.json" if text.startswith("oci:") else ""
    path = next((each for each in (path.absolute(), ROOT / path) if (each / within).is_file()), path)
    if archive and (path / within).is_file():
        return Reference(f"{archive[1]}:{path}", "archive", path)
    if archive:
        raise SettingsError("no such archive", where, "correct the path (oci: takes a folder)")
    if not path.is_file():
        raise SettingsError("is not a file" if path.exists() else "no such file", where, KINDS)
    if path.suffix not in (".sif", ".simg", ".def"):
        raise SettingsError("is neither a .sif nor a .def file", where)
    return Reference(str(path), "definition" if path.suffix == ".def" else "file", path)


def short_name(text: str) -> str:
    """What to call the image of a reference, also in file names.

    >>> short_name("docker://bids/example:1.0@sha256:" + 64 * "0"), short_name("datalad:///repronim/containers#bids-mriqc")
    ('example', 'bids-mriqc')
    >>> short_name("/images/mriqc-24.sif"), short_name("docker-archive:/images/my mriqc.tar")
    ('mriqc-24', 'my_mriqc')
    """
    text = DIGEST.sub("", text)
    if archive := ARCHIVE.fullmatch(text):
        text = archive["path"].rstrip("/")
    return safe_name(re.sub(r"\.(sif|def|tar)$", "", re.split("[/#]", text)[-1].split(":")[0])) or "image"


# Images of datasets.

KEY = re.compile(r"datalad\.containers\.([^.\n]+)\.image")

SHOWN = 12
"""Names in an error; ReproNim/containers has hundreds."""

FOLDERS = ("040000", "160000")
"""Modes of folders and sub-datasets in git's trees."""


def fetch(image: Reference, target: Path, settings: DatasetSettings, say: Say) -> dict[str, str]:
    """Fetch the file of an image from its dataset.

    Parameters
    ----------
    image
        The image.
    target
        The file to make; the temporary clone lies next to it.
    settings
        Section ``dataset`` of the configuration, which says how often a source is tried.
    say
        Prints one line per step, for the user.

    Returns
    -------
    dict
        Where it was found: ``dataset``, ``commit``, and ``path`` in it.

    Raises
    ------
    SourceError
        If the dataset cannot be cloned, has no such image, or cannot give its content.
    """
    prepare_environment()
    where, folder = f"container dataset {image.source}", target.with_name("dataset")
    settings = replace(settings, links_to=[])
    with datalad_errors():
        say(f"cloning {image.source} for its image {image.name_there}")
        retry(lambda: clone(image.source, folder, "HEAD", where), settings, say)
        path = path_of(folder, image.name_there, where)
        at = commit(folder)
        say(f"fetching {path} of commit {at[:12]}")
        try:
            get_images(folder, [path], settings, say)
            with open_in_dataset(folder, path) as file:
                copy_file(file, target, limit_bytes=2**62, write_back=True)
        except NeurotierError as error:
            kind = SourceError if isinstance(error, InputError) else type(error)
            raise kind(error.what, where=f"{where}: {error.where}", fix=error.fix) from None
    remove_tree(folder)
    return {"dataset": image.source, "commit": at, "path": path}


def path_of(dataset: Path, name: str, where: str) -> str:
    """Path of an image below its dataset, as the dataset gives it.

    Raises
    ------
    SourceError
        If the dataset has no image of this name, or the path is not that of a file in it.
    """
    try:
        check_own_files(dataset)
    except InputError as error:
        raise SourceError(".datalad/config or .gitmodules is a link", where) from error
    config = config_of(dataset, ".datalad/config").items()
    known = {match[1]: values[-1] for key, values in config if (match := KEY.fullmatch(key))}
    if name not in known:
        fix = "it has none: name a dataset to which datalad containers-add has added images"
        if known:
            fix = f"use one of its {len(known)}: {first_of(list(map(one_line, sorted(known))), SHOWN)}"
        raise SourceError(f"has no image {name!r}{suggestion(name, list(known))}", where, fix)
    path, lies = PurePosixPath(known[name]), f"its image {name!r} is at {one_line(known[name])[:200]!r}, which"
    if path.is_absolute() or {"..", ".git"} & {*path.parts} or not known[name].isprintable():
        raise SourceError(f"{lies} leads out of it", where)
    entry = ask_git(dataset, "ls-tree", "HEAD", "--", str(path))
    if not entry:
        raise SourceError(
            f"{lies} is not in it",
            where,
            "if that is in a sub-dataset, name the sub-dataset as the source",
        )
    if entry.startswith(FOLDERS):
        raise SourceError(
            f"{lies} is a folder, not an image file",
            where,
            "name one that is a file (docker-archive: and oci: take images of Docker)",
        )
    return str(path)


# Builds, with the package sources of this machine.

PLACEHOLDER = re.compile(r"\{\{\s*(\w+)\s*\}\}")
BASE = "BASE"
"""Build argument that may name another definition file, from which the base image is built first."""

QUICK = ["--mksquashfs-args", "-comp zstd -Xcompression-level 3"]
"""zstd takes 5 s where gzip takes 85 s, for 1.1 times the size."""


def section(definition: str, name: str) -> list[str]:
    """The lines of all sections of this name in the text of a definition file, without empty ones.

    >>> section("%files\\n  a.txt /opt\\n\\n%post\\n  true", "files")
    ['a.txt /opt']
    """
    found = re.findall(rf"^%{name}\s*\n(.*?)(?=^%|\Z)", definition, re.MULTILINE | re.DOTALL)
    return [line.strip() for line in "\n".join(found).splitlines() if line.strip()]


def build_arguments(definition: Path, given: Mapping[str, str]) -> dict[str, str]:
    """Values of the build arguments that a definition file uses: given, its defaults, or this machine's.

    Raises
    ------
    SettingsError
        If one has no value.
    """
    text = definition.read_text(errors="replace")
    defaults = {name: value for name, _, value in (line.partition("=") for line in section(text, "arguments"))}
    values = {}
    for name in dict.fromkeys(PLACEHOLDER.findall(text)):
        value = given.get(name) or defaults.get(name) or (mirror() if name == "MIRROR" else "")
        if not value:
            raise SettingsError(
                f"{definition.name} asks for {name}, and nothing gives it",
                "config key containers.build_arguments",
                f"add {name}: VALUE (see the comment at the top of {definition.name})",
            )
        values[name] = value
    return values


def mirror() -> str:
    """The Debian mirror in this machine's configuration; empty if there is none."""
    if shutil.which("apt-get") is None:
        return ""
    command = ["apt-get", "indextargets", "--format", "$(REPO_URI)"]
    said = subprocess.run(command, capture_output=True, text=True).stdout
    return next((line for line in said.split() if re.search(r"/debian/?$", line)), "")


LARGE_BYTES = 1_000_000
"""Files from this size on are not read as a whole at each start."""


def version_of(file: Path) -> str:
    """A text that changes when a large file is replaced or edited."""
    facts = file.stat()
    return f"{facts.st_size} {facts.st_mtime_ns}"


def image_identity(text: str, given: Mapping[str, str]) -> str:
    """What determines the image of a reference: if it changes, the image is obtained again.

    For a definition file, that is its text, the files that it copies, the arguments except the mirror, and the same for
    its base, if that is another definition. Only files that ``%files`` names relative to the definition count, not
    folders: reading those would slow down every start, and a change to anything else in them, such as results, would
    have all participants analysed again.

    Parameters
    ----------
    text
        The reference.
    given
        Build arguments of the configuration.
    """
    reference = read_reference(text, "image")
    path = reference.path
    if reference.kind in ("registry", "dataset"):
        return reference.text
    if reference.kind != "definition":
        return f"{reference.text} {version_of(path / 'index.json' if path.is_dir() else path)}"
    content, arguments = path.read_text(errors="replace"), build_arguments(path, {"MIRROR": "any", **given})
    arguments.pop("MIRROR", None)
    for name in re.findall(r'^(?![/#]|"/)("[^"]+"|\S+)', "\n".join(section(content, "files")), re.MULTILINE):
        for file in sorted(path.parent / found for found in glob(name.strip('"'), root_dir=path.parent)):
            if file.is_file():
                content += version_of(file) if file.stat().st_size > LARGE_BYTES else file.read_text(errors="replace")
    base = arguments.get(BASE, "")
    try:
        below = image_identity(str(path.parent / base), given) if base.endswith(".def") else ""
    except RecursionError:
        raise SourceError("is built from itself", path, "correct its base") from None
    return f"{content}{sorted(arguments.items())}{below}"


def make_image(
    engine: str, reference: Reference, arguments: Mapping[str, str], target: Path, log: Path, say: Say
) -> None:
    """Build, convert or pull an image file, with the engine's temporary files next to it.

    Raises
    ------
    ContainerError, SourceError
        With an explanation of what the engine printed; a :class:`SourceError` if the image cannot be pulled.
    """
    doing, words, folder = f"pulling {reference.text}", ["pull"], ROOT
    if reference.kind == "archive":
        doing, words = f"converting {reference.text}", ["build", *QUICK]
    elif reference.kind == "definition":
        doing, folder = f"building {reference.path.name}", reference.path.parent  # it copies files from there
        given = [word for name, value in arguments.items() for word in ("--build-arg", f"{name}={value}")]
        words = ["build", "--fakeroot", *QUICK, *given]
    say(f"{doing} (some minutes, once)")
    text = re.sub(r":[^/:@]+(?=@sha256:)", "", reference.text)  # the engine refuses a tag next to a digest
    environment = clean_environment()
    for prefix in ("APPTAINER", "SINGULARITY"):
        environment |= {f"{prefix}_TMPDIR": str(target.parent), f"{prefix}_CACHEDIR": str(target.with_name("cache"))}
    code, said = run_logged([engine, *words, target, text], log, cwd=folder, env=environment)
    if code != 0:
        error = explain(said, doing, reference.kind, "failed", f"see {log}")
        raise SourceError(error.what, error.where, error.fix) if reference.kind == "registry" else error
