"""Looking at a run: who is done, running, failed and left, what its steps are doing, where there is room.

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
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

from neurotier.core.errors import InputError, NeurotierError
from neurotier.core.foreign import read_text
from neurotier.core.places import Places, participant_of
from neurotier.core.settings import Settings
from neurotier.core.tiers import Tier, on_nodes
from neurotier.core.work_folders import OWNER
from neurotier.run.adoption import latest_run
from neurotier.run.jobs import load_settings, run_facts
from neurotier.run.journal import StepNote, read_notes, read_steps
from neurotier.run.participants import participants
from neurotier.run.stops import runner

LARGEST_BYTES = 16 << 20
"""Most that is read of a record: one lists every file that an app has written."""

UNREADABLE = (OSError, InputError, LookupError, TypeError, ValueError)
"""What reading a file raises that is gone, damaged or planted; it is passed over."""


class Room(NamedTuple):
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
        How many participants there are; 0 while the dataset is not indexed, and of a campaign.
    done, running, failed
        Of these: how many are done; those that are being analysed, and since when, s since 1970, as far as their work
        folders are seen from here; and those that failed, with the reason, latest last.
    nodes
        Jobs by node, on a cluster.
    steps
        What goes on besides participants, and how far it is.
    rooms
        Tiers in use.
    left_s
        How long the participants will still take, s; ``None`` before one has ended.
    """

    time_s: float
    run: str
    host: str
    started_s: float
    ended_s: float | None
    alive: bool | None
    succeeded: bool
    everyone: int
    done: int
    running: Mapping[str, float | None]
    failed: Sequence[tuple[str, str]]
    nodes: Mapping[str, int]
    steps: Sequence[StepNote]
    rooms: Sequence[Room]
    left_s: float | None

    @property
    def waiting(self) -> int:
        """How many are neither done, running nor failed."""
        return max(0, self.everyone - self.done - len(self.running) - len(self.failed))


def look(results: Path) -> Look:
    """What is seen now of the latest run of a results folder: of a campaign, what its step tells of its runs.

    Raises
    ------
    SettingsError
        If no run has begun there.
    StateError
        If its settings or facts are damaged.
    """
    settings = load_settings(results)
    places = Places.from_settings(settings)
    run = latest_run(places)
    facts = run_facts(places, run)
    alive, began_s = lives(places, run, facts), float(facts.get("started_s", 0.0))
    everyone = set() if settings.is_campaign else names_in(places)
    done = {name: at_s for name, at_s in times_of(places.records, ".json").items() if name in everyone}
    failed = failures_of(places, run, everyone - done.keys())
    rest = everyone - done.keys() - {name for name, _ in failed}
    begun = {} if alive is False else times_of(places.logs / "analyze_participant", ".log")
    running = {name: since_s(places, name) for name in sorted(rest & begun.keys()) if begun[name] >= began_s}
    on_cluster, now_s = bool(facts.get("elsewhere")), time.time()
    return Look(
        time_s=now_s,
        run=run,
        host=str(facts.get("host", "")),
        started_s=began_s,
        ended_s=facts.get("ended_s"),
        alive=alive,
        succeeded=bool(facts.get("succeeded")),
        everyone=len(everyone),
        done=len(done),
        running=running,
        failed=failed,
        nodes=nodes_of(places, run) if on_cluster and alive is not False else {},
        steps=[] if alive is False else read_steps(places, run),
        rooms=rooms_of(settings, on_cluster),
        left_s=None
        if alive is False
        else left_s(places, {name: at_s for name, at_s in done.items() if at_s >= began_s}, len(running), len(rest)),
    )


def names_in(places: Places) -> set[str]:
    """Everyone whom the index selects; nobody before there is an index that can be read."""
    with suppress(OSError, NeurotierError):
        return set(participants(places)) if (places.index / "images.tsv").is_file() else set()
    return set()


def failures_of(places: Places, run: str, of: Iterable[str]) -> list[tuple[str, str]]:
    """Those of some participants that have failed in a run, and why; the latest last."""
    found, times = [], times_of(places.failures, ".json")
    for name in sorted(times.keys() & of, key=times.__getitem__):
        with suppress(*UNREADABLE):
            failure = read_whatever(places.failure(name))
            found += [(name, str(failure["reason"]))] if str(failure["run"]) == run else []
    return found


def since_s(places: Places, name: str) -> float | None:
    """Since when a participant is analysed, s since 1970: by its work folder, which may not be seen from here."""
    with suppress(OSError):
        return os.lstat(places.work_of(name) / OWNER).st_mtime
    return None


def left_s(places: Places, ended: Mapping[str, float], running: int, left: int) -> float | None:
    """How long participants will still take if they go on ending as often as so far; those that run count half.

    Parameters
    ----------
    places
        Of the results.
    ended
        Participants that have ended in this run, and when, s since 1970.
    running, left
        How many run, and how many run or wait.
    """
    if not ended or not left:
        return None
    with suppress(*UNREADABLE):
        first = read_whatever(places.record(min(ended, key=ended.__getitem__)))
        so_far_s = time.time() - min(float(phase["start_s"]) for phase in first["phases"])
        return max(0.0, so_far_s) * (left - running / 2) / (len(ended) + running / 2)
    return None


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


def read_whatever(file: Path) -> Any:
    """The JSON in a file below the results, which somebody may have replaced by what blocks its reader; raises what
    :data:`UNREADABLE` lists."""
    return json.loads(read_text(file.parent, file.name, LARGEST_BYTES))


def lives(places: Places, run: str, facts: Mapping[str, Any]) -> bool | None:
    """Whether a run goes on; ``None`` if its host cannot be asked from here."""
    if not facts:
        return None if run else False  # it has its name, and clears up what earlier ones have left
    if "ended_s" in facts:
        return False
    return runner(places.runs / f"{run}.json") is not None if facts.get("host") == socket.gethostname() else None


def nodes_of(places: Places, run: str) -> dict[str, int]:
    """Jobs of a run on a cluster that have begun and not ended, by node."""
    return dict(Counter(str(note["node"]) for note in read_notes(places, run) if "ended_s" not in note))


def rooms_of(settings: Settings, on_cluster: bool) -> list[Room]:
    """The tiers of a placement, and what is free on them; not on those that each node has for itself."""
    placement = {role: name for role, name in settings.placement.items() if role != "images" or settings.image}
    rooms = []
    for name in dict.fromkeys(placement.values()):
        free_bytes = size_bytes = None
        if not (on_cluster and on_nodes(settings, name)) and not settings.tiers[name].node:
            with suppress(OSError, NeurotierError):
                tier = Tier.from_settings(settings.tiers[name])
                facts = os.statvfs(tier.path)
                free_bytes = tier.free_bytes()
                size_bytes = min(facts.f_blocks * facts.f_frsize, tier.capacity_bytes or sys.maxsize)
        rooms.append(Room(name, [role for role in placement if placement[role] == name], free_bytes, size_bytes))
    return rooms
