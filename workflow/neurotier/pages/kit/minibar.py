"""A bar in the cell of a table: what a difference consists of, longer to the right and shorter to the left."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass


@dataclass(frozen=True)
class Piece:
    """A part of a bar: where it begins and how long it is, % of the cell; its colour, and what it says on hover."""

    left: float
    width: float
    colour: str
    title: str


@dataclass(frozen=True)
class MiniBar:
    """A bar: where its zero is, % of the cell, and its pieces."""

    zero: float
    pieces: Sequence[Piece]


def mini_bars(
    rows: Sequence[Mapping[str, float]], colours: Mapping[str, str], words: Callable[[str, float], str]
) -> list[MiniBar]:
    """Bars on one scale.

    Parameters
    ----------
    rows
        The parts of each bar by name; those below 0 stand at the left of its zero.
    colours
        Colour of each part, in the order in which they are drawn from the zero outwards.
    words
        What a part says on hover, from its name and its value.

    Examples
    --------
    >>> rows = [{"io": 3.0, "cpu": -1.0}, {"io": 1.0}]
    >>> bar, _ = mini_bars(rows, {"cpu": "blue", "io": "red"}, lambda name, value: f"{name} {value:+.0f} s")
    >>> bar.zero, [(piece.left, piece.width, piece.title) for piece in bar.pieces]
    (25.0, [(0.0, 25.0, 'cpu -1 s'), (25.0, 75.0, 'io +3 s')])
    """
    high = max([0.0, *(sum(max(0.0, value) for value in row.values()) for row in rows)])
    low = max([0.0, *(sum(max(0.0, -value) for value in row.values()) for row in rows)])
    scale = 100 / (high + low or 1.0)
    bars = []
    for row in rows:
        left = right = low * scale
        pieces = []
        for name, colour in colours.items():
            value = row.get(name, 0.0)
            width = abs(value) * scale
            left -= width if value < 0 else 0
            if value:
                start = left if value < 0 else right
                pieces.append(Piece(round(start, 3), round(width, 3), colour, words(name, value)))
            right += width if value > 0 else 0
        bars.append(MiniBar(round(low * scale, 3), pieces))
    return bars
