"""The index: which T1w images the dataset holds, whose they are, and what is left out and why.

pybids reads each site's tree once, without opening a sidecar and without entering the folders of other data
types; names are then read strictly (:mod:`neurotier.bids`). Contents need not be present.
"""

from __future__ import annotations

import csv
import re
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from typing import Any

from neurotier.bids import EXTENSIONS, SITE, Image, derivative_name, read_image, without_prefix
from neurotier.contents import content_size_bytes, content_version
from neurotier.errors import InputError
from neurotier.settings import DatasetSettings, suggestion
from neurotier.source import Dataset, is_bids

IGNORE = [
    re.compile(r"^/(code|derivatives|sourcedata|stimuli|phenotype)(/|$)"),
    re.compile(r"/(func|dwi|fmap|perf|eeg|meg|ieeg|beh|pet|micr|nirs|motion|mrs)(/|$)"),
    re.compile(r"/\."),
]
"""Folders that cannot hold T1w images; pybids walks them for nothing."""


@dataclass(frozen=True)
class Skipped:
    """Something in the dataset that is not analysed, and why."""

    item: str
    reason: str


@dataclass(frozen=True)
class Index:
    """What a dataset holds, after selection; sorted by path."""

    images: list[Image]
    skipped: list[Skipped]

    def rows(self) -> list[dict[str, Any]]:
        """Rows of ``images.tsv``."""
        return [
            {
                "participant": image.participant,
                "site": image.site or None,
                "label": image.label,
                "session": image.session or None,
                "run": image.run or None,
                "path": image.path,
                "size_bytes": image.size_bytes,
                "content": image.content,
            }
            for image in self.images
        ]


def image_of(row: dict[str, Any]) -> Image:
    """The image of a row of ``images.tsv``."""
    return Image(
        participant=row["participant"],
        site=row["site"] or "",
        label=row["label"],
        session=row["session"] or "",
        run=row["run"] or "",
        path=row["path"],
        size_bytes=row["size_bytes"],
        content=row["content"] or "",
    )


def index_dataset(dataset: Dataset, settings: DatasetSettings) -> Index:
    """Index all sites of a dataset and apply the selection.

    Raises
    ------
    InputError
        If the dataset is not BIDS, something asked for does not exist, or nothing is left to analyse.
    """
    images: list[Image] = []
    skipped: list[Skipped] = []
    everyone: set[str] = set()
    for site in dataset.sites:
        root = dataset.path / site
        if not is_bids(root):
            if not site or settings.sites:
                raise InputError(
                    "is not a BIDS dataset: no dataset_description.json and no sub-* folder",
                    where=f"{site or dataset.source!r}",
                    fix="correct dataset.source or dataset.sites",
                )
            deeper = (root / ".gitmodules").exists()
            more = "; it holds sub-datasets: name it as dataset.source to analyse them" if deeper else ""
            skipped.append(Skipped(site, f"not a BIDS dataset{more}"))
            continue
        if site and not SITE.fullmatch(site):
            skipped.append(Skipped(repr(site), "the sub-dataset's name has characters that BIDS paths do not have"))
            continue
        found, refused = index_site(dataset.path, site)
        members = participants_of(root, site)
        everyone |= set(members) | {image.participant for image in found}
        images += found
        skipped += refused
        skipped += [
            Skipped(member, reason)
            for member, reason in without_images(members, found).items()
            if selects(settings.participants, member.rsplit("/", 1)[-1].removeprefix("sub-"), "sub")
        ]
    if not images:
        said = f"; skipped {skipped[0].item}: {skipped[0].reason}" if skipped else ""
        raise InputError(f"holds no T1w image{said}", where=f"dataset.source {dataset.source!r}")
    selected = select(images, settings, everyone, dataset.source)
    return Index(sorted(selected, key=lambda image: image.path), sorted(skipped, key=lambda entry: entry.item))


def index_site(dataset: Path, site: str) -> tuple[list[Image], list[Skipped]]:
    """T1w images of one site, and files that look like one but have no BIDS name."""
    from bids.layout import BIDSLayout, BIDSLayoutIndexer

    indexer = BIDSLayoutIndexer(validate=False, index_metadata=False, ignore=IGNORE)
    layout = BIDSLayout(dataset / site, validate=False, indexer=indexer)
    images: list[Image] = []
    skipped: list[Skipped] = []
    taken: set[PurePosixPath] = set()
    files = sorted(layout.get(suffix="T1w", extension=list(EXTENSIONS), return_type="filename"))
    for file in files:
        path = Path(file).relative_to(dataset).as_posix()
        try:
            image = read_image(path, site, content_size_bytes(Path(file)), content_version(Path(file)))
            mask = derivative_name(path, "mask", ".nii.gz")
            if mask in taken:
                raise InputError("the same image is there with another extension")
            taken.add(mask)
            images.append(image)
        except InputError as error:
            skipped.append(Skipped(repr(path), error.what))
    unseen = sorted(t1w_files(dataset / site) - {Path(file) for file in files})
    reason = "pybids does not recognise the name"
    skipped += [Skipped(repr(file.relative_to(dataset).as_posix()), reason) for file in unseen]
    return images, skipped


def t1w_files(root: Path) -> set[Path]:
    """Everything in an ``anat`` folder that ends like a T1w image, whatever its name: nothing is lost unsaid."""
    patterns = [f"{folders}/anat/*_T1w{extension}" for folders in ("sub-*", "sub-*/*") for extension in EXTENSIONS]
    return {file for pattern in patterns for file in root.glob(pattern)}


def participants_of(root: Path, site: str) -> dict[str, str]:
    """Everyone a site speaks of: participant's folder to where it is mentioned (``folder`` or ``table``)."""
    prefix = f"{site}/" if site else ""
    members = {}
    table = root / "participants.tsv"
    if table.is_file():
        with table.open(newline="", errors="replace") as file:
            for row in csv.DictReader(file, delimiter="\t"):
                label = (row.get("participant_id") or "").strip()
                if label:
                    members[f"{prefix}sub-{without_prefix(label, 'sub')}"] = "table"
    for folder in root.glob("sub-*"):
        if folder.is_dir():
            members[f"{prefix}{folder.name}"] = "folder"
    return members


def without_images(members: dict[str, str], images: Sequence[Image]) -> dict[str, str]:
    """Participants of whom no T1w image was found, and how that came to be."""
    reasons = {"table": "in participants.tsv, but there is no folder", "folder": "no T1w image"}
    with_images = {image.participant for image in images}
    return {member: reasons[where] for member, where in members.items() if member not in with_images}


def select(images: Sequence[Image], settings: DatasetSettings, everyone: set[str], source: str) -> list[Image]:
    """The images that the configuration selects.

    Raises
    ------
    InputError
        If a label asked for does not exist, or nothing is left.
    """
    labels = sorted({member.rsplit("/", 1)[-1].removeprefix("sub-") for member in everyone})
    check_known("participants", "sub", settings.participants, labels)
    check_known("sessions", "ses", settings.sessions, sorted({image.session for image in images} - {""}))
    check_known("runs", "run", settings.runs, sorted({image.run for image in images} - {""}))
    left = [
        image
        for image in images
        if selects(settings.participants, image.label, "sub")
        and selects(settings.sessions, image.session, "ses")
        and selects(settings.runs, image.run, "run")
    ]
    if not left:
        raise InputError(
            "no T1w image is left to analyse", where=f"dataset.source {source!r}", fix="see the filters under dataset"
        )
    return left


def selects(wanted: Sequence[str | int], label: str, prefix: str) -> bool:
    """Whether a filter lets a label through; an empty filter lets everything through.

    >>> selects(["ses-1"], "1", "ses"), selects(["1"], "01", "run"), selects(["1"], "01", "sub")
    (True, True, False)
    """
    return not wanted or any(same_label(str(name), label, prefix) for name in wanted)


def same_label(name: str, label: str, prefix: str) -> bool:
    """Whether a name as the user wrote it means a label; runs are numbers in BIDS, so 1 and 01 are the same."""
    bare = without_prefix(name, prefix)
    if prefix == "run" and bare.isdigit() and label.isdigit():
        return int(bare) == int(label)
    return bare == label


def check_known(key: str, prefix: str, wanted: Sequence[str | int], known: Sequence[str]) -> None:
    """Raise :class:`InputError` for a label asked for that no image or participant has."""
    for name in map(str, wanted):
        if not any(same_label(name, label, prefix) for label in known):
            close = suggestion(without_prefix(name, prefix), list(known))
            raise InputError(
                f"the dataset has no {prefix}-{without_prefix(name, prefix)}{close}",
                where=f"dataset.{key}",
                fix=f"it has {len(known)}: {', '.join(known[:5])}{', ...' if len(known) > 5 else ''}",
            )
