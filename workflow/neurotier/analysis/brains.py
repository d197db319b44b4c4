"""The analysis of one participant's images on the work tier, by a tool on the host or in a container."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from neurotier.analysis.derivatives import write_sidecars
from neurotier.analysis.in_container import extract_all
from neurotier.analysis.staging import remove_counted
from neurotier.analysis.tool import Pair, Tool
from neurotier.analysis.tools import make_tool
from neurotier.containers.store import PlacedImage
from neurotier.core.errors import ToolError
from neurotier.core.settings import Settings
from neurotier.core.work_folders import IN, OUT, SCRATCH
from neurotier.dataset.bids import Image, derivative_name
from neurotier.meter.folders import Removal
from neurotier.meter.usage import Usage


@dataclass(frozen=True)
class Analysed:
    """The outcome for one participant: a row per brain mask, the cost of starting containers, calls of an app, and what
    the tool had left in its scratch folders, which are removed."""

    rows: list[dict[str, Any]]
    container_start: Usage | None = None
    calls: list[dict[str, Any]] | None = None
    removal: Removal = field(default_factory=Removal)


def analyze_images(
    images: list[Image], folder: Path, settings: Settings, log: Path, placed: PlacedImage | None, activity: str = ""
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
    activity
        URI that sidecars refer to; empty if they refer to none.

    Raises
    ------
    InputError, ToolError, ContainerError
        If an image cannot be analysed, or the container does not start.
    """
    tool, removal, start = make_tool(settings.tool), Removal(), None
    if placed is None:
        extracted: Iterable[Pair] = on_host(tool, images, folder, log, removal)
    else:
        extracted, start = extract_all(tool, placed, settings.containers, images, folder, log)
        remove_counted(folder / SCRATCH, removal)
    rows = [
        save(image, head, mask, folder / OUT, activity)
        for image, (head, mask) in zip(images, extracted, strict=True)
        if mask is not None
    ]
    return Analysed(rows, start, removal=removal)


def on_host(tool: Tool, images: list[Image], folder: Path, log: Path, removal: Removal) -> Iterator[Pair]:
    """Head and mask of each image in turn, by a tool on the host."""
    for number, image in enumerate(images):
        staged, scratch = folder / IN / image.path, folder / f"{SCRATCH}-{number}"
        scratch.mkdir()
        os.chdir(scratch)  # temporary files of the tool stay on the work tier
        head = tool.checked_head(staged, image.path)
        mask = tool.extract(head, staged, scratch, log, image.path)
        os.chdir(folder)
        remove_counted(scratch, removal)
        yield head, mask


def save(image: Image, head: Any, mask: Any, out: Path, activity: str) -> dict[str, Any]:
    """Write the derivatives of one image; its row for the group stage."""
    from neurotier.analysis.images import write_brain, write_mask

    mask_name = derivative_name(image.in_site, "mask", ".nii.gz")
    measured = write_mask(mask, head, out / mask_name)
    write_brain(mask, head, out / derivative_name(image.in_site, "T1w", ".nii.gz"))
    write_sidecars(image.in_site, out, activity)
    return mask_row(image, *measured)


def masks_of_app(images: Iterable[Image], out: Path, log: Path) -> list[dict[str, Any]]:
    """Rows for the group stage of the masks that an app has written under the names that they have here, as fMRIPrep
    does; the log says which of them cannot be read.
    """
    from neurotier.analysis.images import measure_mask

    rows = []
    for image in images:
        if image.in_site.name.split(".")[0].endswith("_T1w"):
            try:
                measured = measure_mask(out, str(derivative_name(image.in_site, "mask", ".nii.gz")))
                rows.append(mask_row(image, *measured))
            except FileNotFoundError:
                continue
            except ToolError as error:
                tell(log, [f"not in the group table: {error}"])
    return rows


def tell(log: Path, lines: Iterable[str]) -> None:
    """Add lines of neurotier's own to a log."""
    with log.open("a") as file:
        file.writelines(f"neurotier: {line}\n" for line in lines)


def mask_row(image: Image, voxels: int, voxel_volume_mm3: float) -> dict[str, Any]:
    """The row of a mask for the group stage."""
    return {
        "image": image.path,
        "mask": str(Path(image.site, derivative_name(image.in_site, "mask", ".nii.gz"))),
        "session": image.session or None,
        "bids_run": image.bids_run or None,
        "brain_voxels": voxels,
        "voxel_volume_mm3": voxel_volume_mm3,
    }
