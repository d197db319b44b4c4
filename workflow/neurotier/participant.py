"""The participant job: one process tree that analyses all images of one participant.

Phases, each metered by itself: ``stage_in`` copies the images from the dataset tier to a private folder on the
work tier, ``compute`` checks them and runs the tool there, ``stage_out`` copies the derivatives to the results
tier, where they appear by one rename. A participant's derivatives are all there or none is.
"""

from __future__ import annotations

import errno
import os
import shutil
import socket
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, TypeVar

import humanfriendly

from neurotier.bids import Image, derivative_name
from neurotier.errors import InputError, NeurotierError, SourceError, TierError, ToolError
from neurotier.files import write_json
from neurotier.meter import Measured, measure_function
from neurotier.places import Places
from neurotier.settings import Settings
from neurotier.tiers import Tier, tiers_of
from neurotier.work import work_folder

T = TypeVar("T")

WORK_FACTOR = 3.0
"""Work space per byte of compressed input: the copy, the brain (at most as large), the mask, a tool's own files."""

WORK_MARGIN_BYTES = 1_000_000


@dataclass(frozen=True)
class Job:
    """What a participant job is given."""

    participant: str
    run: str
    images: list[Image]
    dataset: Path
    settings: Settings
    tool_version: str
    log: Path


def work_bytes(images: list[Image]) -> int:
    """Room that a participant needs on the work tier at the same time, bytes (an estimate from above)."""
    return WORK_MARGIN_BYTES + int(WORK_FACTOR * sum(image.size_bytes or 0 for image in images))


def run_participant(job: Job) -> None:
    """Analyse one participant; publish derivatives and record, or raise and publish nothing.

    Raises
    ------
    NeurotierError
        With the reason, naming image, tier or tool.
    """
    places, tiers = Places.from_settings(job.settings), tiers_of(job.settings)
    work_tier = tiers["work"]
    needed_bytes = work_bytes(job.images)
    check_room(work_tier, needed_bytes)
    phases: list[dict[str, Any]] = []

    def phase(name: str, tier: Tier, function: Callable[[Path], T]) -> T:
        with naming_full_tier(tier, needed_bytes):
            value, row = run_phase(name, lambda: function(folder))
        phases.append(row)
        return value

    with (
        naming_full_tier(work_tier, needed_bytes),
        work_folder(places.work_of(job.participant), places.identity) as folder,
    ):
        staged_in = phase("stage_in", work_tier, lambda folder: stage_in(job, folder))
        phases[-1]["staged_bytes"] = staged_in
        images = phase("compute", work_tier, lambda folder: compute(job, folder))
        staged_out = phase("stage_out", tiers["results"], lambda folder: stage_out(job, folder, places))
        phases[-1]["staged_bytes"] = staged_out
    record = {
        "participant": job.participant,
        "run": job.run,
        "host": socket.gethostname(),
        "tool": job.settings.tool.name,
        "tool_version": job.tool_version,
        "work_tier": work_tier.name,
        "phases": phases,
        "images": images,
    }
    with naming_full_tier(tiers["results"], needed_bytes):
        write_json(places.record(job.participant), record)


def run_phase(name: str, function: Callable[[], T]) -> tuple[T, dict[str, Any]]:
    """Run and measure one phase; its value and its row of the record."""
    measured: Measured[T] = measure_function(function)
    if isinstance(measured.error, ChildProcessError):
        raise ToolError(f"{measured.error} (out of memory?)", where=f"phase {name}")
    if measured.error is not None:
        raise measured.error
    row = {"phase": name, **asdict(measured.usage), "staged_bytes": None}
    return measured.value, row  # type: ignore[return-value]  # no error: the value is the function's


def stage_in(job: Job, folder: Path) -> int:
    """Copy the participant's images to the work tier; bytes copied."""
    copied = 0
    for image in job.images:
        source, target = job.dataset / image.path, folder / "in" / image.path
        target.parent.mkdir(parents=True, exist_ok=True)
        try:
            shutil.copyfile(source, target)
        except FileNotFoundError:
            raise SourceError(
                "its content is not on the dataset tier",
                where=image.path,
                fix="start the same command again to fetch it",
            ) from None
        except PermissionError as error:
            raise InputError(f"cannot be read: {error.strerror}", where=image.path) from None
        copied += target.stat().st_size
    return copied


def compute(job: Job, folder: Path) -> list[dict[str, Any]]:
    """Extract the brain of every image on the work tier; one row per mask for the group stage."""
    from neurotier.derivatives import write_sidecars  # these load nibabel: only the phase that computes pays for it
    from neurotier.images import load_head, write_brain, write_mask
    from neurotier.tools import make_tool

    tool = make_tool(job.settings.tool)
    rows: list[dict[str, Any]] = []
    for number, image in enumerate(job.images):
        staged = folder / "in" / image.path
        scratch = folder / f"scratch-{number}"
        scratch.mkdir()
        os.chdir(scratch)  # by it, the sweep after a kill knows this process
        head = load_head(staged, image.path)
        mask = tool.extract(head, staged, scratch, job.log, image.path)
        if mask is not None:
            mask_name = derivative_name(image.in_site, "mask", ".nii.gz")
            size = write_mask(mask, head, folder / "out" / mask_name)
            write_brain(mask, head, folder / "out" / derivative_name(image.in_site, "T1w", ".nii.gz"))
            write_sidecars(image.in_site, folder / "out")
            rows.append(
                {
                    "image": image.path,
                    "mask": str(Path(image.site, mask_name)),
                    "session": image.session or None,
                    "run": image.run or None,
                    "brain_voxels": size.voxels,
                    "voxel_volume_mm3": size.voxel_volume_mm3,
                }
            )
        os.chdir(folder)
        shutil.rmtree(scratch)
    return rows


def stage_out(job: Job, folder: Path, places: Places) -> int:
    """Copy the derivatives to the results tier under a hidden name, then rename; bytes copied."""
    final = places.derivatives / job.participant
    hidden = final.with_name(f".{final.name}.partial")
    shutil.rmtree(hidden, ignore_errors=True)
    hidden.mkdir(parents=True)
    try:
        made = folder / "out" / f"sub-{job.images[0].label}"
        copied = 0
        for source in sorted(path for path in made.rglob("*") if path.is_file()):
            target = hidden / source.relative_to(made)
            target.parent.mkdir(parents=True, exist_ok=True)
            shutil.copyfile(source, target)
            copied += target.stat().st_size
        if final.exists():  # of an earlier run whose derivatives are to be replaced
            shutil.rmtree(final)
        hidden.rename(final)
    except BaseException:
        shutil.rmtree(hidden, ignore_errors=True)
        raise
    return copied


def check_room(tier: Tier, needed_bytes: int) -> None:
    """Raise :class:`TierError` if a participant cannot fit on the tier even now."""
    free_bytes = tier.free_bytes()
    if needed_bytes > free_bytes:
        raise TierError(
            f"tier {tier.name!r} has {size(free_bytes)} free at {tier.path}, and about {size(needed_bytes)} are needed",
            fix="free some space, start fewer participants at once, or choose another work tier",
        )


@contextmanager
def naming_full_tier(tier: Tier, needed_bytes: int) -> Iterator[None]:
    """Turn 'no space left' and 'permission denied', ours or a tool's, into errors that name the tier."""
    try:
        yield
    except ToolError as error:
        if tier.free_bytes() > WORK_MARGIN_BYTES and os.strerror(errno.ENOSPC) not in error.what:
            raise
        raise full(tier, needed_bytes) from None
    except NeurotierError:
        raise
    except OSError as error:
        if error.errno in (errno.ENOSPC, errno.EDQUOT):
            raise full(tier, needed_bytes) from None
        if error.errno in (errno.EACCES, errno.EPERM, errno.EROFS):
            raise TierError(f"tier {tier.name!r} is not writable: {error.filename}: {error.strerror}") from None
        raise


def full(tier: Tier, needed_bytes: int) -> TierError:
    """The error for a tier that became full under a participant."""
    return TierError(
        f"tier {tier.name!r} became full: {size(tier.free_bytes())} free at {tier.path}, "
        f"about {size(needed_bytes)} needed by this participant",
        fix="free some space, start fewer participants at once, or choose another tier",
    )


def size(count: int) -> str:
    """A number of bytes for people, in binary units."""
    return str(humanfriendly.format_size(count, binary=True))
