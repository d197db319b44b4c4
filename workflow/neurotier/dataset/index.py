"""The index: the dataset's T1w images by participant, and what is left out, with the reason.

Each site's tree is listed once, without opening files or entering folders of other data types. pybids interprets the
names but does not walk the tree, since it would follow links wherever they lead. Names are then read strictly
(:mod:`neurotier.dataset.bids`). Contents need not be present.
"""

from __future__ import annotations

import csv
import io
import os
import re
from collections import deque
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from functools import cache
from pathlib import Path, PurePosixPath
from typing import NamedTuple

from neurotier.core.configuration import suggestion
from neurotier.core.errors import InputError, one_line
from neurotier.core.files import Record
from neurotier.core.foreign import file_in_dataset, open_in_dataset
from neurotier.core.places import short_hash
from neurotier.core.quantities import first_of
from neurotier.core.settings import DatasetSettings, Say
from neurotier.dataset.bids import (
    EXTENSIONS,
    LABEL,
    SITE,
    Image,
    Reasons,
    is_bids,
    plain_label,
    read_image,
    selector,
    strip_extension,
)
from neurotier.dataset.commands import ask_git, in_repository
from neurotier.dataset.contents import Content, content_if_readable
from neurotier.dataset.source import Dataset, requested_unreachable

IGNORED = re.compile(
    r"^/(code|derivatives|sourcedata|stimuli|phenotype)(/|$)"
    r"|/(func|dwi|fmap|perf|eeg|meg|ieeg|beh|pet|micr|nirs|motion|mrs)(/|$)"
    r"|/\."
)
"""Folders that cannot hold T1w images."""

PARTICIPANTS_BYTES = 8 << 20
"""Largest participants.tsv that is read."""

PARTICIPANT_FOLDER = re.compile(rf"sub-{LABEL}(/|$)")
T1W = re.compile(r"(_?)T1w\.nii(\.gz)?\Z")

MAY_LACK = ("site", "session", "bids_run")
"""Attributes that an image may lack: an empty text here, no value in tables."""

INHERITED = re.compile(r"(?!dataset_description|participants|samples)[^/]+\.(json|tsv|bval|bvec)")
"""Files at a dataset's root that apply to the images of all participants."""

HIDDEN = r"\.(?!z(array|attrs|group|metadata)\Z)"
"""Regular expression of the start of a hidden name, which BIDS ignores, unless it describes an OME-ZARR image."""

SAFE_PATH = re.compile(rf"(?!(.*/)?{HIDDEN})[A-Za-z0-9_.+/-]+")


class Index(NamedTuple):
    """The selected images of a dataset, and what was left out with the reasons, both sorted by path."""

    images: list[Image]
    skipped: Reasons

    def rows(self) -> list[Record]:
        """Rows of ``images.tsv``."""
        return [image._asdict() | {name: getattr(image, name) or None for name in MAY_LACK} for image in self.images]


def index_dataset(
    dataset: Dataset,
    settings: DatasetSettings,
    suffixes: Sequence[str] | None,
    tell: Say,
) -> Index:
    """Index all sites of a dataset and apply the selection.

    Parameters
    ----------
    dataset, settings
        The dataset, and section ``dataset`` of the configuration.
    suffixes
        For a BIDS App, the suffixes of the files it is given (all files if empty); ``None`` for T1w images.
    tell
        Reports progress, before each site.

    Raises
    ------
    InputError
        If the dataset is not BIDS, a filter names something that does not exist, or nothing is left to analyse.
    """
    lost = requested_unreachable(dataset.unreachable, settings.participants)
    skipped = {repr(path): f"cannot be reached: {reason}" for path, reason in lost.items()}
    images = list[Image]()
    everyone = set()
    kind, where, is_app = kind_of_file(suffixes), f"dataset.source {dataset.source!r}", suffixes is not None
    is_participant = selector(settings.participants, "sub")
    for count, site in enumerate(dataset.sites, start=1):
        tell(f"site {count} of {len(dataset.sites)}, {len(images):,} {kind}s so far")
        root = dataset.path / site
        if not is_bids(root):
            if not site or any(not name.startswith("-") for name in settings.sites):
                raise InputError(
                    "is not a BIDS dataset: no dataset_description.json and no sub-* folder",
                    f"{site or dataset.source!r}",
                    "correct dataset.source or dataset.sites",
                )
            deeper = (root / ".gitmodules").exists()
            more = "; it holds sub-datasets: name it as dataset.source to analyse them" if deeper else ""
            skipped[site] = f"not a BIDS dataset{more}"
            continue
        if site and not SITE.fullmatch(site):
            skipped[repr(site)] = "the sub-dataset's name has characters that BIDS paths do not have"
            continue
        found, refused = index_site(dataset.path, site, suffixes, settings.links_to, dataset.sites)
        members = participants_of(dataset.path, site, settings.links_to, kind, refused)
        with_images = {image.participant for image in found}
        images += found
        everyone |= with_images | members.keys()
        without = sorted(members.keys() - with_images - dataset.unreachable.keys())
        unexplained = [name for name in without if is_participant(label_of(name)) and repr(name) not in refused]
        skipped |= refused | {name: members[name] for name in unexplained}
    twins = dict[str, str]()  # BIDS forbids names that differ only in case: on some tiers they are the same
    for name in sorted({image.participant for image in images}):
        if (first := twins.setdefault(name.lower(), name)) != name:
            skipped[name] = f"differs from {first} in case alone"
    images = [image for image in images if image.participant not in skipped]
    sites = {image.site for image in images}
    if is_app and "" in sites and len(sites) > 1:
        raise InputError(
            "holds participants both itself and in sub-datasets, whose derivatives an app would mix",
            where,
            "name the sub-datasets to analyse in dataset.sites",
        )
    if not images:
        first_skipped = next((f"; skipped {item}: {reason}" for item, reason in skipped.items()), "")
        raise InputError(f"holds no {kind}{first_skipped}", where)
    if not lost:  # otherwise unknown labels may belong to an unreachable site
        check_known("participants", "sub", settings.participants, map(label_of, everyone))
    if not dataset.unreachable:
        check_known("sessions", "ses", settings.sessions, (image.session for image in images))
        check_known("runs", "run", settings.runs, (image.bids_run for image in images))
    asked = [image for image in images if is_participant(image.label)]
    selected = filter_images(asked, settings, is_app)
    if not selected:
        raise InputError("nothing is left to analyse", where, "see the filters under dataset")
    return Index(sorted(selected, key=lambda image: image.path), dict(sorted(skipped.items())))


def changed_since(
    dataset: Dataset,
    settings: DatasetSettings,
    suffixes: Sequence[str] | None,
    indexed: Mapping[str, Sequence[Image]],
    indexed_s: float,
) -> list[str]:
    """Participants of a plain folder who were added, removed, or given other images since it was indexed.

    Participants of a site that no longer exists are not listed: their analysis will fail with that reason.

    Parameters
    ----------
    dataset, settings, suffixes
        As for :func:`index_dataset`.
    indexed
        Participants in its index, with their images.
    indexed_s
        When the index was made, s since 1970. If none of their folders and files has changed since, and each file still
        has its indexed size and time, nothing has changed. (A link may now lead to another folder, which is older.)
    """
    there = {site: facts for site, facts in dataset.sites.items() if (dataset.path / site).is_dir()}
    known = [image for images in indexed.values() for image in images if image.site in there]
    contents = {PurePosixPath(image.path): image.content for image in known}
    looked = {PurePosixPath(site) for site in there}.union(contents, *(file.parents for file in contents))
    if suffixes is not None:
        for site in there:
            files = (dataset.path / site).glob("*.*")
            looked |= {PurePosixPath(site, file.name) for file in files if INHERITED.fullmatch(file.name)}

    def is_other(path: PurePosixPath) -> bool:
        content = contents.get(path, "")  # size and time, or a key; empty for a folder, or a file that must not be read
        with suppress(OSError):  # it is missing, or leads to something not mounted
            facts = (dataset.path / path).stat()
            is_another = content[:1].isdigit() and not content.startswith(f"{facts.st_size}-{facts.st_mtime_ns}")
            return facts.st_ctime > indexed_s or is_another
        return True

    if not any(map(is_other, looked)):
        return []
    try:
        found = index_dataset(dataset._replace(sites=there), settings, suffixes, lambda _: None).images
    except InputError:  # no participant is left, or one whom the settings name is missing
        found = [image for image in known if (dataset.path / image.path).exists()]
    before, now = ({(each.participant, each.path, each.content) for each in images} for images in (known, found))
    return sorted({name for name, *_ in before ^ now})


def label_of(participant: str) -> str:
    """The label of a participant's folder."""
    return participant.rpartition("/")[2].removeprefix("sub-")


def index_site(
    dataset: Path,
    site: str,
    suffixes: Sequence[str] | None,
    links_to: Sequence[str] = (),
    sites: Iterable[str] = (),
) -> tuple[list[Image], Reasons]:
    """Images of one site; and what was left out, with the reason: folders not entered, files that look like images but
    are not named like one. Other ``sites`` are not entered.

    For an app, the images are all the files that it is given, including sidecars.
    """
    others, above = set(sites) - {site}, f"{site}/" if site else ""

    def may_enter(path: str) -> bool:
        below = path.removeprefix(above)
        if suffixes is not None:
            return PARTICIPANT_FOLDER.match(below) is not None
        return path not in others and not IGNORED.search(f"/{below}")

    def is_listed(path: str) -> bool:
        folders = PurePosixPath(path.removeprefix(above)).parents[:-1]
        return all(may_enter(f"{above}{folder}") for folder in folders) and not (dataset / path).is_dir()

    files, refused = list_tree(dataset, site, may_enter, links_to)
    images, blobs = [], cache(blobs_of)
    is_clone = (dataset / ".git").exists()  # nobody edits a clone's files
    if is_clone:  # an unlocked file is missing for a moment while git-annex fetches or drops it for another run
        tracked = ask_git(dataset / site, "ls-files", "--recurse-submodules", "-z") or ""
        # names that are not valid text come back altered, and do not match
        away = {above + name for name in filter(SAFE_PATH.fullmatch, tracked.split("\0"))}.difference(files, refused)
        files += filter(is_listed, away)
    files.sort()
    taken = set()

    def looked_at(path: str) -> Content:
        content = content_if_readable(dataset, path, links_to)
        if is_clone and not (dataset / path).is_symlink():
            repository, below = in_repository(dataset, path)
            return content._replace(version=blobs(repository).get(below, content.version))
        return content

    known = [
        (path, looked_at(path).version)
        for path in files
        if suffixes is not None and INHERITED.fullmatch(path.removeprefix(above))
    ]
    shared = f" {short_hash(str(known))}" if known else ""
    skipped = {repr(path): reason for path, reason in refused.items()}
    for path in files:
        try:
            image = image_at(path, site, suffixes)
            if image is None:
                continue
            if suffixes is None:
                if strip_extension(path) in taken:
                    raise InputError("the same image is there with another extension")
                taken.add(strip_extension(path))
            content = looked_at(path)
            images.append(image._replace(size_bytes=content.size_bytes, content=content.version + shared))
        except InputError as error:
            skipped[repr(path)] = error.what
    return images, skipped


def blobs_of(repository: Path) -> dict[str, str]:
    """The hash of each file's blob in git; for a file that git-annex unlocked, of its pointer, content or not."""
    listed = (ask_git(repository, "ls-files", "--stage", "-z") or "").split("\0")
    return {path: facts.split()[1] for facts, _, path in (line.partition("\t") for line in listed if line)}


def list_tree(
    dataset: Path, top: str, may_enter: Callable[[str], bool], links_to: Sequence[str]
) -> tuple[list[str], Reasons]:
    """List the files below a folder of a dataset, except hidden ones.

    Parameters
    ----------
    dataset
        The dataset's folder.
    top
        The folder below it to list; empty for the dataset itself.
    may_enter
        Whether to enter a folder, by its path below the dataset.
    links_to
        Folders outside the dataset that links may lead into.

    Returns
    -------
    list
        Paths below the dataset of everything that is not a folder. A link out of the dataset is included if it has a
        file's name, so that the job that needs it reports it.
    dict
        Folders that were not entered, with the reason.
    """
    files = []
    refused = {}
    seen = set()
    pending = deque([top])  # links wait at the left end until all real folders are listed
    while pending:
        here = pending.pop()
        try:
            facts = os.stat(dataset / here)
            with os.scandir(dataset / here) as entries:
                visible = [entry for entry in entries if not re.match(HIDDEN, entry.name)]
        except OSError as error:
            refused[here or "."] = f"cannot be read: {error.strerror}"
            continue
        if (facts.st_dev, facts.st_ino) in seen:
            refused[here or "."] = "is a link to a folder that is listed already"
            continue
        seen.add((facts.st_dev, facts.st_ino))
        for entry in sorted(visible, key=lambda entry: entry.name):
            path, why = f"{here}/{entry.name}" if here else entry.name, ""
            is_folder, is_link = entry.is_dir(follow_symlinks=False), entry.is_symlink()
            if is_link:
                try:
                    trusted, below = file_in_dataset(dataset, path, links_to)
                    is_folder = (trusted / below).is_dir()
                except InputError as error:
                    # its target is not examined; in BIDS, names of files have a dot, and those of folders have none
                    is_folder, why = "." not in entry.name, error.what
            if not is_folder:
                files.append(path)
            elif entry.name.endswith(EXTENSIONS):
                refused[path] = "is a folder"
            elif may_enter(path):
                if why:
                    refused[path] = why
                elif is_link:
                    pending.appendleft(path)
                else:
                    pending.append(path)
    return files, refused


def image_at(path: str, site: str, suffixes: Sequence[str] | None) -> Image | None:
    """The image at a path, judging by its name; ``None`` if it is not one of those to index.

    For an app's file, participant and session are those of its folders; the run is that in its name, if any.

    Raises
    ------
    InputError
        If it looks like one, but its name is not BIDS or not safe.
    """
    below = PurePosixPath(path).relative_to(site)
    subject, *rest = below.parts
    if suffixes is None:
        ends = T1W.search(path)
        return read_image(path, site) if ends and (ends[1] or is_t1w(str(below))) else None
    name = next((part for part in rest if re.fullmatch("sub-.*_[^-]+", part)), below.name)  # a CTF file is a folder
    if not rest or (suffixes and name.split(".")[0].rsplit("_", 1)[-1] not in suffixes):
        return None
    if not SAFE_PATH.fullmatch(path):
        raise InputError("the name has characters that BIDS paths do not have")
    session = rest[0].removeprefix("ses-") if rest[0].startswith("ses-") and len(rest) > 1 else ""
    bids_run = re.search(rf"_run-({LABEL})", name)
    participant = str(PurePosixPath(site, subject))
    return Image(participant, site, label_of(subject), session, bids_run[1] if bids_run else "", path)


def is_t1w(path: str) -> bool:
    """Whether pybids takes a path for that of a T1w image."""
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


def participants_of(dataset: Path, site: str, links_to: Sequence[str], kind: str, skipped: Reasons) -> Reasons:
    """All participants for whom a site has a folder or a line in participants.tsv, each with a reason.

    The reason says why a participant is left out if there is no image (a file of ``kind``). An unreadable
    participants.tsv is added to ``skipped``.
    """
    prefix = f"{site}/" if site else ""
    table = f"{prefix}participants.tsv"
    members = {}
    try:
        with suppress(FileNotFoundError), open_in_dataset(dataset, table, links_to) as file:
            content = file.read(PARTICIPANTS_BYTES + 1)
            if len(content) > PARTICIPANTS_BYTES:
                raise InputError(f"holds more than {PARTICIPANTS_BYTES:,} bytes")
            text = content.decode("utf-8-sig", errors="replace")  # spreadsheets begin a file with a byte order mark
            for row in csv.DictReader(io.StringIO(text, newline=""), delimiter="\t", strict=True):
                if label := one_line(row["participant_id"] or "")[:255]:  # no folder has a longer name
                    members[f"{prefix}sub-{label.removeprefix('sub-')}"] = "in participants.tsv, but there is no folder"
    except (OSError, KeyError, csv.Error, InputError) as error:
        why = getattr(error, "what", f"is not a table of participant_id: {error} (commas for tabs, a quotation mark?)")
        members, skipped[repr(table)] = {}, f"cannot be read: {error.strerror}" if isinstance(error, OSError) else why
    is_nested = bool(site) and (dataset / site / ".gitmodules").exists()
    with os.scandir(dataset / site) as entries:
        for entry in entries:
            is_folder = entry.is_dir(follow_symlinks=False) or (entry.is_symlink() and "." not in entry.name)
            if entry.name.startswith("sub-") and is_folder:
                name = f"{prefix}{one_line(entry.name)}"
                members[name] = f"no {kind}"
                if not entry.is_symlink() and os.path.lexists(f"{entry.path}/.gitmodules"):
                    members[name] = "holds sub-datasets, which are not installed"
                with suppress(OSError):
                    if is_nested and not os.listdir(entry):
                        members[name] = "a sub-dataset in a sub-dataset: name that one as dataset.source"
    return members


# The selection.


def filter_images(images: Sequence[Image], settings: DatasetSettings, of_none: bool) -> list[Image]:
    """The images that the filters for sessions and runs select
    (:data:`CHOOSING <neurotier.analysis.activity.CHOOSING>` has their keys).

    Parameters
    ----------
    images
        Images of one or more participants.
    settings
        With labels of sessions and runs; an empty filter selects all.
    of_none
        Whether files without a session or run, such as sidecars and field maps, go with every one of them, as apps
        expect. They are kept for participants who have at least one selected file.
    """
    is_session, is_run = selector(settings.sessions, "ses"), selector(settings.runs, "run")
    named = [image for image in images if is_session(image.session) and is_run(image.bids_run)]
    if not of_none:
        return named
    participants = {image.participant for image in named}
    return [
        image
        for image in images
        if image.participant in participants
        and (not image.session or is_session(image.session))
        and (not image.bids_run or is_run(image.bids_run))
    ]


def check_known(key: str, prefix: str, wanted: Sequence[str | int], known: Iterable[str]) -> None:
    """Raise :class:`InputError` if a filter names a label that does not exist."""
    labels = sorted({*known} - {""})
    plain = {plain_label(label, prefix) for label in labels}
    for name in wanted:
        bare = plain_label(str(name).removeprefix("-"), prefix)
        if bare not in plain:
            raise InputError(
                f"the dataset has no {prefix}-{bare}{suggestion(bare, labels)}",
                f"dataset.{key}",
                f"it has {len(labels)}: {first_of(labels, 5)}" if labels else "leave it out",
            )
