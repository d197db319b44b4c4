"""The figure ``cpu_io``: CPU and I/O time per participant, and where it went by phase."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from matplotlib.figure import Figure

from neurotier.core.quantities import counted
from neurotier.core.tables import Row
from neurotier.pages.kit.style import CPU_COLOUR, IO_COLOUR, empty_figure, house_style, save_figure, state
from neurotier.pages.report.findings import (
    NONE_FINISHED,
    ParticipantTime,
    cpu_io_finding,
    participant_times,
    present_phases,
)
from neurotier.pages.report.stacks import Part, Stack, draw_stacks


def draw_cpu_io(profile: Sequence[Row], stem: Path) -> None:
    """Draw CPU and I/O time of every participant in ``profile.tsv``, of whichever run; write SVG, PNG and TSV.

    Up to 40 participants get a bar each; more are ranked into one filled profile with the quartiles marked.
    """
    times = participant_times(profile)
    with house_style():
        figure = draw(times) if times else empty_figure(NONE_FINISHED)
        save_figure(figure, stem, table(times))


def draw(times: Sequence[ParticipantTime]) -> Figure:
    """The figure of at least one participant."""
    phases = present_phases(times)
    participants = Stack(
        [time.participant for time in times],
        [time.wall_s for time in times],
        parts([time.cpu_s for time in times], [time.io_s for time in times]),
    )
    wall_s, cpu_s, io_s = (
        [sum(time.phase(phase, column) for time in times) for phase in phases] for column in ("wall_s", "cpu_s", "io_s")
    )
    figure = draw_stacks(participants, Stack(phases, wall_s, parts(cpu_s, io_s)))
    state(figure, cpu_io_finding(times), note(times))
    return figure


def parts(cpu_s: Sequence[float], io_s: Sequence[float]) -> list[Part]:
    """The two parts of every bar."""
    return [Part("CPU time", CPU_COLOUR, cpu_s), Part("I/O time", IO_COLOUR, io_s)]


def note(times: Sequence[ParticipantTime]) -> str:
    """How I/O time is meant, and what was clipped."""
    text = "I/O time = wall - CPU, as published; it contains waiting for a core."
    below_zero = sum(time.io_s < 0 for time in times)
    if below_zero:
        text += (
            f" For {counted(below_zero, 'participant')} CPU exceeds wall time (several cores at once);"
            " I/O time below 0 is drawn as 0."
        )
    return text


def table(times: Sequence[ParticipantTime]) -> list[Row]:
    """The numbers behind the figure: one row per participant, slowest first, unclipped."""
    phases = present_phases(times)
    return [
        {
            "participant": time.participant,
            "run": time.run,
            **{column: getattr(time, column) for column in ("wall_s", "cpu_s", "io_s")},
            **{
                f"{phase}_{column}": time.phase(phase, column)
                for phase in phases
                for column in ("wall_s", "cpu_s", "io_s")
            },
        }
        for time in times
    ]
