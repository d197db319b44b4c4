"""The index: which T1w images the dataset holds, whose they are, and what is left out and why.

pybids reads each site's tree once, without opening a sidecar and without entering the folders of other data
types; names are then read strictly (:mod:`neurotier.dataset.bids`). Contents need not be present.
"""

from __future__ import annotations

import csv
import os
import re
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from typing import Any

from neurotier.configuration import suggestion
from neurotier.dataset.bids import EXTENSIONS, SITE, Image, derivative_name, read_image, without_prefix
from neurotier.dataset.contents import content_size_bytes, content_version
from neurotier.dataset.source import Dataset, is_bids
from neurotier.errors import InputError
from neurotier.settings import DatasetSettings

IGNORE = [
    re.compile(r"^/(code|derivatives|sourcedata|stimuli|phenotype)(/|$)"),
    re.compile(r"/(func|dwi|fmap|perf|eeg|meg|ieeg|beh|pet|micr|nirs|motion|mrs)(/|$)"),
    re.compile(r"/\."),
]
"""Folders that cannot hold T1w images; pybids walks them for nothing."""


PARTICIPANT_FOLDER = re.compile(r"sub-[A-Za-z0-9]+")
SAFE_PATH = re.compile(r"[A-Za-z0-9_.+/-]+")


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


def index_dataset(dataset: Dataset, settings: DatasetSettings, suffixes: Sequence[str] | None = None) -> Index:
    """Index all sites of a dataset and apply the selection.

    Parameters
    ----------
    dataset, settings
        The dataset, and what is asked of it.
    suffixes
        For a BIDS App, the suffixes of the files it is given (all files if empty); ``None`` for T1w images.

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
        found, refused = index_site(dataset.path, site) if suffixes is None else app_files(dataset.path, site, suffixes)
        members = participants_of(root, site)
        everyone |= set(members) | {image.participant for image in found}
        images += found
        skipped += refused
        skipped += [
            Skipped(member, reason)
            for member, reason in without_images(members, found, suffixes).items()
            if selects(settings.participants, member.rsplit("/", 1)[-1].removeprefix("sub-"), "sub")
        ]
    sites = {image.site for image in images}
    if suffixes is not None and "" in sites and len(sites) > 1:
        raise InputError(
            "holds participants itself and in sub-datasets, whose derivatives an app would lay into each other",
            where=f"dataset.source {dataset.source!r}",
            fix="name the sub-datasets to analyse in dataset.sites",
        )
    if not images:
        said = f"; skipped {skipped[0].item}: {skipped[0].reason}" if skipped else ""
        raise InputError(f"holds no {what(suffixes)}{said}", where=f"dataset.source {dataset.source!r}")
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


def app_files(dataset: Path, site: str, suffixes: Sequence[str]) -> tuple[list[Image], list[Skipped]]:
    """Everything that a BIDS App is given of each participant, sidecars included, and what has no safe name."""
    images: list[Image] = []
    skipped: list[Skipped] = []
    for folder, names, files in os.walk(dataset / site):
        here = Path(folder)
        if here == dataset / site:
            names[:], files = sorted(name for name in names if PARTICIPANT_FOLDER.fullmatch(name)), []
        names[:] = sorted(name for name in names if not name.startswith("."))
        for name in sorted(files):
            path = (here / name).relative_to(dataset).as_posix()
            suffix = name.split(".")[0].rsplit("_", 1)[-1]
            if name.startswith(".") or (suffixes and suffix not in suffixes):
                continue
            if not SAFE_PATH.fullmatch(path):
                skipped.append(Skipped(repr(path), "the name has characters that BIDS paths do not have"))
                continue
            images.append(file_of_participant(dataset, site, path))
    return images, skipped


def file_of_participant(dataset: Path, site: str, path: str) -> Image:
    """A file's row: whose it is by its folders, its session and run by its name as far as that says so."""
    subject, *rest = PurePosixPath(path).relative_to(site).parts if site else PurePosixPath(path).parts
    session = rest[0].removeprefix("ses-") if rest[0].startswith("ses-") and len(rest) > 1 else ""
    run = re.search(r"_run-([A-Za-z0-9]+)", rest[-1])
    file = dataset / path
    return Image(
        participant=str(PurePosixPath(site, subject)),
        site=site,
        label=subject.removeprefix("sub-"),
        session=session,
        run=run[1] if run else "",
        path=path,
        size_bytes=content_size_bytes(file),
        content=content_version(file),
    )


def what(suffixes: Sequence[str] | None) -> str:
    """What is looked for, in words.

    >>> what(None), what([]), what(["T1w", "bold"])
    ('T1w image', 'file', 'T1w or bold file')
    """
    if suffixes is None:
        return "T1w image"
    return f"{' or '.join(suffixes)} file" if suffixes else "file"


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


def without_images(members: dict[str, str], images: Sequence[Image], suffixes: Sequence[str] | None) -> dict[str, str]:
    """Participants of whom no T1w image was found, and how that came to be."""
    reasons = {"table": "in participants.tsv, but there is no folder", "folder": f"no {what(suffixes)}"}
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
            "nothing is left to analyse", where=f"dataset.source {source!r}", fix="see the filters under dataset"
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
