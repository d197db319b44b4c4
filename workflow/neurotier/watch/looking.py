"""Looking at a run: who is done, running, failed and left, what is under way, where there is room.

All of it is read from the results folder, so it can be seen from any node, and by whoever may read it; nothing is
changed or locked.
"""

from __future__ import annotations

import json
import os
import socket
import sys
import time
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from neurotier.core.errors import InputError, NeurotierError
from neurotier.core.files import read_json
from neurotier.core.foreign import read_text
from neurotier.core.places import Places, participant_of
from neurotier.core.settings import Settings
from neurotier.core.tiers import Tier, on_nodes
from neurotier.core.work_folders import OWNER
from neurotier.run.granted import MEGABYTE
from neurotier.run.jobs import load_settings
from neurotier.run.journal import StepNote, read_notes, read_steps
from neurotier.run.participants import selected_by
from neurotier.run.stops import runner
from neurotier.watch.remaining import Ended, Remaining, remaining

EXEMPLARY = 1000
"""Most records that are read for the estimate, the latest first."""

LARGEST_BYTES = 16 << 20
"""Most that is read of a record: one lists every file that an app has written."""


@dataclass(frozen=True)
class Failure:
    """A participant that failed, and why."""

    participant: str
    reason: str
    time_s: float


@dataclass(frozen=True)
class Room:
    """A tier: its name, the roles it has, and what is free of its size, bytes; ``None`` if that cannot be seen here."""

    name: str
    roles: Sequence[str]
    free_bytes: int | None
    size_bytes: int | None


@dataclass(frozen=True)
class Look:
    """What is seen of a run at a moment.

    Attributes
    ----------
    time_s
        When, s since 1970.
    run, host, started_s, ended_s
        The latest run, where its Snakemake is, and from when to when, s since 1970.
    alive
        Whether it goes on; ``None`` if it has not ended, and its host cannot be asked from here.
    succeeded
        Whether it has ended with everything done that it was asked for.
    everyone
        How many participants there are; ``None`` while the dataset is not indexed, and of a campaign.
    done, running, failed
        Of these: how many are done; who is being analysed, and since when, s since 1970; and who failed, latest last.
    nodes
        Jobs by node, on a cluster.
    steps
        What is under way beside participants, and how far it is.
    rooms
        Tiers in use.
    left
        How long the participants will still take.
    """

    time_s: float
    run: str
    host: str
    started_s: float
    ended_s: float | None
    alive: bool | None
    succeeded: bool
    everyone: int | None
    done: int
    running: Mapping[str, float]
    failed: Sequence[Failure]
    nodes: Mapping[str, int]
    steps: Sequence[StepNote]
    rooms: Sequence[Room]
    left: Remaining | None

    @property
    def waiting(self) -> int:
        """How many are neither done, running nor failed."""
        return max(0, (self.everyone or 0) - self.done - len(self.running) - len(self.failed))


class Watcher:
    """Looks at the run of a results folder again and again.

    Parameters
    ----------
    results
        The results folder.

    Raises
    ------
    SettingsError
        If no run has begun there.
    """

    def __init__(self, results: Path) -> None:
        self.results = results
        self.places = Places.from_settings(load_settings(results))
        self.first_seen: dict[str, float] = {}

    def look(self) -> Look:
        """What is seen now: of a campaign, what its step tells of the runs that it holds."""
        settings = load_settings(self.results)
        run, facts = latest_run(self.places)
        alive = lives(self.places, run, facts)
        began_s = float(facts.get("started_s", 0.0))
        sizes = {} if settings.is_campaign else self.sizes()
        done = {name: at_s for name, at_s in times_of(self.places.records, ".json").items() if name in sizes}
        failed = sorted(self.failed(sizes.keys() - done.keys(), run), key=lambda failure: failure.time_s)
        gone = done.keys() | {failure.participant for failure in failed}
        running = {} if alive is False else self.running(sizes.keys() - gone, began_s)
        waiting = [sizes[name] for name in sizes.keys() - gone - running.keys()]
        ended = self.ended({name: at_s for name, at_s in done.items() if at_s >= began_s}, sizes)
        now_s = time.time()
        at_once = max(1, facts.get("parallelism") or len(running))  # a cluster has no such number
        left = None
        if alive is not False and (waiting or running):
            beginning = [(sizes[name], max(0.0, now_s - since_s)) for name, since_s in running.items()]
            left = remaining(sorted(waiting, reverse=True), beginning, at_once, ended, usual_s(settings), now_s)
        return Look(
            time_s=now_s,
            run=run,
            host=str(facts.get("host", "")),
            started_s=began_s,
            ended_s=facts.get("ended_s"),
            alive=alive,
            succeeded=bool(facts.get("succeeded")),
            everyone=len(sizes) if sizes else None,
            done=len(done),
            running=running,
            failed=failed,
            nodes=nodes_of(self.places, run) if alive is not False and facts.get("elsewhere") else {},
            steps=[] if alive is False else read_steps(self.places, run),
            rooms=rooms_of(settings, bool(facts.get("elsewhere"))),
            left=left,
        )

    def sizes(self) -> dict[str, int]:
        """Everyone whom the index selects, with the size of the images, bytes; nobody before there is an index."""
        table = self.places.index / "images.tsv"
        if not table.is_file():
            return {}
        try:
            selected = selected_by(table)
        except (FileNotFoundError, NeurotierError):
            return {}
        return {name: sum(image.size_bytes or 0 for image in images) for name, images in selected.items()}

    def failed(self, names: set[str], run: str) -> Iterator[Failure]:
        """Those of some participants who have failed in a run."""
        for name, at_s in times_of(self.places.failures, ".json").items():
            with suppress(OSError, InputError, LookupError, TypeError, ValueError):
                data = read_whatever(self.places.failure(name))
                if str(data["run"]) == run and name in names:
                    yield Failure(name, str(data["reason"]), at_s)

    def running(self, names: set[str], began_s: float) -> dict[str, float]:
        """Those of some participants whose logs this run has begun, and when, s since 1970."""
        begun = times_of(self.places.logs / "analyze_participant", ".log")
        return {
            name: self.since_s(name, begun[name]) for name in sorted(names & begun.keys()) if begun[name] >= began_s
        }

    def since_s(self, name: str, log_s: float) -> float:
        """Since when a participant is analysed, s since 1970: by its work folder, if that is seen from here, else as
        long as this watcher knows; what a tool prints goes to the log, whose time so is no beginning."""
        with suppress(OSError):
            return os.lstat(self.places.work_of(name) / OWNER).st_mtime
        return self.first_seen.setdefault(name, log_s) if self.first_seen.get(name, log_s) <= log_s else log_s

    def ended(self, done: Mapping[str, float], sizes: Mapping[str, int]) -> list[Ended]:
        """What the latest who have ended took."""
        found = []
        for name in sorted(done, key=done.__getitem__)[-EXEMPLARY:]:
            with suppress(OSError, InputError, LookupError, TypeError, ValueError):
                phases = read_whatever(self.places.record(name))["phases"]
                start_s, end_s = min(row["start_s"] for row in phases), max(row["end_s"] for row in phases)
                found.append(Ended(sizes[name], float(start_s), float(end_s)))
        return found


def times_of(root: Path, suffix: str) -> dict[str, float]:
    """Participants who have a file below a folder, and when it was written, s since 1970."""
    found = {}
    for folder, _, names in os.walk(root):
        for name in names:
            if name.endswith(suffix) and not name.startswith("."):
                with suppress(OSError):
                    file = Path(folder, name)
                    found[participant_of(file, root)] = os.lstat(file).st_mtime
    return found


def latest_run(places: Places) -> tuple[str, dict[str, Any]]:
    """The run that began last, and what it has noted of itself.

    Raises
    ------
    StateError
        If that is damaged.
    """
    try:
        run = read_text(places.state, places.latest_run.name, str(places.latest_run)).strip()
    except (InputError, OSError):
        run = ""
    try:
        return run, dict(read_json(places.runs / f"{run}.json"))
    except FileNotFoundError:
        return run, {}


def read_whatever(file: Path) -> Any:
    """The JSON in a file below the results, which somebody may have replaced by what blocks its reader.

    Raises
    ------
    InputError, OSError, ValueError
        If there is none.
    """
    return json.loads(read_text(file.parent, file.name, str(file), limit_bytes=LARGEST_BYTES))


def lives(places: Places, run: str, facts: Mapping[str, Any]) -> bool | None:
    """Whether a run goes on; ``None`` if its host cannot be asked from here."""
    if not facts:
        return None if run else False  # it has its name, and clears up what earlier ones have left
    if "ended_s" in facts:
        return False
    if facts.get("host") != socket.gethostname():
        return None
    return runner(places.runs / f"{run}.json") is not None


def usual_s(settings: Settings) -> Callable[[int], float]:
    """What a participant usually takes by the size of its images, bytes, in s; of an app nothing is known."""
    if settings.app.image:
        return lambda _: 1.0
    from neurotier.analysis.tools import make_tool

    tool = make_tool(settings.tool)
    return lambda size_bytes: tool.expected_s(size_bytes / MEGABYTE)


def nodes_of(places: Places, run: str) -> dict[str, int]:
    """Jobs of a run on a cluster that have begun and not ended, by node."""
    return dict(Counter(str(note["node"]) for note in read_notes(places, run) if "ended_s" not in note))


def rooms_of(settings: Settings, elsewhere: bool) -> list[Room]:
    """The tiers of a placement, and what is free on them; not on those that each node has for itself."""
    roles: dict[str, list[str]] = {}
    for role, name in settings.placement.items():
        if role != "images" or settings.image:
            roles.setdefault(name, []).append(role)
    rooms = []
    for name, of in roles.items():
        free_bytes = size_bytes = None
        if not (elsewhere and on_nodes(settings, name)) and not settings.tiers[name].node:
            with suppress(OSError, NeurotierError):
                tier = Tier.from_settings(settings.tiers[name])
                facts = os.statvfs(tier.path)
                free_bytes = tier.free_bytes()
                size_bytes = min(facts.f_blocks * facts.f_frsize, tier.capacity_bytes or sys.maxsize)
        rooms.append(Room(name, of, free_bytes, size_bytes))
    return rooms
