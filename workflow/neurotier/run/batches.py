"""Batches: which participants share a job, decided when the dataset is indexed and at every start, and kept.

Snakemake knows batches and not participants. So what it would find out of each file, :func:`decide` finds out of each
record: whether somebody has been analysed, and whether it was of these images, by this tool with these options. Those
who are missing are divided anew, into batches with new numbers; others keep theirs, whose markers are there.
"""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Collection, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from neurotier.core.errors import InputError, StateError
from neurotier.core.files import once_per_version, read_json, remove_whatever, write_json
from neurotier.core.foreign import open_file
from neurotier.core.places import Places, participant_of, short_hash
from neurotier.core.settings import Settings
from neurotier.dataset.bids import Image

Batches = dict[str, list[str]]
"""Number of a batch to its participants."""

SHORT_S = 20.0
"""How long a job of participants that take less should last: to start it takes Snakemake some 0.1 s of CPU."""

MANY_SLOTS = 10
"""Jobs at once from which short participants share one at the same time: to start 25 keeps a few cores busy for 2 s."""

TOGETHER = 5
"""Most participants of such a job at the same time."""

LARGEST = 1000
"""Most participants of a batch: their names are words of one command."""

MEGABYTE = 1_000_000
"""Unit of Snakemake's ``*_mb`` resources, which are decimal."""

SNAKEMAKE_MB = 500
"""Memory of the Snakemake that a cluster job runs; measured: 450 to 475 MB."""

STAGING_MB = 100
"""Memory of a participant that copies, or waits to compute: at most what a tool's libraries take, which it shares with
the others. Measured: 4 MB of its own."""


@dataclass(frozen=True)
class Wanted:
    """What a record must say, or its participant is analysed again.

    Attributes
    ----------
    analysis
        What determines the results of everyone: see :attr:`neurotier.run.plan.Plan.analysis`.
    tool, version, container
        As in ``index/tool.json``; a version that is not known yet is not looked at.
    anew
        Whether nobody counts as done, because the user asked so (``--forcerun analyze_participants``).
    run
        The run whose work counts all the same; empty for none.
    """

    analysis: str
    tool: str
    version: str | None
    container: str | None
    anew: bool = False
    run: str = ""

    def is_met(self, made: Made, images: Sequence[Image]) -> bool:
        """Whether somebody with these images has been analysed as wanted."""
        if made.analysis != key_of(self.analysis, images):
            return False
        if self.version is not None and (made.tool, made.version, made.container) != self.made_by:
            return False
        return not self.anew or (bool(self.run) and made.run == self.run)

    @property
    def made_by(self) -> tuple[str, str | None, str | None]:
        return self.tool, self.version, self.container


@dataclass(frozen=True)
class Made:
    """What a record says of how it was made."""

    analysis: str
    tool: str
    version: str
    container: str | None
    run: str
    time_ns: int

    @classmethod
    def by(cls, record: Mapping[str, Any], time_ns: int = 0) -> Made:
        """Of a record, written at a time (ns since 1970)."""
        return cls(
            record.get("analysis", ""),
            record.get("tool", ""),
            record.get("tool_version", ""),
            record.get("container"),
            record.get("run", ""),
            time_ns,
        )


def key_of(analysis: str, images: Sequence[Image]) -> str:
    """What determines the results of one participant, in eight digits: the analysis and the contents of the images."""
    return short_hash("\n".join([analysis, *(f"{image.path} {image.content}" for image in images)]))


def wanted_by(places: Places, analysis: str, tool: str, anew: bool = False, run: str = "") -> Wanted:
    """What records must say, by the tool that was prepared, if one was."""
    facts: Mapping[str, Any] = {}
    with suppress(FileNotFoundError, StateError):
        facts = read_json(places.index / "tool.json")
    image = facts.get("image")
    return Wanted(analysis, tool, facts.get("version"), image and f"sha256:{image}", anew, run)


def read_batches(places: Places) -> Batches:
    """The batches that were decided; none before the dataset is indexed."""
    try:
        return batches_in(places.batches_file)
    except FileNotFoundError:
        return {}


@once_per_version
def batches_in(file: Path) -> Batches:
    """The batches in the file that keeps what was decided."""
    return known_batches(read_decision(file))[1]


def known_batches(decision: Mapping[str, Any]) -> tuple[int, Batches]:
    """The number of the next batch, and the batches; as if there were none, if their file is damaged."""
    with suppress(AttributeError, LookupError, TypeError, ValueError):
        batches = {str(int(number)): list(map(str, of)) for number, of in decision["batches"].items()}
        return int(decision["next"]), batches
    return 0, {}


def read_decision(file: Path) -> dict[str, Any]:
    """What was decided; nothing if it was not, or if its file is damaged or no file."""
    with suppress(InputError, OSError, ValueError), open_file(file.parent, file.name, str(file)) as opened:
        data = json.load(opened)
        return data if isinstance(data, dict) else {}
    return {}


def decide(
    places: Places,
    selected: Mapping[str, Sequence[Image]],
    made: Mapping[str, Made],
    wanted: Wanted,
    size: Callable[[Mapping[str, Sequence[Image]]], int],
    apart: Collection[str] = (),
    by_site: bool = False,
    write: bool = True,
    elsewhere: bool = False,
) -> Batches:
    """Divide those who are missing into batches, and keep what was decided for others.

    Parameters
    ----------
    places
        Of the results.
    selected
        Everyone whom the index selects, with the images of each.
    made
        Those who have a record and whole derivatives.
    wanted
        What a record must say.
    size
        Gives the most participants of a batch for those who are missing, see :func:`size_for`.
    apart
        Participants that share no job: an advice waits for them, and not for others.
    by_site
        Whether only participants of one site share a batch, as when a site must be valid before anyone is analysed.
    write
        Whether to write the decision, with markers of those who are done, or only to say what it would be. Records of
        those who are missing go then: were the new analysis to fail, an old one would pass for it.
    elsewhere
        Whether jobs run on the nodes of a cluster. There they wait for other files than here, so that to Snakemake all
        that were done here have new inputs: who is done gets another batch, with a marker that no job has made.
    """
    decided = read_decision(places.batches_file)
    following, before = known_batches(decided)
    moved = bool(decided) and decided.get("elsewhere") != elsewhere
    done = {name for name in selected if name in made and wanted.is_met(made[name], selected[name])}
    kept = {
        number: members
        for number, members in before.items()
        if not moved and done.issuperset(members) and places.batch(number).exists()
    }
    settled = {name for members in kept.values() for name in members}
    missing = longest_first([name for name in selected if name not in done], selected)
    fresh = [([name], False) for name in missing if name in apart]
    together = [name for name in missing if name not in apart]
    most = size({name: selected[name] for name in together})
    fresh += [(members, False) for members in shared(together, selected, most, by_site)]
    unsettled = done - settled
    rest = [name for name in selected if name in unsettled]
    fresh += [(members, True) for members in divided(rest, size({name: selected[name] for name in rest}))]
    batches, waiting = dict(kept), {tuple(of): number for number, of in before.items() if number not in kept}
    for members, are_done in fresh:
        number = waiting.get(tuple(members), "")
        if are_done or not number or places.batch(number).exists():
            following = unused(places, following)
            number, following = str(following), following + 1
        if write or not are_done:
            batches[number] = members
        if write and are_done:
            write_marker(places, number, members, max(made[name].time_ns for name in members))
    if write:
        forget_work(places, selected, made, done)
        decision = {"next": following, "analysis": wanted.analysis, "elsewhere": elsewhere, "batches": batches}
        if decision != decided:
            write_json(places.batches_file, decision)
        forget_others(places, batches)
    return batches


def forget_work(places: Places, selected: Collection[str], made: Collection[str], done: Collection[str]) -> None:
    """Remove records of those who are analysed again, and failures of those who are done."""
    for name in selected:
        if name in made and name not in done:
            remove_whatever(places.record(name))
    for file in places.failures.rglob("*.json"):
        if participant_of(file, places.failures) in done:
            remove_whatever(file)


def decided_analysis(places: Places) -> str | None:
    """The analysis that the batches were decided for; on a node, the image or definition may look otherwise."""
    decision = read_decision(places.batches_file)
    return str(decision["analysis"]) if "analysis" in decision else None


def set_apart(places: Places, names: Collection[str]) -> None:
    """Give some participants a batch of their own each, unless their batch is done; the decision is written."""
    decided = read_decision(places.batches_file)
    following, before = known_batches(decided)
    batches: Batches = {}
    for number, members in before.items():
        chosen = [name for name in members if name in names] if not places.batch(number).exists() else []
        if not chosen or len(members) == 1:
            batches[number] = members
            continue
        rest = [name for name in members if name not in names]
        for of in [*([name] for name in chosen), *([rest] if rest else [])]:
            following = unused(places, following)
            batches[str(following)], following = of, following + 1
    if batches != before:
        write_json(places.batches_file, decided | {"next": following, "batches": batches})


def unused(places: Places, number: int) -> int:
    """The first number from this one on that has no marker: the file with the numbers may have been lost."""
    while places.batch(str(number)).exists() or places.dropped(str(number)).exists():
        number += 1
    return number


def longest_first(names: Sequence[str], selected: Mapping[str, Sequence[Image]]) -> list[str]:
    """Participants by the size of their images: who starts last should not be who takes longest."""
    return sorted(names, key=lambda name: -sum(image.size_bytes or 0 for image in selected[name]))


def by_urgency(sizes_bytes: Mapping[str, int]) -> list[str]:
    """Numbers of batches, the most urgent first: the longest begin first, so that they end with others.

    >>> by_urgency({"1": 5, "10": 5, "9": 5, "3": 7})
    ['3', '1', '9', '10']
    """
    return sorted(sizes_bytes, key=lambda number: (-sizes_bytes[number], int(number)))


def shared(names: Sequence[str], selected: Mapping[str, Sequence[Image]], most: int, by_site: bool) -> list[list[str]]:
    """Batches of so many participants at most, in order of length; only of one site each, if asked for."""
    sites = sorted({selected[name][0].site for name in names}) if by_site else [None]
    return [
        members
        for site in sites
        for members in divided([name for name in names if site in (None, selected[name][0].site)], most)
    ]


def divided(names: Sequence[str], size: int) -> list[list[str]]:
    """As few batches as there can be, alike in number and, of names in order of length, in length.

    >>> divided(["a", "b", "c", "d", "e"], 3)
    [['a', 'c', 'e'], ['b', 'd']]
    """
    count = -(-len(names) // max(1, min(size, LARGEST)))
    return [list(names[first::count]) for first in range(count)]


def write_marker(places: Places, number: str, members: Sequence[str], time_ns: int) -> None:
    """Write the marker of a batch that needs no job, as old as what its jobs made, or what followed is done again."""
    marker = places.batch(number)
    write_json(marker, {"participants": list(members), "failed": {}}, durable=False)
    waited_for = ("tool.json", "image.json", "caches.json")
    inputs = [*(places.index / name for name in waited_for), *places.index.glob("**/validation.json")]
    newest_ns = max([time_ns, *(file.stat().st_mtime_ns for file in inputs if file.exists())])
    os.utime(marker, ns=(newest_ns, newest_ns))


def forget_others(places: Places, batches: Collection[str]) -> None:
    """Remove markers of batches that there are no more."""
    for folder in (places.batch("0").parent, places.dropped("0").parent):
        if folder.is_symlink() or not folder.is_dir():  # planted: what it leads to is not ours
            remove_whatever(folder)
            continue
        for file in sorted(folder.iterdir()):
            if file.name not in batches:
                remove_whatever(file)


def together(slots: int | None) -> int:
    """How many participants of a job are analysed at the same time, where the user does not say: no slot stays empty.

    >>> together(25), together(96), together(8), together(None)
    (5, 4, 1, 1)
    """
    if slots is None or slots < MANY_SLOTS:
        return 1
    return max(number for number in range(1, TOGETHER + 1) if slots % number == 0)


def size_for(settings: Settings, selected: Mapping[str, Sequence[Image]], slots: int | None) -> int:
    """How many participants share a job: as many as asked for, or as last :data:`SHORT_S`; no slot stays empty.

    Parameters
    ----------
    settings
        With the tool, of whose images it is known how long they take, roughly. Apps are taken for long.
    selected
        Those who are analysed, with their images.
    slots
        How many jobs run at once; ``None`` on a cluster.
    """
    if settings.batches.participants is not None:
        return settings.batches.participants
    if settings.app.image or not selected:
        return 1
    from neurotier.analysis.tools import make_tool  # which loads what reads images

    tool = make_tool(settings.tool)
    sizes_bytes = [[image.size_bytes or 0 for image in images] for images in selected.values()]
    expected_s = sum(tool.expected_s(size / MEGABYTE) for sizes in sizes_bytes for size in sizes) / len(sizes_bytes)
    per_slot = len(selected) // slots if slots else LARGEST
    in_a_row = int(SHORT_S / max(expected_s, SHORT_S / LARGEST))
    at_once = settings.batches.at_once or together(slots)
    if in_a_row <= 1:
        return 1
    if at_once == 1 and slots:
        return evenly(len(selected), in_a_row, slots)
    return max(1, min(in_a_row, per_slot)) * at_once


def evenly(count: int, size: int, slots: int) -> int:
    """The size of batches, at most so large, that leaves no slot idle while others work at the last ones.

    >>> evenly(40, 15, 2), evenly(40, 100, 2), evenly(3, 1, 2)
    (10, 20, 1)
    """
    rounds = -(-count // (size * slots))
    return -(-count // (rounds * slots))
