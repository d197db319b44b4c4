"""``neurotier watch RESULTS``: a screen that follows a run, or a line now and then if there is no terminal.

Which participants are done, running, failed or waiting, and how far the run's steps are, is read from the results
folder, so that any user who may read it can watch from any node. Free room is that of the tiers seen from this node.
Nothing is changed or locked.
"""

from __future__ import annotations

import json
import os
import shutil
import socket
import sys
import time
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from contextlib import suppress
from pathlib import Path
from threading import TIMEOUT_MAX
from typing import Any

from neurotier.core.errors import InputError, NeurotierError, SettingsError
from neurotier.core.files import Facts
from neurotier.core.foreign import read_text
from neurotier.core.places import Places, participant_of
from neurotier.core.private import OWNER
from neurotier.core.processes import SIGNALS
from neurotier.core.quantities import about, clock, counted, first_of, seconds, shorten, size
from neurotier.core.settings import Settings
from neurotier.core.tables import grouped
from neurotier.core.tiers import is_per_node, tier_named
from neurotier.run.adoption import latest_run
from neurotier.run.jobs import load_settings, run_facts
from neurotier.run.journal import LARGEST_BYTES, read_notes, read_steps
from neurotier.run.participants import selected_in
from neurotier.run.stops import runner

UP, CLEAR = "\x1b[{}A", "\x1b[J"
"""Moves a terminal's cursor up some lines, and clears what is below it."""

PAUSE = 4.0
"""Least pause between two looks, per second of a look: it takes 0.2 s for 2,000 participants, 8 s for 68,500."""

BAR = 24
FAILURES_SHOWN, STEPS_SHOWN, PARTICIPANTS_SHOWN, NODES_SHOWN = 5, 6, 6, 12
LINE = 160

UNREADABLE = (OSError, InputError, LookupError, TypeError, ValueError)
"""Errors of reading a file that is gone, damaged or planted; such a file is skipped."""


def watch(results: Path, every_s: float, once: bool) -> int:
    """Show the latest run of a results folder until it has ended; returns the exit code of the process.

    Parameters
    ----------
    results
        The results folder.
    every_s
        Pause between two looks, s; longer if a look takes more than a quarter of that.
    once
        Look once.

    Returns
    -------
    int
        0 if the run has done all that it was asked for, or one look was; else 1.

    Raises
    ------
    SettingsError
        If no run has begun there, or ``every_s`` is not a valid time.
    """
    if not 0 < every_s <= TIMEOUT_MAX:
        raise SettingsError("is not a time", f"--every {every_s:g}", "give 1, for example")
    shown = 0
    try:
        while True:
            began_s = time.monotonic()
            seen = Look(results)
            shown = show(seen, str(results), shown)
            if once:
                return 0
            if seen.alive is False:
                return 0 if seen.facts.get("succeeded") else 1
            time.sleep(max(every_s, PAUSE * (time.monotonic() - began_s)))
    except (KeyboardInterrupt, BrokenPipeError):
        return 0


def show(seen: Look, results: str, above: int) -> int:
    """Show a look, on a terminal in place of the last one, which has ``above`` lines; returns its number of lines."""
    if not os.isatty(1):
        print("; ".join(printable(text) for *_, text in rows(seen, results) if text), flush=True)
        return 0
    columns, height = shutil.get_terminal_size()
    whole = [printable(f"{name:<14}{text}") for name, text, _ in rows(seen, results) if text]
    lines = [text[: columns - 1] for text in whole[: max(1, height - 1)]]
    print((UP.format(above) + "\r" if above else "") + CLEAR + "\n".join(lines), flush=True)
    return len(lines)


def rows(seen: Look, results: str) -> Iterator[tuple[str, str, str]]:
    """A look as rows: a name, the text for a screen, and the text for a line in a log; empty texts are left out."""
    at = time.strftime("%H:%M:%S", time.localtime(seen.time_s))
    yield "run", f"{results}: {seen.run or 'none'}, {state(seen)}", f"{at} {state(seen)}"
    if seen.everyone:
        full, failed = (BAR * count // seen.everyone for count in (seen.done, len(seen.failed)))
        counts = (
            f"{seen.done:,} of {seen.everyone:,} done, {len(seen.running):,} running, {len(seen.failed):,} failed, "
            f"{seen.waiting:,} waiting"
        )
        yield "participants", f"[{'#' * full}{'x' * failed}{'.' * (BAR - full - failed)}] {counts}", counts
    if seen.left_s is not None:
        yield "left", f"about {about(seen.left_s)}, without tables and pages", f"about {about(seen.left_s)} left"
    elif seen.alive is not False and (seen.waiting or seen.running):
        yield "left", "not known before the first participant has ended", ""
    longest_first = sorted(seen.running.items(), key=lambda one: one[1] or seen.time_s)
    names = [f"{name} {seconds(max(0.0, seen.time_s - at_s))}" if at_s else name for name, at_s in longest_first]
    yield "running", first_of(names, PARTICIPANTS_SHOWN), ""
    for count, step in enumerate(seen.steps[:STEPS_SHOWN]):
        lasts = seconds(seen.time_s - step.started_s)
        progress = f": {step.progress}" if step.progress else ""
        yield "step", f"{step.name}, {lasts}{progress}", f"{step.name}: {step.progress or lasts}" if count < 2 else ""
    for name, roles, free, of_size in seen.rooms:
        text = f"{free} of {of_size} free" if free else "not seen from here"
        yield "tier", f"{name} ({roles}): {text}", f"{name} {free} free" if free else ""
    nodes = [f"{name} {counted(jobs, 'job')}" for name, jobs in sorted(seen.nodes.items())]
    yield "nodes", first_of(nodes, NODES_SHOWN), counted(len(nodes), "node") if nodes else ""
    for count, (name, reason) in enumerate(reversed(seen.failed[-FAILURES_SHOWN:])):
        yield "failed", f"{name}: {reason}", "" if count else f"last failure: {name}: {shorten(reason, LINE)}"
    if len(seen.failed) > FAILURES_SHOWN:
        yield "", f"and {len(seen.failed) - FAILURES_SHOWN} more, in state/failures", ""


def state(seen: Look) -> str:
    """Whether the run goes on, and for how long."""
    if not seen.run:
        return "no run has begun"
    if "started_s" not in seen.facts:
        return "is starting"
    lasted_s = seen.facts.get("ended_s", seen.time_s) - seen.facts["started_s"]
    words = clock(lasted_s) or seconds(round(max(0.0, lasted_s)))
    if "ended_s" in seen.facts:
        return f"{'done' if seen.facts.get('succeeded') else 'ended, and not all was done,'} after {words}"
    if seen.alive is False:
        return f"stopped before its end; start the same command to continue (began {words} ago)"
    return f"for {words}" + ("" if seen.alive else f" on {seen.facts.get('host')}, whose processes cannot be seen here")


def printable(text: str) -> str:
    """A text without characters that move a terminal's cursor: reasons of failures contain tools' output.

    >>> printable("red \\x1b[31m alert")
    'red ?[31m alert'
    """
    return "".join(character if character.isprintable() else "?" for character in text)


# What is seen.


class Look:
    """The present state of the latest run of a results folder; of a campaign, what its step reports about its runs.

    Attributes
    ----------
    time_s
        When this was seen, s since 1970.
    run, facts
        The latest run, and what it has noted about itself.
    alive
        Whether it goes on; ``None`` if its end is not noted, and it is on another host, whose processes cannot be seen.
    everyone
        How many participants there are; 0 while the dataset is not indexed, and where the run is not for all of them
        (campaign, advise, probe...).
    done, running, failed, waiting
        How many of these are done; those that are being analysed, and since when, s since 1970, if their work folders
        can be seen from here; those that failed, with the reason, latest last; and how many are none of these.
    nodes
        Jobs by node, on a cluster.
    steps
        Steps that are running besides participants, and how far each of them is.
    rooms
        For each tier in use its name, its roles, and in words its free room and its size; these two are empty if they
        cannot be seen from here.
    left_s
        How long the participants will still take, s; ``None`` before one has ended.

    Raises
    ------
    SettingsError
        If no run has begun there.
    StateError
        If its settings or facts are damaged.
    """

    def __init__(self, results: Path) -> None:
        settings = load_settings(results)
        places = Places.from_settings(settings)
        self.run = latest_run(places)
        self.facts = run_facts(places, self.run)
        self.alive, began_s = run_is_alive(self.run, self.facts), self.facts.get("started_s", 0.0)
        goes_on, on_cluster = self.alive is not False, self.facts.get("elsewhere")
        everyone = set() if settings.is_campaign or self.facts.get("without_participants") else names_in(places)
        done = {name: at_s for name, at_s in times_of(places.records, ".json").items() if name in everyone}
        self.everyone, self.done = len(everyone), len(done)
        self.failed = failures_of(places, self.facts, everyone - done.keys())
        rest = everyone - done.keys() - dict(self.failed).keys()
        begun = times_of(places.logs / "analyze_participant", ".log") if goes_on else {}
        self.running = {name: since_s(places, name) for name in sorted(rest & begun.keys()) if begun[name] >= began_s}
        self.waiting = len(rest) - len(self.running)
        ended = {name: at_s for name, at_s in done.items() if at_s >= began_s and goes_on}
        notes = read_notes(places, self.run) if on_cluster and goes_on else []
        self.nodes = Counter(str(note["node"]) for note in notes if "ended_s" not in note)
        self.steps = read_steps(places, self.run) if goes_on else []
        self.rooms = list(rooms_of(settings, on_cluster))
        self.left_s = left_s(places, ended, len(self.running), len(rest))
        self.time_s = time.time()


def names_in(places: Places) -> set[str]:
    """All participants that the index selects; empty while there is no readable index."""
    with suppress(OSError, NeurotierError):
        if places.images_table.is_file():
            return set(selected_in(places))
    return set()


def failures_of(places: Places, facts: Facts, of: Iterable[str]) -> list[tuple[str, str]]:
    """Participants of a set that failed in a run with these facts, and why; the latest last. Until the run has noted
    its end, those that a signal ended may have been stopped with it."""
    found, times = [], times_of(places.failures, ".json")
    for name in sorted(times.keys() & of, key=times.__getitem__):
        with suppress(*UNREADABLE):
            failure = read_untrusted(places.failure(name))
            if failure["run"] == facts["run"] and ("ended_s" in facts or failure["exit_code"] - 128 not in SIGNALS):
                found.append((name, str(failure["reason"])))
    return found


def since_s(places: Places, name: str) -> float | None:
    """When the analysis of a participant began, s since 1970: as its work folder says, if it can be seen from here."""
    with suppress(OSError):
        return os.lstat(places.work_of(name) / OWNER).st_mtime
    return None


def left_s(places: Places, ended: Mapping[str, float], running: int, left: int) -> float | None:
    """How long participants will still take if they keep ending at the same rate; running ones count half.

    Parameters
    ----------
    places
        Of the results.
    ended
        Participants that have ended in this run, and when, s since 1970.
    running, left
        How many are running, and how many are running or waiting.
    """
    if ended and left:
        with suppress(*UNREADABLE):
            first = read_untrusted(places.record(min(ended, key=ended.__getitem__)))
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


def read_untrusted(file: Path) -> Any:
    """The JSON in a file below the results, which may have been replaced by something that blocks its reader; raises
    what :data:`UNREADABLE` lists. A record may be long: it lists every file that an app has written."""
    return json.loads(read_text(file.parent, file.name, LARGEST_BYTES))


def run_is_alive(run: str, facts: Facts) -> bool | None:
    """Whether a run goes on; ``None`` if it is on another host, whose processes cannot be seen from here."""
    if not facts:
        return None if run else False  # a run without facts is starting: it cleans up after earlier runs
    if "ended_s" in facts:
        return False
    return runner(facts) is not None if facts.get("host") == socket.gethostname() else None


def rooms_of(settings: Settings, on_cluster: object) -> Iterator[tuple[str, str, str, str]]:
    """The tiers of the placement, or of a campaign's placements: name, roles, free room and size, in words; the last
    two are empty for tiers that each node has for itself."""
    uses = grouped(
        (placed.get(role) or usual, role)
        for role, usual in settings.placement.items()
        if role != "images" or settings.image
        for placed in settings.campaign.placements.values() or [{}]
    )
    for name, roles in uses.items():
        free = whole = ""
        if not (on_cluster and is_per_node(settings, name)) and not settings.tiers[name].node:
            with suppress(OSError, NeurotierError):
                tier = tier_named(settings, name)
                free = size(tier.free_bytes())
                whole = size(min(shutil.disk_usage(tier.path).total, tier.capacity_bytes or sys.maxsize))
        yield name, ", ".join(dict.fromkeys(roles)), free, whole
