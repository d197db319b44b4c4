"""The analysis of one participant's images on the work tier, by a tool on the host or in a container."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from neurotier.analysis.inflating import SLAB_BYTES, DamagedError, Inflated
from neurotier.analysis.memory import LEAST_BYTES
from neurotier.analysis.staging import remove_counted
from neurotier.core.errors import InputError
from neurotier.core.foreign import open_file
from neurotier.core.settings import Settings
from neurotier.core.work_folders import IN, OUT, SCRATCH
from neurotier.dataset.bids import Image, derivative_name
from neurotier.meter.folders import Removal
from neurotier.meter.usage import Usage

if TYPE_CHECKING:  # nibabel is slow to load: only the phase that computes pays for it
    import nibabel as nib

    from neurotier.analysis.images import Mask
    from neurotier.analysis.in_container import Extracted
    from neurotier.analysis.tool import Tool
    from neurotier.containers.store import PlacedImage


@dataclass(frozen=True)
class Analysed:
    """The outcome for one participant: a row per brain mask, the cost of starting containers, calls of an app, and what
    the tool had left in its scratch folders, which are removed."""

    rows: list[dict[str, Any]]
    container_start: Usage | None = None
    calls: list[dict[str, Any]] | None = None
    removal: Removal = field(default_factory=Removal)


def analyze_images(
    images: list[Image], folder: Path, settings: Settings, log: Path, placed: PlacedImage | None
) -> Analysed:
    """Extract the brain of every image of a participant.

    Parameters
    ----------
    images
        The participant's images, staged below ``folder/in``.
    folder
        The participant's work folder.
    settings
        The configuration.
    log
        File that takes what the tool prints.
    placed
        The container image; ``None`` runs the tool on the host.

    Raises
    ------
    InputError, ToolError, ContainerError
        If an image cannot be analysed, or the container does not start.
    """
    from neurotier.analysis.tools import make_tool

    tool, removal = make_tool(settings.tool), Removal()
    extracted: Iterable[Extracted]
    if placed is None:
        extracted, start = on_host(tool, images, folder, log, removal), None
    else:
        extracted, start = in_container(tool, images, folder, settings, log, placed, removal)
    rows = [save(image, *pair, folder / OUT) for image, pair in zip(images, extracted, strict=True)]
    return Analysed([row for row in rows if row is not None], start, removal=removal)


def checked_head(tool: Tool, staged: Path, name: str) -> nib.Nifti1Image | None:
    """A head that can contain a brain, checked before its tool is started.

    ``None`` for a tool that makes no masks: such an image is read once, and no library is loaded to look into it.

    Raises
    ------
    InputError
        See :func:`neurotier.analysis.images.load_head`.
    """
    if not tool.makes_masks:
        read_through(staged, name)
        return None
    from neurotier.analysis.images import load_head

    return load_head(staged, name)


def read_through(staged: Path, name: str) -> None:
    """Read a file, or the first :data:`LEAST_BYTES` of it; :class:`InputError` if it is damaged."""
    with open_file(staged.parent, staged.name, name) as file:
        source = Inflated(file) if staged.suffix == ".gz" else file
        try:
            for _ in range(LEAST_BYTES // SLAB_BYTES):
                if not source.read(SLAB_BYTES):
                    break
        except DamagedError as error:
            raise InputError(f"the image file {error.what}", where=name, fix=error.fix) from None


def on_host(tool: Tool, images: list[Image], folder: Path, log: Path, removal: Removal) -> Iterator[Extracted]:
    """Head and mask of each image in turn, by a tool on the host."""
    for number, image in enumerate(images):
        staged = folder / IN / image.path
        scratch = folder / f"{SCRATCH}-{number}"
        scratch.mkdir()
        os.chdir(scratch)  # temporary files of the tool stay on the work tier
        head = checked_head(tool, staged, image.path)
        mask = tool.extract(head, staged, scratch, log, image.path)
        os.chdir(folder)
        remove_counted(scratch, removal)
        yield head, mask


def in_container(
    tool: Tool,
    images: list[Image],
    folder: Path,
    settings: Settings,
    log: Path,
    placed: PlacedImage,
    removal: Removal,
) -> tuple[list[Extracted], Usage]:
    """Head and mask of each image by a tool in a container, and the cost of starting the container."""
    from neurotier.analysis.in_container import INPUT, extract_all, take_cache
    from neurotier.containers.run import Bind, Container

    scratch = folder / SCRATCH
    scratch.mkdir()
    take_cache(tool, placed.cache, scratch)
    container = Container(placed.engine, placed.path, settings.containers, scratch, [Bind(folder / IN, INPUT)])
    paths = [image.path for image in images]
    extracted = extract_all(
        tool, container, paths, log, lambda: [checked_head(tool, folder / IN / path, path) for path in paths]
    )
    remove_counted(scratch, removal)
    return extracted


def save(image: Image, head: nib.Nifti1Image | None, mask: Mask | None, out: Path) -> dict[str, Any] | None:
    """Write the derivatives of one image; its row for the group stage, or ``None`` without a mask."""
    if mask is None:
        return None
    from neurotier.analysis.derivatives import write_sidecars
    from neurotier.analysis.images import write_brain, write_mask

    mask_name = derivative_name(image.in_site, "mask", ".nii.gz")
    voxels, voxel_volume_mm3 = write_mask(mask, head, out / mask_name)
    write_brain(mask, head, out / derivative_name(image.in_site, "T1w", ".nii.gz"))
    write_sidecars(image.in_site, out)
    return {
        "image": image.path,
        "mask": str(Path(image.site, mask_name)),
        "session": image.session or None,
        "bids_run": image.bids_run or None,
        "brain_voxels": voxels,
        "voxel_volume_mm3": voxel_volume_mm3,
    }
