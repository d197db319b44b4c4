"""The figure ``cpu_io``: CPU and I/O time per participant, and where it went by phase."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path

from neurotier.core.quantities import counted, percent, seconds, share_of, shorten
from neurotier.core.tables import Row
from neurotier.pages.kit import plot
from neurotier.pages.kit.findings import Finding
from neurotier.pages.kit.stacks import Kind
from neurotier.pages.kit.style import CPU_COLOUR, IO_COLOUR, write_figure
from neurotier.pages.report.data import Tables
from neurotier.pages.report.stacks import Stack, draw_stacks, note_on_tenths
from neurotier.pages.report.times import (
    LONGEST_NAME,
    NONE_FINISHED,
    ParticipantTime,
    present_phases,
)

COLUMNS = ("wall_s", "cpu_s", "io_s")
KINDS = (Kind("CPU time", CPU_COLOUR), Kind("I/O time", IO_COLOUR))


def finding(tables: Tables) -> Finding:
    """What CPU and I/O time share, and who was slowest."""
    times = tables.times
    if not times:
        return Finding(NONE_FINISHED, shown=False)
    slowest = times[0]
    name = shorten(slowest.participant, LONGEST_NAME)
    whom = name if len(times) == 1 else counted(len(times), "participant")
    wall_s, cpu_s, io_s = (sum(getattr(time, column) for time in times) for column in COLUMNS)
    cpu = share_of(cpu_s, wall_s)
    if cpu is None:
        return Finding(f"No time was measured for {whom}")
    if cpu > 1:
        share = f"CPU time is {percent(cpu)} of the wall time of {whom} (several cores at once)"
    elif cpu >= 0.5:
        share = f"CPU takes {percent(cpu)} of the time of {whom}"
    else:
        share = f"I/O takes {percent(share_of(io_s, wall_s))} of the time of {whom}"
    if len(times) == 1:
        return Finding(f"{share}, which took {seconds(slowest.wall_s)}")
    return Finding(f"{share}; the slowest, {name}, took {seconds(slowest.wall_s)}")


def draw(tables: Tables, stem: Path) -> None:
    """Draw CPU and I/O time of every participant, of whichever run; write SVG, PNG and TSV.

    Up to 40 participants get a bar each; more are ranked into one filled profile with the quartiles marked. More than
    200 are drawn as tenths, and the slowest 50 one by one.
    """
    times = tables.times
    write_figure(stem, finding(tables), table(times), lambda: figure_of(times), note(times))


def figure_of(times: Sequence[ParticipantTime]) -> plot.Figure:
    """The figure of at least one participant."""
    participants = [Stack(time.participant, time.wall_s, (time.cpu_s, time.io_s)) for time in times]
    phases = []
    for phase in present_phases(times):
        wall_s, *parts = (sum(time.phase(phase, column) for time in times) for column in COLUMNS)
        phases.append(Stack(phase, wall_s, parts))
    return draw_stacks(participants, phases, KINDS)


def note(times: Sequence[ParticipantTime]) -> str:
    """How I/O time is meant, and what was clipped."""
    text = "I/O time = wall - CPU, as published; it contains waiting for a core."
    below_zero = sum(time.io_s < 0 for time in times)
    if below_zero:
        text += (
            f" For {counted(below_zero, 'participant')} CPU exceeds wall time (several cores at once);"
            " I/O time below 0 is drawn as 0."
        )
    return text + note_on_tenths(len(times))


def table(times: Sequence[ParticipantTime]) -> Iterator[Row]:
    """The numbers behind the figure: one row per participant, slowest first, unclipped."""
    phases = present_phases(times)
    for time in times:
        yield {
            "participant": time.participant,
            "run": time.run,
            **{column: getattr(time, column) for column in COLUMNS},
            **{f"{phase}_{column}": time.phase(phase, column) for phase in phases for column in COLUMNS},
        }
