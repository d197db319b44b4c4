"""``neurotier watch RESULTS``: a screen that follows a run, or a line every so often where there is no terminal."""

from __future__ import annotations

import shutil
import sys
import time
from collections.abc import Iterator
from pathlib import Path

from neurotier.core.errors import SettingsError
from neurotier.core.quantities import about, clock, counted, first_of, seconds, shorten, size
from neurotier.watch.looking import Look, look

UP, CLEAR = "\x1b[{}A", "\x1b[J"
"""What has a terminal's cursor go up by so many lines, and clear what is below it."""

PAUSE = 4.0
"""Least pause between two looks, by how long the last one took: 0.2 s for 2,000 participants, 8 s for 68,500."""

BAR = 24
FAILURES_SHOWN, STEPS_SHOWN, PARTICIPANTS_SHOWN, NODES_SHOWN = 5, 6, 6, 12
LINE = 160


def watch(results: Path, every_s: float, once: bool) -> int:
    """Show the latest run of a results folder until it has ended; the exit code of the process.

    Parameters
    ----------
    results
        The results folder.
    every_s
        How often it is looked at, s; less often where a look takes more than a fifth of that.
    once
        Look once.

    Returns
    -------
    int
        0 if the run has done all that it was asked for, or one look was; else 1.

    Raises
    ------
    SettingsError
        If no run has begun there, or the time is none.
    """
    if not every_s > 0:
        raise SettingsError("is no time", where=f"--every {every_s:g}", fix="give 1, for example")
    shown = 0
    try:
        while True:
            began_s = time.monotonic()
            seen = look(results)
            shown = show(seen, str(results), shown)
            if once:
                return 0
            if seen.alive is False:
                return 0 if seen.succeeded else 1
            time.sleep(max(every_s, PAUSE * (time.monotonic() - began_s)))
    except (KeyboardInterrupt, BrokenPipeError):
        return 0


def show(seen: Look, results: str, above: int) -> int:
    """Show a look, on a terminal in place of the one before it, which has so many lines; how many this one has."""
    if not sys.stdout.isatty():
        print("; ".join(printable(text) for *_, text in rows(seen, results) if text), flush=True)
        return 0
    columns, height = shutil.get_terminal_size()
    whole = [printable(f"{name:<14}{text}") for name, text, _ in rows(seen, results) if text]
    lines = [text[: columns - 1] for text in whole[: max(1, height - 1)]]
    print((UP.format(above) + "\r" if above else "") + CLEAR + "\n".join(lines), flush=True)
    return len(lines)


def rows(seen: Look, results: str) -> Iterator[tuple[str, str, str]]:
    """A look as rows: a name, what a screen says, and what a line in a log says; where that is empty, nothing."""
    at = time.strftime("%H:%M:%S", time.localtime(seen.time_s))
    yield "run", f"{results}: {seen.run or 'none'}, {state(seen)}", f"{at} {state(seen)}"
    if seen.everyone:
        full, failed = (BAR * count // seen.everyone for count in (seen.done, len(seen.failed)))
        counts = (
            f"{seen.done:,} of {seen.everyone:,} done, {len(seen.running):,} running, {len(seen.failed):,} failed, "
            f"{seen.waiting:,} waiting"
        )
        yield "participants", f"[{'#' * full}{'x' * failed}{'.' * (BAR - full - failed)}] {counts}", counts
    elif seen.alive is not False:
        yield "participants", "not known yet", "participants not known yet"
    if seen.left_s is not None:
        yield "left", f"about {about(seen.left_s)}, without tables and pages", f"about {about(seen.left_s)} left"
    elif seen.alive is not False and (seen.waiting or seen.running):
        yield "left", "not known before the first participant has ended", ""
    longest_first = sorted(seen.running, key=lambda name: seen.running[name] or seen.time_s)
    since = {name: seen.time_s - at_s for name, at_s in seen.running.items() if at_s is not None}
    names = [f"{name} {seconds(max(0.0, since[name]))}" if name in since else name for name in longest_first]
    yield "running", first_of(names, PARTICIPANTS_SHOWN), ""
    for count, step in enumerate(seen.steps[:STEPS_SHOWN]):
        lasts = seconds(seen.time_s - step.started_s)
        told = f": {step.told}" if step.told else ""
        yield "step", f"{step.name}, {lasts}{told}", f"{step.name}: {step.told or lasts}" if count < 2 else ""
    for name, roles, free_bytes, size_bytes in seen.rooms:
        free = "not seen from here" if free_bytes is None else f"{size(free_bytes)} of {size(size_bytes)} free"
        known = "" if free_bytes is None else f"{name} {size(free_bytes)} free"
        yield "tier", f"{name} ({', '.join(roles)}): {free}", known
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
    if not seen.started_s:
        return "is starting"
    lasted_s = (seen.ended_s or seen.time_s) - seen.started_s
    words = clock(lasted_s) or seconds(round(max(0.0, lasted_s)))
    if seen.ended_s is not None:
        return f"{'done' if seen.succeeded else 'ended, and not all was done,'} after {words}"
    if seen.alive is False:
        return f"stopped without an end; the same command goes on (began {words} ago)"
    return f"for {words}" + (f" on {seen.host}, which cannot be asked from here" if seen.alive is None else "")


def printable(text: str) -> str:
    """A text without what would move a terminal's cursor: reasons of failures contain what tools have printed.

    >>> printable("red \\x1b[31m alert")
    'red ?[31m alert'
    """
    return "".join(character if character.isprintable() else "?" for character in text)
