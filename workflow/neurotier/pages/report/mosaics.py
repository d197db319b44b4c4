"""Mosaics: one picture per brain mask, with its outline over the T1w image, so that every result can be looked at.

They are drawn by :mod:`neurotier.pages.report.mosaic`, which loads libraries that a page does not need.
"""

from __future__ import annotations

import base64
import os
import pickle
import shutil
from collections.abc import Callable, Iterable, Sequence
from functools import partial
from pathlib import Path, PurePosixPath
from typing import NamedTuple

from neurotier.core.errors import KilledError, one_line
from neurotier.core.files import FULL, remove_path
from neurotier.core.places import Places
from neurotier.core.processes import fork_process, terminate_forked
from neurotier.core.quantities import cm3
from neurotier.core.settings import Settings
from neurotier.core.tables import Row
from neurotier.dataset.bids import strip_extension
from neurotier.dataset.contents import is_present
from neurotier.run.jobs import load_dataset


class Picture(NamedTuple):
    """A mosaic to draw from an image and its mask; ``name`` is its path in the folder of mosaics."""

    t1w: Path
    mask: Path
    name: PurePosixPath
    title: str


def pictures_of(rows: Iterable[Row], places: Places, settings: Settings) -> list[Picture]:
    """The pictures for rows of ``group.tsv``; of the extracted brain if an image is missing on its tier, or incomplete.

    An image that a link out of the dataset leads to counts as missing, unless the settings allow the link's target.
    """
    dataset, pictures = load_dataset(places).path, []
    for row in rows:
        mask, name = places.derivatives / row["mask"], mosaic_name(row["image"])
        if settings.is_app:  # the group level of an app collects what each participant has in its own folder
            in_site = PurePosixPath(row["mask"]).relative_to(row["site"] or "")
            mask = places.analysed(row["participant"], by_app=True) / in_site
        title = f"{name.with_suffix('')}: {cm3(row['brain_volume_mm3'])}"
        t1w = dataset / row["image"]
        if not is_present(dataset, row["image"], settings.dataset.links_to):
            t1w = mask.with_name(mask.name.replace("_mask.nii", "_T1w.nii"))
            title += " (brain only: the head is not here)"
        pictures.append(Picture(t1w, mask, name, title))
    return pictures


def draw_all(rows: Sequence[Row], places: Places, settings: Settings, workers: int) -> list[str]:
    """Draw the mosaics of rows; if some fail, try again, since an image may be dropped before it is drawn."""
    lines: list[str] = []
    for _ in range(2):
        lines = draw_mosaics(pictures_of(rows, places, settings), places.mosaics, workers, places.drawn)
        if not lines:
            break
    return lines


def mosaic_name(image: str) -> PurePosixPath:
    """The path of an image's mosaic in the folder of mosaics.

    >>> str(mosaic_name("NYU_2/sub-01/ses-1/anat/sub-01_ses-1_T1w.nii.gz"))
    'NYU_2/sub-01_ses-1_T1w.png'
    """
    pure = PurePosixPath(image)
    parts = pure.parent.parts
    subject = next((place for place, part in enumerate(parts) if part.startswith("sub-")), 0)
    return PurePosixPath(*parts[:subject], f"{strip_extension(pure.name)}.png")


def draw_mosaics(pictures: Sequence[Picture], folder: Path, workers: int, drawn: Path) -> list[str]:
    """Bring a folder of mosaics up to date with a list of pictures; return why some could not be drawn, a line each.

    Pictures newer than their mask stay; pictures that are no longer listed are removed. A picture that cannot be drawn
    is tried again next time.

    Parameters
    ----------
    pictures
        All pictures that the folder should have.
    folder
        The folder; everything else in it is removed.
    workers
        Number of processes that draw at the same time.
    drawn
        Folder in which they are drawn, and kept when Snakemake empties ``folder``.

    Raises
    ------
    KilledError
        If a process that draws was killed.
    OSError
        If there is no room for a picture.
    """
    stale = [picture for picture in pictures if not is_current(picture.mask, drawn / picture.name)]
    draw = partial(why_not_drawn, drawn=drawn)
    reasons = draw_in_parallel(draw, stale, workers) if workers > 1 else list(map(draw, stale))
    listed = {drawn / picture.name for picture in pictures}
    remove_path(folder)
    folder.mkdir(parents=True)  # even if there is no picture, as with the tool noop
    for path in [*drawn.rglob("*.png")]:
        if path not in listed:
            remove_path(path)
            continue
        shown = folder / path.relative_to(drawn)
        shown.parent.mkdir(parents=True, exist_ok=True)
        try:
            os.link(path, shown)
        except OSError:  # a file system without hard links
            shutil.copy2(path, shown)
    return [f"no mosaic {picture.name}: {why}" for picture, why in zip(stale, reasons, strict=True) if why]


def draw_in_parallel(draw: Callable[[Picture], str], stale: Sequence[Picture], workers: int) -> list[str]:
    """Draw pictures in forked copies of this process; return the results, and raise errors as :func:`draw_mosaics`.

    ``ProcessPoolExecutor`` is not used: if one of its processes is killed, it may hang (5 of 295 times, Python 3.11.7).
    """
    reasons, copies = [""] * len(stale), []

    def work(first: int, writing: int) -> int:
        try:
            outcome: object = list(map(draw, stale[first::workers]))
        except OSError as error:
            outcome = error
        with os.fdopen(writing, "wb") as file:
            pickle.dump(outcome, file)
        return 0

    try:
        for first in range(min(workers, len(stale))):
            reading, writing = os.pipe()
            copies.append((fork_process(partial(work, first, writing)), os.fdopen(reading, "rb")))
            os.close(writing)
        for first, (_, said) in enumerate(copies):
            if not (content := said.read()):
                problem, fix = "a process that drew them was killed (out of memory?)", "start the same command again"
                raise KilledError(problem, "pictures of brain masks", fix)
            outcome = pickle.loads(content)  # noqa: S301  # a copy of this process wrote it
            if isinstance(outcome, OSError):
                raise outcome
            reasons[first::workers] = outcome
    finally:
        terminate_forked([pid for pid, _ in copies])
    return reasons


def is_current(mask: Path, picture: Path) -> bool:
    """Whether a picture exists and is newer than its mask."""
    try:
        return picture.is_file() and picture.stat().st_mtime_ns >= mask.stat().st_mtime_ns
    except OSError:
        return False


def why_not_drawn(picture: Picture, drawn: Path) -> str:
    """Draw one picture; return why it cannot be drawn, or an empty string.

    Raises
    ------
    OSError
        If there is no room for it, which must not be mistaken for a problem of the image.
    """
    from neurotier.pages.report.mosaic import draw_mosaic

    out = drawn / picture.name
    if out.is_dir():
        remove_path(out)
    try:
        draw_mosaic(picture.t1w, picture.mask, out, picture.title)
    except Exception as error:  # a problem of one image must not prevent the pictures of the others
        out.unlink(missing_ok=True)  # it may be the picture of an earlier mask
        if isinstance(error, OSError) and error.errno in FULL:
            raise OSError(error.errno, error.strerror, str(out)) from None
        return one_line(str(error) or type(error).__name__)
    return ""


def embedded(path: Path) -> str:
    """A PNG as a data URL."""
    return f"data:image/png;base64,{base64.b64encode(path.read_bytes()).decode()}"
