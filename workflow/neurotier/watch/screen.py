"""What is seen of a run, as a screen for a terminal and as a line for a log."""

from __future__ import annotations

import time

from neurotier.advice.words import interval
from neurotier.core.quantities import clock, counted, first_of, seconds, shorten, size
from neurotier.watch.looking import Look, Room

BAR = 24
FAILURES_SHOWN, STEPS_SHOWN, PARTICIPANTS_SHOWN, NODES_SHOWN = 5, 6, 6, 12
LINE = 160


def line(look: Look) -> str:
    """All of it in one line, for a log."""
    parts = [*filter(None, [state(look), counts(look)])]
    if look.left is not None:
        parts.append(f"about {left_words(look)} left")
    parts += [f"{step.name}: {step.told or seconds(look.time_s - step.started_s)}" for step in look.steps[:2]]
    parts += [f"{room.name} {size(room.free_bytes)} free" for room in look.rooms if room.free_bytes is not None]
    if look.nodes:
        parts.append(counted(len(look.nodes), "node"))
    if look.failed:
        last = look.failed[-1]
        parts.append(f"last failure: {last.participant}: {shorten(last.reason, LINE)}")
    return f"{time.strftime('%H:%M:%S', time.localtime(look.time_s))} {'; '.join(parts)}"


def screen(look: Look, results: str, width: int) -> list[str]:
    """All of it in lines of at most ``width`` characters."""
    rows: list[tuple[str, str]] = [("run", f"{results}: {look.run or 'none'}, {state(look)}")]
    if counts(look):
        rows.append(("participants", bar(look) + counts(look)))
    if look.left is not None:
        rows.append(("left", f"about {left_words(look)}, without tables and pages"))
    elif look.alive is not False and (look.waiting or look.running):
        rows.append(("left", "not known before the first participant has ended"))
    if look.running:
        longest_first = sorted(look.running.items(), key=lambda one: one[1])
        names = [f"{name} {seconds(max(0.0, look.time_s - at_s))}" for name, at_s in longest_first]
        rows.append(("running", first_of(names, PARTICIPANTS_SHOWN)))
    for step in look.steps[:STEPS_SHOWN]:
        told = f": {step.told}" if step.told else ""
        rows.append(("step", f"{step.name}, {seconds(look.time_s - step.started_s)}{told}"))
    if look.nodes:
        names = [f"{name} {counted(jobs, 'job')}" for name, jobs in sorted(look.nodes.items())]
        rows.append(("nodes", first_of(names, NODES_SHOWN)))
    rows += [("tier", room_words(room)) for room in look.rooms]
    rows += [
        ("failed", f"{failure.participant}: {failure.reason}")
        for failure in list(reversed(look.failed))[:FAILURES_SHOWN]
    ]
    if len(look.failed) > FAILURES_SHOWN:
        rows.append(("", f"and {len(look.failed) - FAILURES_SHOWN} more, in state/failures"))
    return [printable(f"{name:<14}{text}")[:width] for name, text in rows]


def state(look: Look) -> str:
    """Whether the run goes on, and for how long."""
    if not look.run:
        return "no run has begun"
    if look.ended_s is not None:
        what = "done" if look.succeeded else "ended, and not all was done,"
        return f"{what} after {time_words(look.ended_s - look.started_s)}"
    if not look.started_s:
        return "is starting"
    words = time_words(look.time_s - look.started_s)
    if look.alive is False:
        return f"stopped without an end; the same command goes on (began {words} ago)"
    return f"for {words}" + (f" on {look.host}, which cannot be asked from here" if look.alive is None else "")


def counts(look: Look) -> str:
    """How many participants are done, running, failed and left."""
    if look.everyone is None:
        return "" if look.alive is False else "participants not known yet"
    return (
        f"{look.done:,} of {look.everyone:,} done, {len(look.running):,} running, {len(look.failed):,} failed, "
        f"{look.waiting:,} waiting"
    )


def bar(look: Look) -> str:
    """The share that is done and that failed, as a bar; nothing while nobody knows of what."""
    if not look.everyone:
        return ""
    full, failed = (BAR * count // look.everyone for count in (look.done, len(look.failed)))
    return "[" + "#" * full + "x" * failed + "." * (BAR - full - failed) + "] "


def left_words(look: Look) -> str:
    """The time left, with its interval."""
    left = look.left
    assert left is not None  # noqa: S101  # for the type checker: callers have looked
    return interval({"predicted_s": left.usual_s, "low_s": left.low_s, "high_s": left.high_s})


def room_words(room: Room) -> str:
    """A tier, its roles, and what is free on it."""
    roles = ", ".join(room.roles)
    if room.free_bytes is None:
        return f"{room.name} ({roles}): not seen from here"
    return f"{room.name} ({roles}): {size(room.free_bytes)} of {size(room.size_bytes)} free"


def time_words(time_s: float) -> str:
    """A time in minutes, where it is long."""
    return clock(time_s) or seconds(round(max(0.0, time_s)))


def printable(text: str) -> str:
    """A text without what would move a terminal's cursor: reasons of failures contain what tools have printed.

    >>> printable("red \\x1b[31m alert")
    'red ?[31m alert'
    """
    return "".join(character if character.isprintable() else "?" for character in text)
