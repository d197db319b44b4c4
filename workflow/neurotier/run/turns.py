"""Turns: how the job that fetches images and those that analyse them tell each other, by small files.

A participant's *turn* comes when there is a slot for its analysis. What is fetched and waits for its turn is *ahead*.
The job that fetches notes who is there; a job that analyses takes the turn of a participant and waits for that note. If
nobody fetches, because that job was killed or is not part of this run, it fetches for itself: nobody waits for ever.
"""

from __future__ import annotations

import fcntl
import os
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

from neurotier.core.errors import KilledError, StateError
from neurotier.core.files import open_lock, read_json, write_json, write_text
from neurotier.core.places import Places, escaped

OVER = "~over"
"""End of the name of a file that tells that a turn is over; names of participants have no tilde."""

LOOK_S = 0.05
"""How often both sides look for what the other one says."""

LOOK_FOR_IMAGES_S = 1.0
"""How often, at last, a job that analyses looks for images: 25 of them may wait for long, on a tier that others use."""

SHOW_UP_S = 3.0
"""How long the job that fetches may take to show up: Snakemake starts it with the first that analyse, or before."""


def turns(places: Places) -> Path:
    """Folder with a file of each whose turn has come, or is over, until the job that fetches has heard it."""
    return places.fetch / "turns"


def fetching(places: Places) -> Path:
    """Lock of the job that fetches images."""
    return places.fetch / "fetching"


def analysing(places: Places) -> Path:
    """Lock that jobs which analyse share."""
    return places.fetch / "analysing"


def take_turn(places: Places, name: str) -> None:
    """Tell that there is a slot for a participant's analysis, whether or not its images are there."""
    write_text(turns(places) / escaped(name), "", durable=False)


def end_turn(places: Places, name: str) -> None:
    """Tell that the analysis of a participant is over, whatever became of it."""
    write_text(turns(places) / (escaped(name) + OVER), "", durable=False)


def hear_turns(places: Places) -> tuple[set[str], set[str]]:
    """Those whose turn has come, and those whose turn is over, since this was asked last."""
    come, over = set[str](), set[str]()
    with suppress(FileNotFoundError), os.scandir(turns(places)) as entries:
        for file in [entry.name for entry in entries if not entry.name.startswith(".")]:
            with suppress(FileNotFoundError):
                os.unlink(turns(places) / file)
                (over if file.endswith(OVER) else come).add(file.removesuffix(OVER).replace("%", "/"))
    return come, over


def note_fetched(places: Places, name: str, facts: dict[str, Any]) -> None:
    """Note that a participant's images are there, with what that took, or ``{"failed": code}``."""
    write_json(places.fetched(name), facts, durable=False)


def noted(places: Places, name: str) -> dict[str, Any] | None:
    """What was noted of a participant; ``None`` if nothing was."""
    with suppress(FileNotFoundError, StateError):
        return dict(read_json(places.fetched(name)))
    return None


@contextmanager
def working(lock: Path, shared: bool = False) -> Iterator[None]:
    """Let others know, for as long as this process works at it, that somebody fetches, or analyses."""
    descriptor = open_lock(lock)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_SH if shared else fcntl.LOCK_EX)
        yield
    finally:
        os.close(descriptor)


def works(lock: Path) -> bool:
    """Whether anybody works at what a lock stands for; who was killed does not. Nothing is made."""
    try:
        descriptor = os.open(lock, os.O_RDWR | os.O_NOFOLLOW | os.O_CLOEXEC)
    except FileNotFoundError:
        return False
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        return True
    finally:
        os.close(descriptor)
    return False


class Arrivals:
    """What a job that analyses knows of the images of those whose turn it has taken.

    Parameters
    ----------
    places
        Of the run.
    fetch
        Starts a process that fetches the images of a participant and notes it; the process's number.
    """

    def __init__(self, places: Places, fetch: Callable[[str], int]) -> None:
        self.places, self.fetch = places, fetch
        self.fetching: dict[int, str] = {}
        self.asked: dict[str, tuple[float, float]] = {}
        self.began_s = time.monotonic()

    def look(self, name: str) -> dict[str, Any] | None:
        """What was noted of a participant; ``None`` while its images are not there. Nobody else there, fetch them.

        The pause before the next look is as long as the wait so far, at most :data:`LOOK_FOR_IMAGES_S`.
        """
        now_s = time.monotonic()
        first_s, next_s = self.asked.get(name, (now_s, now_s))
        if now_s < next_s:
            return None
        self.asked[name] = first_s, now_s + min(LOOK_FOR_IMAGES_S, max(LOOK_S, now_s - first_s))
        facts = noted(self.places, name)
        if facts is not None or name in self.fetching.values():
            return facts
        if works(fetching(self.places)) or time.monotonic() < self.began_s + SHOW_UP_S:
            return None
        facts = noted(self.places, name)  # written just before the job that fetches ended
        if facts is None:
            self.fetching[self.fetch(name)] = name
        return facts

    def has_ended(self, pid: int, code: int) -> None:
        """Take note of a process that has ended; one that was killed has left no note."""
        name = self.fetching.pop(pid, None)
        if name is not None and code and not self.places.fetched(name).exists():
            note_fetched(self.places, name, {"failed": code if code > 0 else KilledError.exit_code})
