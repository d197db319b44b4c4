"""Shares: the participants of one pool, and so of one Snakemake job; and who of them is done.

On one machine everyone is in one share. On a cluster a share is a job: the k-th of n has every n-th participant in
order of size, so that shares are alike. Snakemake knows a share by its marker. Whether somebody is done, the records
alone say: of which images they are, by which tool with which options. So each start looks at them, and removes the
markers of shares in which somebody is missing. Snakemake makes no missing file again that no target asks for, but it
does make one of another name: each start gives these shares its own number.
"""

from __future__ import annotations

import os
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from types import MappingProxyType
from typing import Any

from neurotier.core.errors import InputError
from neurotier.core.files import once_per_version, remove_whatever, whole_json, write_json
from neurotier.core.places import Places, participant_of, short_hash
from neurotier.core.settings import Settings
from neurotier.dataset.bids import Image
from neurotier.run.participants import selected_by

CALIBRATION = "calibration"
"""The share of those whom an advice has analysed first."""

SHARE = rf"(\d+-of-\d+|{CALIBRATION})\.\d+"
"""Names of shares in files: behind the point is the number of the start in which they last had work to do."""

PARTICIPANTS_OF_A_JOB = 16
"""How many share a job of a cluster, where the configuration does not say; an app is taken to need one of its own."""


Made = Mapping[str, Any]
"""What a record says of how it was made: at least :data:`OF_ANALYSIS`."""

OF_ANALYSIS = ("analysis", "tool", "tool_version", "container", "run")


@dataclass(frozen=True)
class Wanted:
    """What a record must say, or its participant is analysed again.

    Attributes
    ----------
    analysis
        What determines the results of everyone: see :attr:`neurotier.run.plan.Plan.analysis`.
    tool
        Content of ``index/tool.json``; a version that is not known yet is not looked at.
    anew
        Whether nobody counts as done, because the user asked so (``--forcerun analyze_participants``).
    run
        The run whose work counts all the same; empty for none.
    """

    analysis: str
    tool: Mapping[str, Any]
    anew: bool = False
    run: str = ""

    def is_met(self, made: Made, images: Sequence[Image]) -> bool:
        """Whether somebody with these images has been analysed as wanted."""
        if self.tool.get("version") is not None:
            image = self.tool.get("image")
            made_by = [self.tool["name"], self.tool["version"], image and f"sha256:{image}"]
            if made_by != [made.get(key) for key in ("tool", "tool_version", "container")]:
                return False
        is_new = not self.anew or made.get("run") == self.run
        return is_new and made.get("analysis") == key_of(self.analysis, images)


def key_of(analysis: str, images: Sequence[Image]) -> str:
    """What determines the results of one participant, in eight digits: the analysis and the contents of the images."""
    return short_hash("\n".join([analysis, *(f"{image.path} {image.content}" for image in images)]))


def wanted_by(places: Places, analysis: str, anew: bool, run: str = "") -> Wanted:
    """What records must say, by the tool that was prepared, if one was."""
    return Wanted(analysis, whole_json(places.index / "tool.json") or {}, anew, run)


def size_bytes(images: Iterable[Image]) -> int:
    """Size of some images, as far as it is known."""
    return sum(image.size_bytes or 0 for image in images)


@once_per_version
def longest_first(table: Path) -> list[str]:
    """Everyone whom an index selects, by the size of their images: who starts last should not be who takes longest."""
    selected = selected_by(table)
    return sorted(selected, key=lambda name: -size_bytes(selected[name]))


def names_of_shares(count: int, settings: Settings, elsewhere: bool) -> list[str]:
    """The shares of so many participants.

    >>> from unittest.mock import Mock
    >>> settings = Mock(**{"shares.participants": 16})
    >>> names_of_shares(33, settings, elsewhere=True), names_of_shares(33, settings, elsewhere=False)
    (['1-of-3', '2-of-3', '3-of-3'], ['1-of-1'])
    """
    size = settings.shares.participants or (1 if settings.app.image else PARTICIPANTS_OF_A_JOB)
    shares = -(-count // size) if elsewhere else min(count, 1)
    return [f"{number}-of-{shares}" for number in range(1, shares + 1)]


def name_of(share: str) -> str:
    """The name of a share without the number of a start.

    >>> name_of("2-of-3.1234")
    '2-of-3'
    """
    return share.partition(".")[0]


def members_of(share: str, places: Places) -> list[str]:
    """The participants of a share, the longest first.

    Raises
    ------
    InputError
        If there is no such share.
    """
    name = name_of(share)
    if name == CALIBRATION:
        return calibration(places)
    number, _, shares = name.partition("-of-")
    members = longest_first(places.index / "images.tsv")[int(number) - 1 :: max(1, int(shares))]
    if not members or not 1 <= int(number) <= int(shares):
        raise InputError("there is no such share", where=f"share {share}", fix="name the target participants")
    return members


def calibration(places: Places) -> list[str]:
    """Those whom an advice has analysed first."""
    names = (whole_json(places.advice / "calibration.json") or {}).get("participants")
    return names if isinstance(names, list) else []


def missing_in(shares: Iterable[str], places: Places, done: Collection[str]) -> set[str]:
    """The shares in which somebody is not done."""
    return {share for share in shares if not all(name in done for name in members_of(share, places))}


def named(
    shares: Iterable[str],
    places: Places,
    serial: str,
    unfinished: Collection[str] = (),
    taken_over: Mapping[str, str] = MappingProxyType({}),
) -> list[str]:
    """The names of shares in files: those of their markers; a new one without a marker, and if somebody is missing.

    A share that a job of an earlier start is at has the serial number of that start.
    """
    folder = places.share("any").parent
    markers = sorted(folder.iterdir()) if folder.is_dir() else []
    known = {name_of(marker.name): marker.name for marker in markers}
    new = {share: f"{share}.{taken_over.get(share, serial)}" for share in shares}
    return [new[share] if share in unfinished else known.get(share, new[share]) for share in new]


def settle(
    places: Places, finished: Collection[str], made: Collection[str], done: Collection[str], serial: str
) -> None:
    """Leave markers of those shares alone in which everyone is done, and no record of anybody who is analysed again.

    Parameters
    ----------
    places
        Of the results.
    finished
        Those shares.
    made
        Those who have a record and whole derivatives.
    done
        Those of them who were analysed as wanted.
    serial
        Number of this start, for the names of shares whose markers are written here.
    """
    for name in {*made} - {*done}:
        remove_whatever(places.record(name))  # were the new analysis to fail, an old one would pass for it
    for file in places.failures.rglob("*.json"):
        if participant_of(file, places.failures) in done:
            remove_whatever(file)
    if calibration(places):
        finished = {*finished, CALIBRATION} - missing_in([CALIBRATION], places, done)
    for folder in (places.share("any").parent, places.dropped("any").parent):
        if folder.is_symlink() or not folder.is_dir():  # planted: what it leads to is not ours
            remove_whatever(folder)
            continue
        for file in sorted(folder.iterdir()):
            is_whole = file.is_file() and not file.is_symlink() and places.share(file.name).is_file()
            if name_of(file.name) not in finished or not is_whole:
                remove_whatever(file)
    for share in named(finished, places, serial):
        marker = places.share(share)
        if marker.exists():
            continue
        # As old as what its jobs made and waited for, or what followed is done again.
        write_json(marker, {"failed": {}}, durable=False)
        waited_for = [places.index / name for name in ("tool.json", "image.json", "caches.json")]
        files = [*waited_for, *places.index.glob("**/validation.json"), *map(places.record, members_of(share, places))]
        newest_ns = max(file.stat().st_mtime_ns for file in files if file.exists())
        os.utime(marker, ns=(newest_ns, newest_ns))
