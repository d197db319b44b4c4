"""Mosaics: one picture per brain mask, its outline over the T1w image, for a look at every result.

They are drawn by :mod:`neurotier.pages.report.mosaic`, which loads libraries that a page does without.
"""

from __future__ import annotations

import os
import shutil
from collections.abc import Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass, replace
from pathlib import Path, PurePosixPath

from PIL import Image

from neurotier.core.errors import InputError, one_line
from neurotier.core.files import read_json, remove_whatever
from neurotier.core.foreign import file_in_dataset
from neurotier.core.places import Places
from neurotier.core.quantities import cm3
from neurotier.core.tables import Row
from neurotier.dataset.bids import strip_extension

LAST_CHUNK = b"\0\0\0\0IEND\xaeB`\x82"
REASON_KEY = "neurotier-reason"


@dataclass(frozen=True)
class Picture:
    """One mosaic to draw: from an image and its mask, to ``out``."""

    t1w: Path
    mask: Path
    out: Path
    title: str

    @classmethod
    def of(cls, row: Row, places: Places) -> Picture:
        """The picture of a row of ``group.tsv``; where the image was dropped from its tier, of the extracted brain."""
        mask = places.derivatives / row["mask"]
        t1w = head_of(row["image"], places)
        name = mosaic_name(row["image"])
        title = f"{name.with_suffix('')}: {cm3(row['brain_volume_mm3'])}"
        if t1w is None:
            t1w = mask.with_name(mask.name.replace("_mask.nii", "_T1w.nii"))
            title += " (brain only: the head was dropped)"
        return cls(t1w, mask, places.mosaics / name, title)


def head_of(image: str, places: Places) -> Path | None:
    """Where an image of the dataset lies, if it is there and no link leads out of the dataset to it."""
    dataset = Path(read_json(places.index / "dataset.json")["path"])
    settings = read_json(places.settings_file) if places.settings_file.exists() else {}
    try:
        folder, below = file_in_dataset(dataset, image, settings.get("dataset", {}).get("links_to", []))
    except InputError:
        return None
    return folder / below if (folder / below).exists() else None


def mosaic_name(image: str) -> PurePosixPath:
    """Where an image's mosaic lies below the folder of mosaics.

    >>> str(mosaic_name("NYU_2/sub-01/ses-1/anat/sub-01_ses-1_T1w.nii.gz"))
    'NYU_2/sub-01_ses-1_T1w.png'
    """
    pure = PurePosixPath(image)
    parts = pure.parent.parts
    subject = next((place for place, part in enumerate(parts) if part.startswith("sub-")), 0)
    return PurePosixPath(*parts[:subject], f"{strip_extension(pure.name)}.png")


def draw_mosaics(pictures: Sequence[Picture], folder: Path, workers: int, drawn: Path) -> dict[Path, str]:
    """Bring a folder of mosaics up to date with a list of images.

    Pictures newer than their mask stay; pictures of images that are no longer listed go. What cannot be drawn
    gets a picture that says why, and is tried again next time.

    A picture that was drawn before is the same file in both folders, under two names.

    Parameters
    ----------
    pictures
        All pictures that shall be there.
    folder
        Where they lie; every other PNG below it is removed.
    workers
        Processes that draw at the same time.
    drawn
        Where pictures stay if the folder is emptied.

    Returns
    -------
    dict
        Path of each placeholder to the reason.
    """
    folder.mkdir(parents=True, exist_ok=True)  # there is none to draw with the tool noop
    kept = {picture.out: drawn / picture.out.relative_to(folder) for picture in pictures}
    for path in folder.rglob("*.png"):
        if path not in kept:
            path.unlink()
    wanted = set(kept.values())
    for path in drawn.rglob("*.png"):
        if path not in wanted:
            path.unlink()
    for picture in pictures:
        if not is_current(picture) and is_current(replace(picture, out=kept[picture.out])):
            give_name(kept[picture.out], picture.out)
    stale = [picture for picture in pictures if not is_current(picture)]
    reasons = draw_all(stale, workers)
    for picture in pictures:
        if picture.out not in reasons and not is_current(replace(picture, out=kept[picture.out])):
            give_name(picture.out, kept[picture.out])
    return reasons


def give_name(file: Path, name: Path) -> None:
    """Give a file a second name, or have a copy of it there, where file systems have no hard links."""
    name.parent.mkdir(parents=True, exist_ok=True)
    remove_whatever(name)
    try:
        os.link(file, name)
    except OSError:
        shutil.copy2(file, name)


def draw_all(stale: Sequence[Picture], workers: int) -> dict[Path, str]:
    """Draw pictures; path of each placeholder to the reason."""
    if not stale:
        return {}
    if workers <= 1 or len(stale) == 1:
        reasons = [draw_or_explain(picture) for picture in stale]
    else:
        with ProcessPoolExecutor(min(workers, len(stale))) as pool:
            reasons = list(pool.map(draw_or_explain, stale, chunksize=4))
    return {picture.out: reason for picture, reason in zip(stale, reasons, strict=True) if reason}


def is_current(picture: Picture) -> bool:
    """Whether the picture is there and whole, is newer than its mask, and is not a placeholder."""
    try:
        newer = picture.out.stat().st_mtime_ns >= picture.mask.stat().st_mtime_ns
        return newer and is_whole(picture.out) and not placeholder_reason(picture.out)
    except OSError:
        return False


def is_whole(path: Path) -> bool:
    """Whether a PNG has its last chunk: both names of a file that was cut short tell of the same bytes."""
    with path.open("rb") as file:
        file.seek(max(0, path.stat().st_size - len(LAST_CHUNK)))
        return file.read() == LAST_CHUNK


def placeholder_reason(path: Path) -> str:
    """Why a picture is a placeholder; empty if it is a mosaic."""
    try:
        with Image.open(path) as picture:
            return str(picture.info.get(REASON_KEY, ""))
    except (OSError, ValueError) as error:
        return f"the picture cannot be read: {error}"


def draw_or_explain(picture: Picture) -> str:
    """Draw one picture, or a placeholder; returns the reason, or nothing."""
    from neurotier.pages.report.mosaic import draw_mosaic, draw_placeholder

    try:
        draw_mosaic(picture.t1w, picture.mask, picture.out, picture.title)
    except Exception as error:  # whatever is wrong with one image must not cost the pictures of the others
        reason = one_line(str(error) or type(error).__name__)
        draw_placeholder(picture.out, picture.title, reason)
        return reason
    return ""
