"""A tool in a container: one container per participant, in which the tool runs on one image after the other.

The host checks the heads while the container waits, and the masks when it has ended: what goes in and what comes out
is judged by the same code as without containers, so that the derivatives are the same bytes.
"""

from __future__ import annotations

import shlex
import shutil
from collections.abc import Callable, Sequence
from pathlib import Path

import nibabel as nib

from neurotier.analysis.images import Mask, check_mask
from neurotier.analysis.tools import MASK, Tool, failed, smallest_head
from neurotier.containers.run import WORK, Container
from neurotier.containers.store import remove
from neurotier.files import exclusive
from neurotier.meter.usage import Usage

INPUT = "/input"
"""Where the container sees the participant's images, read-only."""

CACHE = "cache"


def extract_all(
    tool: Tool,
    container: Container,
    images: Sequence[str],
    log: Path,
    load_heads: Callable[[], list[nib.Nifti1Image]],
) -> tuple[list[tuple[nib.Nifti1Image, Mask | None]], Usage]:
    """Run a tool on all images of a participant.

    Parameters
    ----------
    tool
        The tool.
    container
        Its image, with the images bound at :data:`INPUT`.
    images
        Paths of the images below :data:`INPUT`.
    log
        File that takes what the tool prints.
    load_heads
        Loads and checks the images; called while the container waits.

    Returns
    -------
    tuple
        Head and mask of each image, and what it cost to start the container.

    Raises
    ------
    ContainerError, InputError, ToolError
        If the container does not start, a head is none, or the tool fails.
    """
    heads: list[nib.Nifti1Image] = []
    folders = [container.scratch / str(number) for number in range(len(images))]
    for folder in folders:
        folder.mkdir(parents=True)
    commands = [
        tool.command(f"{INPUT}/{image}", f"{WORK}/{folder.name}") for image, folder in zip(images, folders, strict=True)
    ]
    (container.scratch / "commands").write_text(script(tool, commands))
    whole, start = container.run(
        ["/bin/sh", f"{WORK}/commands"], log, held=lambda: heads.extend(load_heads()), program=tool.name
    )
    masks = []
    for head, image, folder in zip(heads, images, folders, strict=True):
        printed, code = folder / "log", folder / "exit"
        with log.open("ab") as file:
            file.write(printed.read_bytes() if printed.exists() else b"")
        said = code.read_text().strip() if code.exists() else ""  # nothing, if the tier was full or all was killed
        ended = int(said) if said else (whole or 1)
        if ended != 0:
            raise failed(tool.name, ended, printed if printed.exists() else log, image)
        mask = f"{folder.name}/{MASK}"
        masks.append((head, check_mask(container.scratch, mask, head, tool.name, image) if tool.makes_masks else None))
    return masks, start


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
    """Ask the image for the tool's version, and keep what the tool compiles on its first image, for everyone.

    Parameters
    ----------
    tool
        The tool.
    container
        Its image.
    cache
        Folder for it in the store.
    log
        File that takes what is printed.

    Returns
    -------
    str
        The version.
    """
    head = container.scratch / "head.nii.gz"
    container.scratch.mkdir(parents=True, exist_ok=True)
    lines = [f"{shlex.join(tool.version_command)} >{WORK}/version"]
    if tool.cache_variable and not cache.exists():
        nib.save(smallest_head(), head)
        (container.scratch / "0").mkdir()
        lines.append(script(tool, [tool.command(f"{WORK}/{head.name}", f"{WORK}/0")]))
    (container.scratch / "commands").write_text("set -e\n" + "\n".join(lines) + "\n")
    code, _ = container.run(["/bin/sh", f"{WORK}/commands"], log, program=tool.name)
    if code != 0:
        printed = container.scratch / "0" / "log"
        raise failed(tool.name, code, printed if printed.exists() else log, str(container.image.name))
    if tool.cache_variable:
        keep_cache(container.scratch / CACHE, cache)
    return (container.scratch / "version").read_text().strip() or "unknown"


def keep_cache(made: Path, cache: Path) -> None:
    """Put a cache into the store, whole."""
    with exclusive(cache):
        if cache.exists() or not made.exists():
            return
        partial = cache.with_name(f".{cache.name}.partial")
        remove(partial)
        shutil.copytree(made, partial)
        partial.rename(cache)


def take_cache(tool: Tool, cache: Path, scratch: Path) -> None:
    """Give a participant a copy of the cache (some 100 kB): one that all wrote to would not be its own."""
    if tool.cache_variable and cache.exists():
        shutil.copytree(cache, scratch / CACHE)
