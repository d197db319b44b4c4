"""Words that several pages use."""

from __future__ import annotations

from collections.abc import Callable, Iterable

from neurotier.core.quantities import number, seconds
from neurotier.storage.spread import Spread


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
    """A ratio with three significant digits.

    >>> times_text(0.468), times_text(5.153), times_text(14.2), times_text(239.6)
    ('0.47', '5.15', '14.2', '240')
    """
    return number(ratio, 2 if ratio < 9.995 else 1 if ratio < 99.95 else 0)


def from_to(texts: Iterable[str]) -> str:
    """The first and the last of at least one text, or both in one.

    >>> from_to(["2 s", "3 s", "4 s"]), from_to(["2 s"])
    ('from 2 s to 4 s', '2 s')
    """
    first, *_, last = [*texts, *texts]
    return first if first == last else f"from {first} to {last}"


def between(values: Iterable[float], said: Callable[[float], str]) -> str:
    """The least and the greatest of at least one value in words, or both in one.

    >>> between([4.0, 2.0], times_text), between([2.001, 2.0], times_text)
    ('2.00 to 4.00', '2.00')
    """
    ordered = sorted(values)
    return " to ".join(dict.fromkeys([said(ordered[0]), said(ordered[-1])]))
