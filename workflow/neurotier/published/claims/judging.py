"""Verdicts about claims: what was said, what the logs say, and whether that agrees."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from neurotier.core.quantities import number
from neurotier.published.claims.facts import AbsentError, Facts

HOLDS, PARTLY, CONTRADICTED, UNKNOWN = "holds", "holds partly", "contradicted", "cannot be told"
VERDICTS = (HOLDS, PARTLY, CONTRADICTED, UNKNOWN)

AGREES, NEAR = 0.1, 0.3
"""A figure agrees that is within a tenth of what was said, and is near within three."""


@dataclass(frozen=True)
class Judgement:
    """What the logs say of a claim."""

    figures: str
    verdict: str


Judge = Callable[[Facts], Judgement]


@dataclass(frozen=True)
class Claim:
    """A worded claim: its place in the paper, a few of its words, and who judges it."""

    place: str
    quote: str
    judge: Judge

    def judged(self, facts: Facts) -> Judgement:
        """The judgement; without the runs that it is about, it cannot be told."""
        try:
            return self.judge(facts)
        except AbsentError as missing:
            return Judgement(str(missing), UNKNOWN)


def figure(value: float) -> str:
    """A figure with about three significant digits.

    >>> figure(12.004), figure(0.9876), figure(439.7)
    ('12.0', '0.99', '440')
    """
    return number(value, 2 if abs(value) < 9.995 else 1 if abs(value) < 99.95 else 0)


def of_figures(said: float | tuple[float, float], found: Mapping[str, float], unit: str = " times") -> Judgement:
    """A claim of one figure, or of a range, for one or several cases.

    It holds if all agree, is contradicted if none is even near, and else holds partly.

    >>> of_figures(2.0, {"DRAM": 2.1, "SSD": 4.0}, " s").verdict
    'holds partly'
    >>> of_figures((1.4, 1.6), {"": 1.5}).verdict, of_figures(2.0, {"": 4.0}).verdict
    ('holds', 'contradicted')
    """
    low, high = said if isinstance(said, tuple) else (said, said)
    away = [max(low / value, value / high, 1.0) - 1 for value in found.values()]
    verdict = HOLDS if max(away) <= AGREES else CONTRADICTED if min(away) > NEAR else PARTLY
    return Judgement(listed(found, unit), verdict)


def of_truths(truths: Sequence[bool], figures: str) -> Judgement:
    """A claim of several parts that are true or not.

    >>> of_truths([True, False], "").verdict
    'holds partly'
    """
    return Judgement(figures, HOLDS if all(truths) else PARTLY if any(truths) else CONTRADICTED)


def of_each(found: Mapping[str, float], is_so: Callable[[float], bool], about: str = "") -> Judgement:
    """A claim that is true or not of each ratio of several; ``about`` says what they are ratios of.

    >>> of_each({"DRAM": 1.2, "SSD": 0.9}, lambda value: value > 1, "over Eq. (1): ")
    Judgement(figures='over Eq. (1): DRAM: 1.20 times; SSD: 0.90 times', verdict='holds partly')
    """
    return of_truths([is_so(value) for value in found.values()], about + listed(found, " times"))


def of_all(judgement: Judgement, missing: Sequence[str]) -> Judgement:
    """A judgement about all of several cases: while some have no run, it can be contradicted and does not hold yet.

    >>> of_all(Judgement("DRAM: 2.0", HOLDS), ["Isilon"])
    Judgement(figures='DRAM: 2.0; no run: Isilon', verdict='cannot be told')
    """
    if not missing:
        return judgement
    verdict = UNKNOWN if judgement.verdict == HOLDS else judgement.verdict
    return Judgement(f"{judgement.figures}; no run: {', '.join(missing)}", verdict)


def listed(found: Mapping[str, float], unit: str = "") -> str:
    """Cases with their figures.

    >>> listed({"DRAM": 7.63, "SSD": 247.0}, " s")
    'DRAM: 7.63 s; SSD: 247 s'
    """
    return "; ".join(f"{f'{name}: ' if name else ''}{figure(value)}{unit}" for name, value in found.items())
