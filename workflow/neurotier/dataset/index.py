"""The index: the T1w images of the dataset by participant, and what is left out, with the reason.

Each site's tree is listed once, without opening files or entering folders of other data types. pybids interprets the
names but does not walk the tree, since it follows links wherever they lead. Names are then read strictly
(:mod:`neurotier.dataset.bids`). Contents need not be present.
"""

from __future__ import annotations

import csv
import io
import os
import re
from collections.abc import Callable, Iterable, Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass, replace
from pathlib import Path, PurePosixPath
from typing import Any

from neurotier.core.errors import InputError, one_line
from neurotier.core.foreign import open_in_dataset
from neurotier.core.settings import DatasetSettings
from neurotier.dataset.bids import EXTENSIONS, LABEL, SITE, Image, read_image, strip_extension
from neurotier.dataset.contents import content_if_readable
from neurotier.dataset.selection import select, selector
from neurotier.dataset.source import Dataset
from neurotier.dataset.tree import is_bids, list_tree

IGNORE = [
    re.compile(r"^/(code|derivatives|sourcedata|stimuli|phenotype)(/|$)"),
    re.compile(r"/(func|dwi|fmap|perf|eeg|meg|ieeg|beh|pet|micr|nirs|motion|mrs)(/|$)"),
    re.compile(r"/\."),
]
"""Folders that cannot hold T1w images."""

PARTICIPANTS_BYTES = 8 << 20
"""Most that participants.tsv may hold."""

PARTICIPANT_FOLDER = re.compile(rf"sub-{LABEL}(/|$)")
T1W_ENDS = tuple(f"T1w{extension}" for extension in EXTENSIONS)
T1W_NAMES = tuple(f"_{end}" for end in T1W_ENDS)
LABEL_SHOWN = 100

MAY_LACK = ("site", "session", "bids_run")
"""What an image may not have: empty, and in tables no value."""

SAFE_PATH = re.compile(r"[A-Za-z0-9_.+/-]+")


@dataclass(frozen=True)
class Skipped:
    """An item of the dataset that is not analysed, and why."""

    item: str
    reason: str


@dataclass(frozen=True)
class Index:
    """The selected images of a dataset and the items left out, sorted by path."""

    images: list[Image]
    skipped: list[Skipped]

    def rows(self) -> list[dict[str, Any]]:
        """Rows of ``images.tsv``."""
        return [{**asdict(image), **{name: getattr(image, name) or None for name in MAY_LACK}} for image in self.images]


def index_dataset(
    dataset: Dataset,
    settings: DatasetSettings,
    suffixes: Sequence[str] | None = None,
    tell: Callable[[str], None] = lambda _: None,
) -> Index:
    """Index all sites of a dataset and apply the selection.

    Parameters
    ----------
    dataset, settings
        The dataset, and section ``dataset`` of the configuration.
    suffixes
        For a BIDS App, the suffixes of the files it is given (all files if empty); ``None`` for T1w images.
    tell
        Takes how far it is, before each site.

    Raises
    ------
    InputError
        If the dataset is not BIDS, something asked for does not exist, or nothing is left to analyse.
    """
    images: list[Image] = []
    skipped = [Skipped(repr(path), f"cannot be reached: {reason}") for path, reason in dataset.unreachable.items()]
    everyone: set[str] = set()
    kind, where = kind_of_file(suffixes), f"dataset.source {dataset.source!r}"
    is_participant = selector(settings.participants, "sub")
    for count, site in enumerate(dataset.sites, start=1):
        tell(f"site {count} of {len(dataset.sites)}, {len(images):,} {kind}s so far")
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
        found, refused = index_site(dataset.path, site, suffixes, settings.links_to, dataset.sites)
        members, unread = participants_of(dataset.path, site, settings.links_to, kind)
        with_images = {image.participant for image in found}
        images += found
        everyone |= with_images | members.keys()
        skipped += refused + unread
        skipped += [
            Skipped(member, reason)
            for member, reason in members.items()
            if member not in with_images and is_participant(member.rsplit("/", 1)[-1].removeprefix("sub-"))
        ]
    sites = {image.site for image in images}
    if suffixes is not None and "" in sites and len(sites) > 1:
        raise InputError(
            "holds participants both itself and in sub-datasets, whose derivatives an app would mix",
            where=where,
            fix="name the sub-datasets to analyse in dataset.sites",
        )
    if not images:
        first_skipped = f"; skipped {skipped[0].item}: {skipped[0].reason}" if skipped else ""
        raise InputError(f"holds no {kind}{first_skipped}", where=where)
    selected = select(images, settings, everyone, dataset, suffixes is not None)
    return Index(sorted(selected, key=lambda image: image.path), sorted(skipped, key=lambda entry: entry.item))


def index_site(
    dataset: Path,
    site: str,
    suffixes: Sequence[str] | None,
    links_to: Sequence[str] = (),
    sites: Iterable[str] = (),
) -> tuple[list[Image], list[Skipped]]:
    """Images of one site, and files that look like one but have no such name; other ``sites`` are not entered.

    For an app, these are all the files that it is given, sidecars included.
    """
    others, above = set(sites) - {site}, f"{site}/" if site else ""

    def may_enter(path: str) -> bool:
        below = path.removeprefix(above)
        if suffixes is not None:
            return PARTICIPANT_FOLDER.match(below) is not None
        return path not in others and not any(each.search(f"/{below}") for each in IGNORE)

    files, refused = list_tree(dataset, site, may_enter, links_to)
    images, taken = list[Image](), set[str]()
    skipped = [Skipped(repr(path), reason) for path, reason in refused.items()]
    for path in files:
        try:
            image = image_at(path, site, suffixes)
            if image is None:
                continue
            if suffixes is None:
                if strip_extension(path) in taken:
                    raise InputError("the same image is there with another extension")
                taken.add(strip_extension(path))
            content = content_if_readable(dataset, path, links_to)
            images.append(replace(image, size_bytes=content.size_bytes, content=content.version))
        except InputError as error:
            skipped.append(Skipped(repr(path), error.what))
    return images, skipped


def image_at(path: str, site: str, suffixes: Sequence[str] | None) -> Image | None:
    """The image that a file is, by its name; ``None`` if it is not among those that are asked for.

    Participant and session of an app's file are those of its folders, the run that of its name if it has one.

    Raises
    ------
    InputError
        If it looks like one, and its name is not BIDS or not safe.
    """
    subject, *rest = PurePosixPath(path).relative_to(site).parts
    if suffixes is None:
        is_one = path.endswith(T1W_ENDS) and (path.endswith(T1W_NAMES) or is_t1w("/".join((subject, *rest))))
        return read_image(path, site) if is_one else None
    if not rest or (suffixes and rest[-1].split(".")[0].rsplit("_", 1)[-1] not in suffixes):
        return None
    if not SAFE_PATH.fullmatch(path):
        raise InputError("the name has characters that BIDS paths do not have")
    session = rest[0].removeprefix("ses-") if rest[0].startswith("ses-") and len(rest) > 1 else ""
    bids_run = re.search(rf"_run-({LABEL})", rest[-1])
    participant, label = str(PurePosixPath(site, subject)), subject.removeprefix("sub-")
    return Image(participant, site, label, session, bids_run[1] if bids_run else "", path)


def is_t1w(path: str) -> bool:
    """Whether pybids takes a path for a T1w image's."""
    from bids.layout import parse_file_entities

    parsed = parse_file_entities(f"/{path}", config=["bids"])
    return parsed.get("suffix") == "T1w" and parsed.get("extension") in EXTENSIONS


def kind_of_file(suffixes: Sequence[str] | None) -> str:
    """The kind of file that is indexed, in words.

    >>> kind_of_file(None), kind_of_file([]), kind_of_file(["T1w", "bold"])
    ('T1w image', 'file', 'T1w or bold file')
    """
    if suffixes is None:
        return "T1w image"
    return f"{' or '.join(suffixes)} file" if suffixes else "file"


def participants_of(
    dataset: Path, site: str, links_to: Sequence[str], kind: str
) -> tuple[dict[str, str], list[Skipped]]:
    """All participants that a site has folders of or lists in its participants.tsv.

    Returns
    -------
    dict
        Participant's folder to why it is left out if it has no image, a file of a ``kind``.
    list
        participants.tsv, if it could not be read.
    """
    prefix = f"{site}/" if site else ""
    members, skipped, table = dict[str, str](), list[Skipped](), f"{prefix}participants.tsv"
    try:
        with suppress(FileNotFoundError), open_in_dataset(dataset, table, links_to) as file:
            content = file.read(PARTICIPANTS_BYTES + 1)
            if len(content) > PARTICIPANTS_BYTES:
                raise InputError(f"holds more than {PARTICIPANTS_BYTES:,} bytes")
            lines = io.StringIO(content.decode(errors="replace"), newline="")
            for row in csv.DictReader(lines, delimiter="\t"):
                if label := one_line(row.get("participant_id") or "")[:LABEL_SHOWN]:
                    members[f"{prefix}sub-{label.removeprefix('sub-')}"] = "in participants.tsv, but there is no folder"
    except (OSError, csv.Error, InputError) as error:
        why = f"cannot be read: {error.strerror}" if isinstance(error, OSError) else f"is no table: {error}"
        members, skipped = {}, [Skipped(repr(table), error.what if isinstance(error, InputError) else why)]
    with os.scandir(dataset / site) as entries:
        for entry in entries:
            is_folder = entry.is_dir(follow_symlinks=False) or (entry.is_symlink() and "." not in entry.name)
            if entry.name.startswith("sub-") and is_folder:
                members[f"{prefix}{one_line(entry.name)}"] = f"no {kind}"
    return members, skipped
