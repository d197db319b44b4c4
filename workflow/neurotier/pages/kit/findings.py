"""Words that several pages use."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import TypeVar

from neurotier.core.quantities import number, seconds
from neurotier.core.spread import Spread

Key = TypeVar("Key")
Value = TypeVar("Value")


def gathered(pairs: Iterable[tuple[Key, Value]]) -> dict[Key, list[Value]]:
    """What belongs to each key, all in order.

    >>> gathered([("a", 1), ("b", 2), ("a", 3)])
    {'a': [1, 3], 'b': [2]}
    """
    found: dict[Key, list[Value]] = {}
    for key, value in pairs:
        found.setdefault(key, []).append(value)
    return found


def at_once(parallelism: int) -> str:
    """How many jobs were to run at once.

    >>> at_once(25)
    '25 at once'
    """
    return f"{parallelism:,} at once"


def spread_text(spread: Spread) -> str:
    """Median and range of times, s.

    >>> spread_text(Spread((1253.0, 1300.0, 1244.0))), spread_text(Spread((31.24,)))
    ('1,253 s (1,244 to 1,300, 3 runs)', '31.2 s (1 run)')
    """
    median, low, high = (seconds(value).removesuffix(" s") for value in (spread.median, spread.low, spread.high))
    count = len(spread.values)
    return f"{median} s ({low} to {high}, {count} runs)" if count > 1 else f"{median} s (1 run)"


def times_text(ratio: float) -> str:
    """A ratio with sensible digits.

    >>> times_text(2.181), times_text(14.2)
    ('2.18', '14.2')
    """
    return number(ratio, 2 if ratio < 9.995 else 1)


def between(values: Iterable[float], said: Callable[[float], str]) -> str:
    """The least and the greatest of at least one value in words, or both in one.

    >>> between([4.0, 2.0], times_text), between([2.001, 2.0], times_text)
    ('2.00 to 4.00', '2.00')
    """
    ordered = sorted(values)
    return " to ".join(dict.fromkeys([said(ordered[0]), said(ordered[-1])]))
