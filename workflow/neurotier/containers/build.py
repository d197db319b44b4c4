"""Builds: a container image from a definition file, with the package sources of this machine.

Definition files name no mirror: ``{{ MIRROR }}`` is the Debian mirror that this machine installs from, and pip and
conda take theirs from its configuration.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
from collections.abc import Mapping
from pathlib import Path

from neurotier.containers.engine import clean_environment, explain, run_logged
from neurotier.containers.reference import Reference, read_reference
from neurotier.core.errors import SettingsError, SourceError
from neurotier.core.installed import ROOT
from neurotier.core.settings import Say

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
