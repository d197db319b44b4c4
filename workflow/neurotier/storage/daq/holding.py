"""What a tier keeps up with: the points of one engine on one tier, by number of writers."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from neurotier.core.quantities import counted, rate, seconds, size
from neurotier.core.tables import Row, gathered
from neurotier.storage.spread import Spread, spread
from neurotier.storage.workload.records import measured_rows


@dataclass(frozen=True)
class Held:
    """One number of writers, over the repetitions.

    Attributes
    ----------
    share
        Share of its rate that a writer reached, on average.
    throughput
        Of all writers together, bytes/s.
    buffer
        Buffer that they need, bytes; ``None`` if unknown.
    late
        Most writers that fell behind.
    input_bytes_per_s
        Rate at which data came to all of them, bytes/s.
    """

    share: Spread
    throughput: Spread
    buffer: Spread | None
    late: int
    input_bytes_per_s: int


Line = dict[int, Held]
"""By the number of writers, ascending."""


def lines(rows: Sequence[Row]) -> dict[str, Line]:
    """What was measured, by tier and engine, in the order of the table."""
    of_lines = gathered((line_name(row), row) for row in measured_rows(rows))
    return {
        name: {
            writers: Held(
                Spread(tuple(row["writer_mean_bytes_per_s"] / row["rate_bytes_per_s"] for row in members)),
                Spread.of(members, "throughput_bytes_per_s"),
                spread(members, "buffer_bytes"),
                max(row["late_writers"] for row in members),
                members[0]["input_bytes_per_s"],
            )
            for writers, members in sorted(gathered((row["writers"], row) for row in some).items())
        }
        for name, some in of_lines.items()
    }


def line_name(row: Row) -> str:
    """Tiers and engine of a point."""
    return f"{row['over'].replace('+', ' + ')}, {row['engine']}"


def most_held(line: Line) -> int:
    """The most writers that keep their rate, as all smaller measured numbers do; 0 if none do."""
    held = 0
    for writers, one in line.items():
        if one.late:
            break
        held = writers
    return held


def answer(name: str, line: Line, target_s: float) -> str:
    """How many writers a tier keeps up with, and how large a buffer the largest number of them needs."""
    held, most = most_held(line), max(line)
    each = rate(line[most].input_bytes_per_s / most)
    if held == most:
        text = f"{name} holds {counted(held, 'writer')} at {each}, the most that were tried"
    elif held:
        text = f"{name} holds {counted(held, 'writer')} at {each}"
    else:
        text = f"{name} does not hold {counted(min(line), 'writer')} at {each}"
    buffer = line[most].buffer
    if buffer is None:
        return f"{text}; which buffer {counted(most, 'writer')} need{'s' * (most == 1)} cannot be told"
    return (
        f"{text}; {counted(most, 'writer')} need{'s' * (most == 1)} a buffer of"
        f" {size(buffer.median)} for {seconds(target_s)}"
    )
