"""Steps that are under way: each tells in a small file how far it is, which ``neurotier watch`` reads from any node."""

from __future__ import annotations

import json
import os
import socket
import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass, replace
from pathlib import Path

from neurotier.core.errors import InputError
from neurotier.core.files import remove_whatever, write_json
from neurotier.core.foreign import read_text
from neurotier.core.places import Places, escaped
from neurotier.core.processes import current_run

NOTE_S, SAY_S = 1.0, 30.0
"""How often a step may note how far it is, and how often it says so on the terminal, s."""

NOTE_BYTES = 64 << 10
"""Most that a note may hold."""


@dataclass(frozen=True)
class StepNote:
    """What a step has told of itself.

    Attributes
    ----------
    name
        Its rule, and which of its jobs it is.
    run, host
        The run that it belongs to, and where it works.
    started_s
        When it began, s since 1970.
    told
        How far it is, or what it said last.
    grows
        Folders that another program fills for it without a word, by whose sizes one sees how far it is.
    before_bytes
        What they took together before.
    """

    name: str
    run: str
    host: str
    started_s: float
    told: str = ""
    grows: Sequence[str] = ()
    before_bytes: int = 0


class Step:
    """A step that tells how far it is.

    Notes are for people who watch: if they cannot be written, the step goes on.

    Parameters
    ----------
    places
        Of the results.
    name
        What to call it.
    say
        Tells the user of the run.
    """

    def __init__(self, places: Places, name: str, say: Callable[[str], None]) -> None:
        self.file = places.under_way / f"{escaped(name)}.json"
        self.known = StepNote(name, current_run(), socket.gethostname(), time.time())
        self.say = say
        self.noted_s = self.said_s = time.monotonic()
        self.note()

    def tell(self, told: str) -> None:
        """Tell how far it is, as often as one likes: what comes too often is passed over."""
        now_s = time.monotonic()
        if now_s - self.said_s >= SAY_S:
            self.said_s = now_s
            self.say(f"{self.known.name}: {told}")
        if now_s - self.noted_s >= NOTE_S:
            self.noted_s = now_s
            self.note(told=told)

    def grows(self, *folders: Path, new: bool = True) -> None:
        """Have those who watch see how folders grow. Those that are not new are measured first, to tell by how much."""
        before_bytes = 0 if new else sum(map(allocated_bytes, folders))
        self.note(grows=[str(folder.absolute()) for folder in folders], before_bytes=before_bytes)

    def note(self, **more: object) -> None:
        """Note what is known, with something new."""
        self.known = replace(self.known, **more)  # type: ignore[arg-type]  # by the names of its fields
        with suppress(OSError):
            write_json(self.file, asdict(self.known), durable=False)

    def end(self) -> None:
        """Tell nothing any more."""
        with suppress(OSError):
            remove_whatever(self.file)


def allocated_bytes(path: Path) -> int:
    """Bytes that a file, or everything in a folder, takes; links are not followed, and what vanishes does not count."""
    total = 0
    with suppress(OSError):
        if path.is_symlink() or not path.is_dir():
            return path.lstat().st_blocks * 512
    for folder, _, files in os.walk(path):
        for name in files:
            with suppress(OSError):
                total += os.lstat(os.path.join(folder, name)).st_blocks * 512
    return total


def read_steps(places: Places, run: str) -> list[StepNote]:
    """What steps of a run tell of themselves, in order of their starts; what is damaged is passed over."""
    found = []
    for file in places.under_way.glob("*.json"):
        with suppress(InputError, OSError, LookupError, TypeError, ValueError):
            found.append(read_step(file))
    return sorted((step for step in found if step.run == run), key=lambda step: step.started_s)


def read_step(file: Path) -> StepNote:
    """A note; one of several errors if it is none."""
    data = json.loads(read_text(file.parent, file.name, str(file), InputError, NOTE_BYTES))
    return StepNote(
        name=str(data["name"]),
        run=str(data["run"]),
        host=str(data["host"]),
        started_s=float(data["started_s"]),
        told=str(data["told"]),
        grows=[str(folder) for folder in data["grows"]],
        before_bytes=int(data["before_bytes"]),
    )
