"""The analysis of one participant's images on the work tier, by a tool on the host or in a container.

There is one container per participant, in which the tool runs on one image after the other. The host checks the heads
while the container waits, and the masks after it has ended. The same code checks inputs and outputs as without
containers, so the derivatives are the same bytes. Everything below the work folder is foreign once a container has run
there: files may be missing, or replaced by links and FIFOs.
"""

from __future__ import annotations

import os
import re
import shlex
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any, NamedTuple

from neurotier.analysis.derivatives import write_sidecars
from neurotier.analysis.staging import remove_counted
from neurotier.analysis.tools import Pair, Tool, end_of_log, make_tool, smallest_head, tool_failure
from neurotier.containers.engine import LABELS, labelled_version
from neurotier.containers.run import SCRIPT, WORK, Bind, Container
from neurotier.containers.store import PlacedImage
from neurotier.core.errors import ContainerError, ToolError, one_line
from neurotier.core.files import Facts, Record, atomic_path, exclusive, note
from neurotier.core.foreign import TEXT_BYTES, blaming, copy_tree, read_text
from neurotier.core.private import IN, OUT, SCRATCH
from neurotier.core.settings import Settings
from neurotier.dataset.bids import Image, derivative_name
from neurotier.meter.folders import Removal
from neurotier.meter.usage import Usage


class Share(NamedTuple):  # costs a third of a dataclass at the start of each job
    """The part of a job that one call of an app may use: cores, and memory in MB."""

    threads: int
    memory_mb: int


class Job(NamedTuple):
    """The inputs of a participant job.

    Attributes
    ----------
    images
        The participant's images; for an app, all files that it is given.
    before
        Facts from before the job, for its record.
    share
        What a call of an app may use; ``None`` for what the configuration says.
    activity
        Identifier of how the derivatives are made, if they should refer to it; derivatives that are made again keep
        their first one.
    wait_for
        Waits for a turn (named by its argument), if the job has more participants than may compute at once.
    """

    participant: str
    images: list[Image]
    dataset: Path
    settings: Settings
    tool_version: str
    log: Path
    placed: PlacedImage | None = None
    before: Facts = {}  # noqa: RUF012  # it is only read
    share: Share | None = None
    activity: str = ""
    wait_for: Callable[[str], None] = lambda _: None


def files_of(images: Sequence[Image], dataset: Path, settings: Settings) -> list[str]:
    """The files that a participant's analysis reads, as paths below the dataset; for an app also those at its root."""
    site = images[0].site
    shared = root_files(dataset / site) if settings.is_app else []
    return [*(image.path for image in images), *(str(Path(site, name)) for name in shared)]


AT_ROOT = re.compile(r"(README|CHANGES|LICENSE|CITATION)(\.(md|rst|txt|cff))?|.*\.(json|tsv|bval|bvec)|\.bidsignore")
"""Files that BIDS has at the root of a dataset; others may be archives, or links to something missing."""


def root_files(site: Path) -> list[str]:
    """Files at a dataset's root that every participant's app sees: description, README, participants, sidecars."""
    return sorted(
        path.name
        for path in (site.iterdir() if site.is_dir() else ())  # glob("*") finds nothing in a folder that is closed
        if AT_ROOT.fullmatch(path.name) and not path.is_dir()
    )


class Analysed(NamedTuple):
    """The outcome for one participant: a row per brain mask, the cost of starting containers, what the tool had left in
    its scratch folders before these were removed, and an app's calls."""

    rows: list[Record]
    container_start: Usage | None
    removal: Removal
    calls: Sequence[Record] = ()


def analyze_images(job: Job, folder: Path, activity: str) -> Analysed:
    """Extract the brain of every image of a participant.

    Parameters
    ----------
    job
        The participant; its images are staged below ``folder/in``.
    folder
        The participant's work folder.
    activity
        URI that sidecars refer to; empty if they refer to none.

    Raises
    ------
    InputError, ToolError, ContainerError
        If an image cannot be analysed, or the container does not start.
    """
    tool, removal, start = make_tool(job.settings.tool), Removal(), None
    if not job.placed:
        extracted: Iterable[Pair] = extract_on_host(job, tool, folder, removal)
    else:
        extracted, start = extract_in_container(job, tool, job.placed, folder)
        remove_counted(folder / SCRATCH, removal)
    rows = [
        save(image, head, mask, folder / OUT, activity)
        for image, (head, mask) in zip(job.images, extracted, strict=True)
        if mask is not None
    ]
    return Analysed(rows, start, removal)


def extract_on_host(job: Job, tool: Tool, folder: Path, removal: Removal) -> Iterator[Pair]:
    """Head and mask of each image in turn, by a tool on the host."""
    for number, image in enumerate(job.images):
        staged, scratch = folder / IN / image.path, folder / f"{SCRATCH}-{number}"
        scratch.mkdir()
        os.chdir(scratch)  # temporary files of the tool stay on the work tier
        head = tool.checked_head(staged, image.path)
        mask = tool.extract(head, staged, scratch, job.log, image.path)
        os.chdir(folder)
        remove_counted(scratch, removal)
        yield head, mask


def save(image: Image, head: Any, mask: Any, out: Path, activity: str) -> Record:
    """Write the derivatives of one image; returns its row for the group stage."""
    from neurotier.analysis.images import write_brain, write_mask

    measured = write_mask(mask, head, out / derivative_name(image.in_site, "mask", ".nii.gz"))
    write_brain(mask, head, out / derivative_name(image.in_site, "T1w", ".nii.gz"))
    write_sidecars(image.in_site, out, activity)
    return mask_row(image, *measured)


def masks_of_app(images: Iterable[Image], out: Path, log: Path) -> list[Record]:
    """Rows for the group stage, for masks that an app wrote under the names that are used here, as fMRIPrep does; the
    log names those that cannot be read.
    """
    from neurotier.analysis.images import measure_mask

    rows = {}  # by mask, since an image that exists with two extensions has one mask
    for image in images:
        if image.path.endswith(("_T1w.nii", "_T1w.nii.gz")):  # an app's files include sidecars
            mask = str(derivative_name(image.in_site, "mask", ".nii.gz"))
            try:
                rows[mask] = mask_row(image, *measure_mask(out, mask))
            except FileNotFoundError:
                continue
            except ToolError as error:
                note(log, f"neurotier: not in the group table: {error}")
    return [*rows.values()]


def mask_row(image: Image, voxels: int, voxel_volume_mm3: float) -> Record:
    """The row of a mask for the group stage."""
    return {
        "image": image.path,
        "mask": str(Path(image.site, derivative_name(image.in_site, "mask", ".nii.gz"))),
        "session": image.session or None,
        "bids_run": image.bids_run or None,
        "brain_voxels": voxels,
        "voxel_volume_mm3": voxel_volume_mm3,
    }


# In a container.

INPUT = "/input"
"""Folder in the container with the participant's images, read-only."""

CACHE = "cache"
CACHE_BYTES, CACHE_FILES = 1_000_000_000, 10_000
"""Limits of what a tool may compile and keep; every participant job gets a copy."""

COMPILED = "/opt/numba-cache"
"""Folder of an image with code compiled when it was built; on another kind of processor, it is compiled again."""

WORD_BYTES = 200
"""Most bytes that are read for an exit code or a version."""


def extract_in_container(job: Job, tool: Tool, placed: PlacedImage, folder: Path) -> tuple[list[Pair], Usage]:
    """Run a tool on all images of a participant, which are loaded and checked while the container waits.

    Parameters
    ----------
    job
        The participant; its images are staged below ``folder/in``.
    tool, placed
        The tool, and its image.
    folder
        The participant's work folder.

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
    for number, image in enumerate(job.images):
        (scratch / str(number)).mkdir(parents=True)
        commands.append(tool.command(f"{INPUT}/{image.path}", f"{WORK}/{number}"))
    if tool.cache_variable and placed.cache.exists():  # a copy of some 100 kB, since jobs may write to it
        with blaming(placed.cache, ContainerError):
            copy_tree(placed.cache, scratch / CACHE)
    heads: list[Any] = []
    container = Container(placed.engine, placed.path, job.settings.containers, scratch, [Bind(folder / IN, INPUT)])
    whole, start = container.run(
        ["/bin/sh", SCRIPT],
        job.log,
        held=lambda: heads.extend(tool.checked_head(folder / IN / image.path, image.path) for image in job.images),
        program=tool.name,
        script=script(tool, commands),
    )
    pairs = []
    for number, (image, head) in enumerate(zip(job.images, heads, strict=True)):
        printed = container_text(scratch, f"{number}/log", f"{image.path}: the tool's log")
        with job.log.open("a") as file:
            file.write(printed or "")
        code = (
            container_text(scratch, f"{number}/exit", f"{image.path}: the tool's exit code", WORD_BYTES) or ""
        ).strip()
        ended = int(code) if code.isdecimal() and len(code) <= 3 else whole or 1  # missing on a full tier or if killed
        if ended != 0:
            raise tool_failure(tool.name, ended, end_of_log(job.log) if printed is None else printed, image.path)
        pairs.append((head, tool.read_mask(scratch, str(number), head, image.path)))
    return pairs, start


def container_text(scratch: Path, below: str, where: str, limit_bytes: int = TEXT_BYTES) -> str | None:
    """The end of a text written in the container; ``None`` if it is missing."""
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
        File for what is printed.

    Returns
    -------
    str
        The version.
    """
    head = container.scratch / "head.nii.gz"
    program = shlex.quote(tool.command("", "")[0])
    missing = shlex.quote(f"{tool.name}: the image has no program {program}")
    lines = [f"command -v {program} >/dev/null || {{ echo {missing} >&2; exit 127; }}"]
    if tool.version_command:
        lines += [f"export {name}={shlex.quote(value)}" for name, value in tool.environment.items()]
        lines.append(f"{shlex.join(tool.version_command)} >{WORK}/version")
    if tool.cache_variable and not cache.exists():
        import nibabel as nib

        (container.scratch / "0").mkdir(parents=True)
        nib.save(smallest_head(), head)
        lines.append(f"[ ! -d {COMPILED} ] || cp -R {COMPILED} {WORK}/{CACHE}")
        lines.append(script(tool, [tool.command(f"{WORK}/{head.name}", f"{WORK}/0")]))
    code, _ = container.run(["/bin/sh", SCRIPT], log, program=tool.name, script="set -e\n" + "\n".join(lines) + "\n")
    image = container.image.name
    if code != 0:
        printed = container_text(container.scratch, "0/log", f"{image}: the tool's log")
        raise tool_failure(tool.name, code, end_of_log(log) if printed is None else printed, image)
    made = container.scratch / CACHE
    if tool.cache_variable and os.path.lexists(made):
        with exclusive(cache):
            if not cache.exists():
                with atomic_path(cache) as partial, blaming(CACHE, ToolError):
                    copy_tree(made, partial, limit_bytes=CACHE_BYTES, limit_files=CACHE_FILES)
    if not tool.version_command:
        return read_labels(container, log)
    version = container_text(container.scratch, "version", f"{image}: the tool's version", WORD_BYTES)
    return one_line(version or "") or "unknown"


def read_labels(container: Container, log: Path) -> str:
    """The version in an image's labels, read inside the container: the file may be a link to a file of the host."""
    lines = f'while read -r line || [ -n "$line" ]; do printf \'%s\\n\' "$line"; done <{LABELS} >{WORK}/labels'
    container.run(["/bin/sh", SCRIPT], log, script=f"[ ! -r {LABELS} ] || {lines}\n")
    return labelled_version(container_text(container.scratch, "labels", f"{container.image.name}: labels") or "")
