"""Texts that several pages use."""

from __future__ import annotations

from collections.abc import Iterable

from neurotier.core.configuration import read_yaml
from neurotier.core.installed import ROOT
from neurotier.core.quantities import percent, seconds
from neurotier.pages.kit.contrasts import CHANCE, LEAST
from neurotier.pages.kit.page import Section
from neurotier.storage.spread import Spread

MEANINGS = {
    "valid": "of a run: its times are fit for comparison. It was not stopped, it did all participants, the machine did"
    " not swap, and other programs took little of its CPU time.",
    "makespan": "of a run: from the earliest start of a participant job to the latest end.",
    "on its device": "of a run: its makespan, and what it took after it to bring all that it wrote to the device.",
    "oversubscribed": "of a run: it had more jobs at a time than there are CPUs, so that they waited for a core. Its"
    " times are not those of the storage alone.",
    "sure": f"of a difference: chance alone makes one as large in {percent(CHANCE)} of such comparisons at most. Fewer"
    f" than {LEAST} repetitions are never sure.",
    "not told apart": "of two conditions: their runs differ by no more than chance alone may make them differ, so that"
    " either may be the faster one.",
    "robust z": "of a brain volume: its distance from the median of the dataset, in units of the usual distance.",
}
"""Explanations of words that pages use and not everybody knows."""


def words(*names: str) -> Section:
    """Explanations of some words, folded, where a reader meets them first."""
    return Section(facts={name: MEANINGS[name] for name in names}, folded=f"What is meant by {', '.join(names)}")


def own_reference() -> str:
    """Authors, year and address of neurotier as ``CITATION.cff`` has them."""
    entry = read_yaml((ROOT / "CITATION.cff").read_text())
    authors = [one.get("name") or f"{one['given-names']} {one['family-names']}" for one in entry["authors"]]
    known = [*authors, str(entry["date-released"])[:4], entry.get("url") or entry.get("repository-code")]
    return ", ".join(filter(None, known))


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


def between(texts: Iterable[str]) -> str:
    """The first and the last of at least one text, or both in one.

    >>> between(["2 s", "3 s", "4 s"]), between(["2 s"])
    ('2 s to 4 s', '2 s')
    """
    first, *_, last = [*texts] * 2
    return first if first == last else f"{first} to {last}"
