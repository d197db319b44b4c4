"""A tool in a container: one container per participant, in which the tool runs on one image after the other.

The host checks the heads while the container waits, and the masks when it has ended. Inputs and outputs are checked by
the same code as without containers, so that the derivatives are the same bytes.

Everything below the work folder is foreign once a container has run there: files may be missing, or replaced by links
and FIFOs.
"""

from __future__ import annotations

import os
import shlex
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

from neurotier.analysis.tool import Pair, Tool
from neurotier.analysis.tools import end_of, failed, smallest_head
from neurotier.containers.engine import LABELS, labelled_version
from neurotier.containers.run import SCRIPT, WORK, Bind, Container
from neurotier.containers.store import PlacedImage
from neurotier.core.errors import ContainerError, ToolError, one_line
from neurotier.core.files import exclusive, made_whole
from neurotier.core.foreign import TEXT_BYTES, blaming, copy_tree, read_text
from neurotier.core.settings import ContainerSettings
from neurotier.core.work_folders import IN, SCRATCH
from neurotier.dataset.bids import Image
from neurotier.meter.usage import Usage

INPUT = "/input"
"""Folder in the container with the participant's images, read-only."""

CACHE = "cache"
CACHE_BYTES, CACHE_FILES = 1_000_000_000, 10_000
"""Limits of what a tool may leave compiled; every participant job gets a copy."""

COMPILED = "/opt/numba-cache"
"""Folder of an image with what was compiled when it was built; on another kind of processor it is compiled anew."""

WORD_BYTES = 200
"""Most that is read of an exit code or a version."""


def extract_all(
    tool: Tool, placed: PlacedImage, containers: ContainerSettings, images: Sequence[Image], folder: Path, log: Path
) -> tuple[list[Pair], Usage]:
    """Run a tool on all images of a participant, which are loaded and checked while the container waits.

    Parameters
    ----------
    tool
        The tool.
    placed, containers
        Its image, and section ``containers`` of the configuration.
    images
        The participant's images, staged below ``folder/in``.
    folder
        The participant's work folder.
    log
        File that takes what the tool prints.

    Returns
    -------
    tuple
        Head and mask of each image, and the cost of starting the container.

    Raises
    ------
    ContainerError, InputError, ToolError
        If the container does not start, an image is not a head, or the tool fails.
    """
    scratch = folder / SCRATCH
    commands = []
    for number, image in enumerate(images):
        (scratch / str(number)).mkdir(parents=True)
        commands.append(tool.command(f"{INPUT}/{image.path}", f"{WORK}/{number}"))
    if tool.cache_variable and placed.cache.exists():  # a copy of some 100 kB, since jobs may write to it
        with blaming(str(placed.cache), ContainerError):
            copy_tree(placed.cache, scratch / CACHE)
    heads: list[Any] = []
    container = Container(placed.engine, placed.path, containers, scratch, [Bind(folder / IN, INPUT)])
    whole, start = container.run(
        ["/bin/sh", SCRIPT],
        log,
        held=lambda: heads.extend(tool.checked_head(folder / IN / image.path, image.path) for image in images),
        program=tool.name,
        script=script(tool, commands),
    )
    pairs = []
    for number, (image, head) in enumerate(zip(images, heads, strict=True)):
        printed = said_in(scratch, f"{number}/log", f"{image.path}: the tool's log")
        with log.open("a") as file:
            file.write(printed or "")
        code = (said_in(scratch, f"{number}/exit", f"{image.path}: the tool's exit code", WORD_BYTES) or "").strip()
        ended = int(code) if code.isdecimal() and len(code) <= 3 else whole or 1  # unwritten on a full tier, or killed
        if ended != 0:
            raise failed(tool.name, ended, end_of(log) if printed is None else printed, image.path)
        pairs.append((head, tool.read_mask(scratch, str(number), head, image.path)))
    return pairs, start


def said_in(scratch: Path, below: str, where: str, limit_bytes: int = TEXT_BYTES) -> str | None:
    """The end of a text that was written in the container; ``None`` if it was not, or is gone."""
    with suppress(FileNotFoundError), blaming(where, ToolError):
        return read_text(scratch, below, limit_bytes, from_end=True)
    return None


def script(tool: Tool, commands: Sequence[list[str]]) -> str:
    """Shell commands that run a tool on one image after the other, each with its own log and exit code."""
    variables = dict(tool.environment)
    if tool.cache_variable:
        variables[tool.cache_variable] = f"{WORK}/{CACHE}"
    lines = [f"export {name}={shlex.quote(value)}" for name, value in variables.items()]
    for number, command in enumerate(commands):
        folder = f"{WORK}/{number}"
        lines += [
            f"(cd {folder} && exec {shlex.join(command)}) >{folder}/log 2>&1",
            f"code=$?; echo $code >{folder}/exit; [ $code = 0 ] || exit $code",
        ]
    return "\n".join(lines) + "\n"


def prepare_in_container(tool: Tool, container: Container, cache: Path, log: Path) -> str:
    """Ask the image for the tool's version, and keep what the tool compiles on its first run for all participants.

    Parameters
    ----------
    tool
        The tool.
    container
        Its image.
    cache
        Folder for the compiled files in the store.
    log
        File that takes what is printed.

    Returns
    -------
    str
        The version.
    """
    head = container.scratch / "head.nii.gz"
    container.scratch.mkdir(parents=True, exist_ok=True)
    program = shlex.quote(tool.command("", "")[0])
    missing = shlex.quote(f"{tool.name}: the image has no program {program}")
    lines = [f"command -v {program} >/dev/null || {{ echo {missing} >&2; exit 127; }}"]
    if tool.version_command:
        lines += [f"export {name}={shlex.quote(value)}" for name, value in tool.environment.items()]
        lines.append(f"{shlex.join(tool.version_command)} >{WORK}/version")
    if tool.cache_variable and not cache.exists():
        import nibabel as nib

        nib.save(smallest_head(), head)
        (container.scratch / "0").mkdir()
        lines.append(f"[ ! -d {COMPILED} ] || cp -R {COMPILED} {WORK}/{CACHE}")
        lines.append(script(tool, [tool.command(f"{WORK}/{head.name}", f"{WORK}/0")]))
    commands = "set -e\n" + "\n".join(lines) + "\n"
    code, _ = container.run(["/bin/sh", SCRIPT], log, program=tool.name, script=commands)
    image = container.image.name
    if code != 0:
        printed = said_in(container.scratch, "0/log", f"{image}: the tool's log")
        raise failed(tool.name, code, end_of(log) if printed is None else printed, image)
    made = container.scratch / CACHE
    if tool.cache_variable and os.path.lexists(made):
        with exclusive(cache):
            if not cache.exists():
                with made_whole(cache) as partial, blaming(CACHE, ToolError):
                    copy_tree(made, partial, limit_bytes=CACHE_BYTES, limit_files=CACHE_FILES)
    if not tool.version_command:
        return read_labels(container, log)
    version = said_in(container.scratch, "version", f"{image}: the tool's version", WORD_BYTES)
    return one_line(version or "") or "unknown"


def read_labels(container: Container, log: Path) -> str:
    """The version in an image's labels, read inside the container: their file may be a link to one of the host."""
    container.scratch.mkdir(parents=True, exist_ok=True)
    lines = f'while read -r line || [ -n "$line" ]; do printf \'%s\\n\' "$line"; done <{LABELS} >{WORK}/labels'
    container.run(["/bin/sh", SCRIPT], log, script=f"[ ! -r {LABELS} ] || {lines}\n")
    return labelled_version(said_in(container.scratch, "labels", f"{container.image.name}: labels") or "")
