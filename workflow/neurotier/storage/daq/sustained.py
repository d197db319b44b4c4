"""How many writers a tier keeps up with, from the points of one engine on one tier."""

from __future__ import annotations

from itertools import takewhile
from typing import NamedTuple

from neurotier.core.quantities import counted, rate, seconds, size
from neurotier.core.tables import Row, Rows, grouped
from neurotier.storage.spread import Spread, measured_rows, spread


class Held(NamedTuple):
    """The results for one number of writers over the repetitions.

    Attributes
    ----------
    share
        Share of its rate that a writer reached on average.
    throughput
        Throughput of all writers together, bytes/s.
    buffer
        Buffer that they need, bytes; ``None`` if unknown.
    late
        Number of writers that fell behind, in the worst repetition.
    input_bytes_per_s
        Rate at which data arrived for all writers together, bytes/s.
    """

    share: Spread
    throughput: Spread
    buffer: Spread | None
    late: int
    input_bytes_per_s: int


Line = dict[int, Held]
"""Results by number of writers, ascending."""


def lines(rows: Rows) -> dict[str, Line]:
    """The measured results by tier and engine, in the order of the table."""
    of_lines = grouped((line_name(row), row) for row in measured_rows(rows))
    return {
        name: {
            writers: Held(
                Spread(tuple(row["writer_mean_bytes_per_s"] / row["rate_bytes_per_s"] for row in members)),
                Spread.of(members, "throughput_bytes_per_s"),
                spread(members, "buffer_bytes"),
                max(row["late_writers"] for row in members),
                members[0]["input_bytes_per_s"],
            )
            for writers, members in sorted(grouped((row["writers"], row) for row in some).items())
        }
        for name, some in of_lines.items()
    }


def line_name(row: Row) -> str:
    """The tiers and the engine of a point in words."""
    return f"{row['over'].replace('+', ' + ')}, {row['engine']}"


def most_held(line: Line) -> int:
    """The largest number of writers that keep their rate, and all smaller measured numbers too; 0 if there is none."""
    return max(takewhile(lambda writers: not line[writers].late, line), default=0)


def summary(name: str, line: Line, target_s: float) -> str:
    """A sentence on how many writers a tier keeps up with, and how large a buffer the largest number needs."""
    held, most = most_held(line), max(line)
    each = rate(line[most].input_bytes_per_s / most)
    text = f"{name} {'holds' if held else 'does not hold'} {counted(held or min(line), 'writer')} at {each}"
    text += ", the most that were measured" * (held == most)
    buffer, need = line[most].buffer, f"{counted(most, 'writer')} need{'s' * (most == 1)}"
    if buffer is None:
        return f"{text}; the buffer that {need} is unknown"
    return f"{text}; {need} a buffer of {size(buffer.median)} for {seconds(target_s)}"
