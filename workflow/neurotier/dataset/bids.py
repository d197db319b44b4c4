"""BIDS names: the entities in a file name, and the names of its derivatives.

Entities are read strictly: every part of a name must be ``key-label`` with a label of letters, digits and ``+`` (since
BIDS 1.11), and the name must agree with the folders it lies in. A file that does not pass is reported and not
processed, so that no later step has to guard against unusual names.
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path, PurePosixPath
from typing import NamedTuple

from neurotier.core.errors import InputError

EXTENSIONS = (".nii.gz", ".nii")
LABEL = "[A-Za-z0-9+]{1,200}"
"""Regular expression of a label, no longer than file names allow."""

SITE_FOLDER = r"(?:(?!sub-)[^/]+/)*"
"""Regular expression of a site's folder in a path: ``SITE/``, or empty."""

SITE = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_.+-]*(?:/[A-Za-z0-9_][A-Za-z0-9_.+-]*)*")
PAIR = re.compile(rf"([a-z]+)-({LABEL})")

Reasons = dict[str, str]
"""Parts of a dataset that are left out or unavailable, and why."""


class Image(NamedTuple):
    """One T1w image of the dataset.

    Attributes
    ----------
    participant
        The participant's folder: ``[SITE/]sub-LABEL``.
    site
        Path of the sub-dataset, empty if the dataset has none.
    label
        Participant label without ``sub-``.
    session, bids_run
        Labels of ``ses-`` and ``run-`` without prefix, empty if the name has none.
    path
        Path of the image, relative to the dataset.
    size_bytes
        Size of the content, from the annex key or the file; ``None`` if unknown.
    content
        Version of the content: annex key, or size and modification time.
    """

    participant: str
    site: str
    label: str
    session: str
    bids_run: str
    path: str
    size_bytes: int | None = None
    content: str = ""

    @property
    def in_site(self) -> PurePosixPath:
        """Path of the image, relative to its site."""
        return PurePosixPath(self.path).relative_to(self.site)


def size_of(images: Iterable[Image]) -> int:
    """Total size of some images, bytes, as far as known."""
    return sum(image.size_bytes or 0 for image in images)


def entities(file_name: str) -> dict[str, str]:
    """The entities of a BIDS image name, in order.

    Raises
    ------
    InputError
        If a part of the name is not ``key-label`` with a label of letters, digits and ``+``.

    Examples
    --------
    >>> entities("sub-01_ses-1_run-1_T1w.nii.gz")
    {'sub': '01', 'ses': '1', 'run': '1'}
    >>> entities("sub-01_ses-$(id)_T1w.nii.gz")
    Traceback (most recent call last):
    ...
    neurotier.core.errors.InputError: ...
    """
    labels = {}
    for part in strip_extension(file_name).split("_")[:-1]:
        pair = PAIR.fullmatch(part)
        if pair is None or pair[1] in labels:
            raise InputError(f"{part!r} is not a BIDS entity (key-label, letters, digits and +)", repr(file_name))
        labels[pair[1]] = pair[2]
    return labels


def read_image(path: str, site: str) -> Image:
    """Read a T1w image's path below the dataset, strictly.

    Raises
    ------
    InputError
        If the name is not BIDS, disagrees with the folders, or is that of a derivative or of a part other than the
        magnitude.

    Examples
    --------
    >>> image = read_image("NYU/sub-01/ses-1/anat/sub-01_ses-1_run-2_T1w.nii.gz", "NYU")
    >>> image.participant, image.session, image.bids_run
    ('NYU/sub-01', '1', '2')
    """
    pure = PurePosixPath(path)
    labels = entities(pure.name)
    if next(iter(labels), "") != "sub":
        raise InputError("the name does not begin with sub-LABEL", repr(path))
    if "desc" in labels:
        raise InputError("the entity desc- is of derivatives, not of raw data", repr(path))
    if (part := labels.get("part", "mag")) != "mag":
        raise InputError(f"part-{part} is not a magnitude image; only those are analysed", repr(path))
    session = [f"ses-{labels['ses']}"] if "ses" in labels else []
    expected = PurePosixPath(site, f"sub-{labels['sub']}", *session, "anat", pure.name)
    if pure != expected:
        raise InputError(f"the file belongs in {str(expected.parent)!r} by its name", repr(path))
    return Image(
        participant=str(PurePosixPath(site, f"sub-{labels['sub']}")),
        site=site,
        label=labels["sub"],
        session=labels.get("ses", ""),
        bids_run=labels.get("run", ""),
        path=path,
    )


def derivative_name(source: str | PurePosixPath, suffix: str, extension: str) -> PurePosixPath:
    """Path of a derivative of an image: all its entities, and ``desc-brain``.

    >>> str(derivative_name("sub-01/ses-1/anat/sub-01_ses-1_acq-mprage_T1w.nii.gz", "mask", ".nii.gz"))
    'sub-01/ses-1/anat/sub-01_ses-1_acq-mprage_desc-brain_mask.nii.gz'
    """
    pure = PurePosixPath(source)
    stem = strip_extension(pure.name).rsplit("_", 1)[0]
    return pure.with_name(f"{stem}_desc-brain_{suffix}{extension}")


def strip_extension(file_name: str) -> str:
    """A NIfTI file's name without its extension."""
    if not file_name.endswith(EXTENSIONS):
        raise InputError("not a NIfTI name (.nii or .nii.gz)", repr(file_name))
    return file_name.removesuffix(".gz").removesuffix(".nii")


def is_bids(folder: Path) -> bool:
    """Whether a folder looks like a BIDS dataset: it has a description or participants.

    Only names count, since the description may be a link whose content is not present.
    """
    try:
        with os.scandir(folder) as entries:
            return any(
                entry.name == "dataset_description.json"
                or (entry.name.startswith("sub-") and (entry.is_dir(follow_symlinks=False) or entry.is_symlink()))
                for entry in entries
            )
    except OSError:
        return False


def selector(wanted: Sequence[str | int], prefix: str) -> Callable[[str], bool]:
    """A function that returns whether a filter selects a label. A filter may list thousands.

    A label with a minus before it is left out. If the filter names no label without a minus, all others are selected.

    >>> selector(["ses-1"], "ses")("1"), selector(["1"], "run")("01"), selector(["1"], "sub")("01")
    (True, True, False)
    >>> selector(["²"], "run")("2")
    False
    >>> [name for name in ("01", "02", "03") if selector(["-sub-02"], "sub")(name)]
    ['01', '03']
    >>> [name for name in ("01", "02", "03") if selector(["01", "02", "-02"], "sub")(name)]
    ['01']
    """
    texts = [str(label) for label in wanted]
    left_out = {plain_label(text[1:], prefix) for text in texts if text.startswith("-")}
    named = {plain_label(text, prefix) for text in texts if not text.startswith("-")}
    return lambda label: (plain := plain_label(label, prefix)) not in left_out and (not named or plain in named)


def plain_label(name: str, prefix: str) -> str:
    """A label as written by a user or in a file name, for comparison. BIDS runs are numbers: 1 and 01 are the same."""
    bare = name.removeprefix(f"{prefix}-")
    return str(int(bare)) if prefix == "run" and bare.isdecimal() else bare
