"""Participants: those that the index selects, with their images; which of them are done; and the shares of the pools.

Each process reads the index once, with a simple reader instead of a library: jobs start often, and half a million lines
take two seconds.

A share is the participants of one pool, and so of one Snakemake job. On one machine, all participants are one share. On
a cluster there is a job for each share: share k of n has every n-th participant in order of size, so that shares are
alike. To Snakemake, a share is its marker file.

Whether a participant is done is decided by the records alone: they name the images, the tool and its options. So each
start of a run checks the records, and removes the markers of shares in which a participant is not done. Snakemake does
not remake a missing file that no target asks for, but it does make one with another name. So each start puts a number
of its own into the names of these shares.
"""

from __future__ import annotations

import hashlib
from collections.abc import Collection, Sequence
from pathlib import Path
from typing import NamedTuple

from neurotier.core.errors import InputError, StateError, ToolError
from neurotier.core.files import Facts, Record, once_per_version, read_json_or_empty
from neurotier.core.places import Places, short_hash
from neurotier.core.quantities import counted, first_of
from neurotier.core.settings import Settings
from neurotier.dataset.bids import Image, size_of

Selected = dict[str, list[Image]]
"""Participants, in the order of the index, with the images of each."""


@once_per_version
def selected_by(table: Path) -> Selected:
    """All participants with their images, from a table of images, whose cells contain neither tabs nor quotes.

    Raises
    ------
    StateError
        If a line is not as this version writes it.
    """
    with table.open() as file:
        try:
            names, selected = next(file, "").rstrip("\n").split("\t"), Selected()
            for line in file:
                image = image_of(dict(zip(names, line.rstrip("\n").split("\t"), strict=True)))
                selected.setdefault(image.participant, []).append(image)
        except (LookupError, TypeError, ValueError):
            raise StateError(table) from None
    return selected


def selected_in(places: Places) -> Selected:
    """All participants with their images that a results folder's index selects; empty while there is no index."""
    try:
        return selected_by(places.images_table)
    except FileNotFoundError:
        return {}


def checksum_of(content: bytes) -> str:
    """The line with which ``sha256sum --check`` verifies a table of images."""
    return f"{hashlib.sha256(content).hexdigest()}  images.tsv\n"


def image_of(cells: dict[str, str]) -> Image:
    """The image in a line of ``images.tsv``."""
    known = {name: "" if cell == "n/a" else cell for name, cell in cells.items()}
    size_bytes = known.pop("size_bytes")
    return Image(**known, size_bytes=int(size_bytes) if size_bytes else None)


def records_of(places: Places) -> list[Path]:
    """Paths of the records of all participants that the index selects; those of failed participants do not exist."""
    return [places.record(name) for name in selected_in(places)]


def require_all(places: Places, names: Collection[str]) -> int:
    """How many participants there are, if each has a record.

    Raises
    ------
    ToolError
        If one has none, because its analysis failed.
    """
    left = [name for name in names if not places.record(name).exists()]
    if left:
        fix = (
            "see the report, mend the cause, and start the same command again; dataset.participants: ['-sub-LABEL'] "
            "leaves out who cannot be mended"
        )
        raise ToolError(f"{len(left)} of {counted(len(names), 'participant')} failed", first_of(left), fix)
    return len(names)


def images_of(places: Places, participant: str) -> list[Image]:
    """The images of one participant.

    Raises
    ------
    InputError
        If the index does not select this participant.
    """
    images = selected_in(places).get(participant)
    if not images:
        raise InputError("no such participant is selected", participant, "see index/images.tsv")
    return images


CALIBRATION = "calibration"
"""The share of the participants that are analysed first, as the calibration of an advice."""

SHARE = rf"(\d+-of-\d+|{CALIBRATION})\.\d+"
"""Pattern of the names of shares in the names of files; the number after the dot is that of the start in which the
share last had work to do."""

PARTICIPANTS_OF_A_JOB = 16
"""How many participants share a cluster job by default; for apps the default is one."""


Made = Facts
"""How a participant was analysed, from its record: at least :data:`OF_ANALYSIS`."""

OF_ANALYSIS = ("analysis", "tool", "tool_version", "container", "run")


class Wanted(NamedTuple):
    """What a record must contain; otherwise its participant is analysed again.

    Attributes
    ----------
    analysis
        What determines the results of all participants: see :attr:`neurotier.run.plan.Plan.analysis`.
    tool
        Content of ``index/tool.json``, if it exists; a version that is not known yet is not compared.
    forced
        Whether no participant counts as done, because the user asked for that (``--forcerun analyze_participants``).
    run
        The run whose records count nevertheless; empty for none.
    """

    analysis: str
    tool: Facts
    forced: bool
    run: str = ""

    def is_met(self, made: Made, images: Sequence[Image]) -> bool:
        """Whether a participant with these images has been analysed as wanted."""
        wanted: Record = {"analysis": key_of(self.analysis, images)}
        if self.forced:
            wanted["run"] = self.run
        if self.tool.get("version") is not None:
            image = self.tool.get("image")
            container = image and f"sha256:{image}"
            wanted |= {"tool": self.tool["name"], "tool_version": self.tool["version"], "container": container}
        return all(made.get(key) == value for key, value in wanted.items())


def key_of(analysis: str, images: Sequence[Image]) -> str:
    """Hash, of eight digits, of what determines the results of one participant: the analysis and the content of the
    images."""
    return short_hash("\n".join([analysis, *(f"{image.path} {image.content}" for image in images)]))


@once_per_version
def longest_first(table: Path) -> list[str]:
    """All participants that an index selects, those with the largest images first: what takes longest should not start
    last."""
    selected = selected_by(table)
    return sorted(selected, key=lambda name: -size_of(selected[name]))


def names_of_shares(count: int, settings: Settings, on_cluster: bool) -> list[str]:
    """The names of the shares of ``count`` participants.

    >>> from unittest.mock import Mock
    >>> settings = Mock(**{"shares.participants": 16})
    >>> names_of_shares(33, settings, on_cluster=True), names_of_shares(33, settings, on_cluster=False)
    (['1-of-3', '2-of-3', '3-of-3'], ['1-of-1'])
    """
    size = settings.shares.participants or (1 if settings.is_app else PARTICIPANTS_OF_A_JOB)
    shares = -(-count // size) if on_cluster else min(count, 1)
    return [f"{number}-of-{shares}" for number in range(1, shares + 1)]


def name_of(share: str) -> str:
    """The name of a share without the number of the start.

    >>> name_of("2-of-3.1234")
    '2-of-3'
    """
    return share.partition(".")[0]


def members_of(share: str, places: Places) -> list[str]:
    """The participants of a share, those with the largest images first.

    Raises
    ------
    InputError
        If there is no such share.
    """
    name = name_of(share)
    if name == CALIBRATION:
        names = read_json_or_empty(places.advice / "calibration.json").get("participants")
        return names if isinstance(names, list) else []
    number, _, shares = name.partition("-of-")
    members = longest_first(places.images_table)[int(number) - 1 :: max(1, int(shares))]
    if not members or not 1 <= int(number) <= int(shares):
        raise InputError("there is no such share", f"share {share}", "name the target participants")
    return members
