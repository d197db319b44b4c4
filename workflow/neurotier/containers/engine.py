"""The container engine: Apptainer, or else Singularity; images that it makes, and explanations of its failures.

Images are made from definition files with the package sources of this machine. The files name no mirror:
``{{ MIRROR }}`` is the Debian mirror that this machine installs from, and pip and conda take theirs from its
configuration.
"""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any

from neurotier.containers.reference import Reference, read_reference
from neurotier.core.configuration import read_yaml
from neurotier.core.errors import ContainerError, SettingsError, SourceError, one_line
from neurotier.core.foreign import TEXT_BYTES
from neurotier.core.installed import ROOT
from neurotier.core.settings import Say
from neurotier.meter.tree import die_with_parent

NAMES = ("apptainer", "singularity")
OWN_VARIABLES = re.compile(r"(APPTAINER|SINGULARITY)(?!_(CONFIGDIR|DOCKER_\w+|NOHTTPS)$)")
"""Variables of the engine's own that it is not given: they would bind or set anything in the container."""

MISSING = {
    127: ("the image has no command {!r}", "name an image that holds the tool"),
    126: ("{!r} in the image is not executable", "correct the image"),
}
"""A shell's exit codes for a program that does not exist or cannot be executed, what they mean, and what to do."""


def find_engine() -> str:
    """Path of the engine.

    Raises
    ------
    ContainerError
        If there is none on PATH.
    """
    if path := next(filter(None, map(shutil.which, NAMES)), None):
        return path
    raise ContainerError(
        f"neither {' nor '.join(NAMES)} is on PATH",
        where="--sdm apptainer",
        fix="install it (containers/README.md says how), or leave the switch out to run on the host",
    )


LABELS = "/.singularity.d/labels.json"
"""The labels in an image, which describe it."""

LABEL_NAMES = ("org.opencontainers.image.version", "org.label-schema.version", "Version", "version")


def labelled_version(text: str) -> str:
    """The version in the labels of an image; ``unknown`` if they have none, or cannot be read.

    >>> labelled_version('{"Version": "1.2"}'), labelled_version("[]")
    ('1.2', 'unknown')
    """
    with suppress(ValueError, RecursionError, AttributeError, StopIteration):
        labels = json.loads(text)
        return next(one_line(str(labels[name]))[:200] for name in LABEL_NAMES if labels.get(name))
    return "unknown"


def clean_environment(given: Mapping[str, str], scratch: Path | None = None) -> dict[str, str]:
    """The environment for the engine, without :data:`OWN_VARIABLES`.

    >>> clean_environment({"APPTAINER_BIND": "/home", "PATH": "/bin"})
    {'PATH': '/bin'}
    """
    kept = {name: value for name, value in given.items() if not OWN_VARIABLES.match(name)}
    if scratch is not None:
        for prefix in ("APPTAINER", "SINGULARITY"):
            kept |= {f"{prefix}_TMPDIR": str(scratch), f"{prefix}_CACHEDIR": str(scratch / "cache")}
    return kept


def explain(
    said: str, where: str, doing: str = "start", problem: str = "the container did not start", fix: str = ""
) -> ContainerError:
    """The error for what an engine printed when it failed.

    Parameters
    ----------
    said
        What it printed.
    where
        What it was about.
    doing
        What it was doing, as in ``complaints.yaml``.
    problem, fix
        What is said if that has none of it, with the last error printed.

    Examples
    --------
    >>> str(explain("FATAL: squashfuse_ll exited: fuse: failed to open /dev/fuse: Permission denied", "x.sif"))
    'x.sif: this user may mount no image file here (FUSE); set containers.form to sandbox, ...'
    """
    for pattern, meaning, remedy in read_yaml(Path(__file__).with_name("complaints.yaml").read_text())[doing]:
        if re.search(pattern, said, re.IGNORECASE):
            return ContainerError(meaning.format(machine=os.uname().machine), where=where, fix=remedy)
    lines = [line for line in said.splitlines() if re.match(r"\s*(FATAL|ERROR)", line)] or said.splitlines()[-1:]
    return ContainerError(f"{problem}: {lines[-1].strip() if lines else 'no reason given'}", where=where, fix=fix)


def run_logged(command: list[str], log: Path, **options: Any) -> tuple[int, str]:
    """Run a command that prints to a log: its exit code, and what it printed; ``options`` of :func:`subprocess.run`."""
    begin = log.stat().st_size if log.exists() else 0
    with log.open("ab") as file:
        options |= {"stdin": subprocess.DEVNULL, "stdout": file, "stderr": file, "preexec_fn": die_with_parent}
        code = subprocess.run(command, check=False, **options).returncode
    return code, read_from(log, begin)


def read_from(log: Path, begin: int) -> str:
    """The end of what was added to a log since it was ``begin`` bytes long."""
    with log.open("rb") as file:
        file.seek(max(begin, log.stat().st_size - TEXT_BYTES))
        return file.read().decode(errors="replace")


# Images that it makes.

PLACEHOLDER = re.compile(r"\{\{\s*(\w+)\s*\}\}")
BASE = "BASE"
"""Build argument that may name another definition file, from which the base image is made first."""

QUICK = ["--mksquashfs-args", "-comp zstd -Xcompression-level 3"]
"""zstd takes 5 s where gzip takes 85 s, for 1.1 times the size."""


def section(definition: str, name: str) -> list[str]:
    """The lines of the first section of a name in the text of a definition file, but for empty ones.

    >>> section("%files\\n  a.txt /opt\\n\\n%post\\n  true", "files")
    ['a.txt /opt']
    """
    found = re.search(rf"^%{name}\s*\n(.*?)(?=^%|\Z)", definition, re.MULTILINE | re.DOTALL)
    return [line.strip() for line in found[1].splitlines() if line.strip()] if found else []


def build_arguments(definition: Path, given: Mapping[str, str]) -> dict[str, str]:
    """Values of the build arguments that a definition file uses: as given, its defaults, or those of this machine.

    Raises
    ------
    SettingsError
        If one has no value.
    """
    text = definition.read_text()
    defaults = {name: value for name, _, value in (line.partition("=") for line in section(text, "arguments"))}
    values = {}
    for name in dict.fromkeys(PLACEHOLDER.findall(text)):
        value = given.get(name) or defaults.get(name) or (mirror() if name == "MIRROR" else "")
        if not value:
            raise SettingsError(
                f"{definition.name} asks for {name}, and nothing gives it",
                where="config key containers.build_arguments",
                fix=f"add {name}: VALUE (see the comment at the top of {definition.name})",
            )
        values[name] = value
    return values


def mirror() -> str:
    """The Debian mirror by the configuration of this machine; empty if it has none."""
    if shutil.which("apt-get") is None:
        return ""
    command = ["apt-get", "indextargets", "--format", "$(REPO_URI)"]
    said = subprocess.run(command, capture_output=True, text=True, check=False).stdout
    return next((line for line in said.split() if re.search(r"/debian/?$", line)), "")


def content_of(text: str, given: Mapping[str, str]) -> str:
    """What determines the image of a reference: when it changes, the image is obtained again.

    Of a definition file that is its text, the files that it copies, the arguments except the mirror, and all that of
    its base, if that is another one. Only files that the first ``%files`` names beside the definition count, not
    folders and patterns: to read them would take every start as long as they are large, and what lies in them beside
    the code, such as results, would have everyone analysed again.

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
        facts = (path / "index.json" if path.is_dir() else path).stat()
        return f"{reference.text} {facts.st_size} {facts.st_mtime_ns}"
    content, arguments = path.read_text(), build_arguments(path, {"MIRROR": "any", **given})
    arguments.pop("MIRROR", None)
    for name in (line.split()[0] for line in section(content, "files")):
        if not name.startswith(("/", "#")) and (path.parent / name).is_file():
            content += (path.parent / name).read_text(errors="replace")
    base = arguments.get(BASE, "")
    below = content_of(str(path.parent / base), given) if base.endswith(".def") else ""
    return f"{content}{sorted(arguments.items())}{below}"


def make_image(
    engine: str, reference: Reference, arguments: Mapping[str, str], target: Path, log: Path, say: Say
) -> None:
    """Build, convert or pull an image file, with the engine's temporary files beside it.

    Raises
    ------
    ContainerError, SourceError
        With what the engine says of it; a :class:`SourceError` if the image cannot be pulled.
    """
    doing, words, folder = f"pulling {reference.text}", ["pull"], ROOT
    if reference.kind == "archive":
        doing, words = f"converting {reference.text}", ["build", *QUICK]
    elif reference.kind == "definition":
        doing, folder = f"building {reference.path.name}", reference.path.parent  # whose files it copies
        given = [word for name, value in arguments.items() for word in ("--build-arg", f"{name}={value}")]
        words = ["build", "--fakeroot", *QUICK, *given]
    say(doing + (" (some minutes, once)" if reference.kind == "definition" else ""))
    command = [engine, *words, str(target), reference.text]
    code, said = run_logged(command, log, cwd=folder, env=clean_environment(os.environ, target.parent))
    if code != 0:
        error = explain(said, doing, reference.kind, "failed", f"see {log}")
        raise SourceError(error.what, where=error.where, fix=error.fix) if reference.kind == "registry" else error
