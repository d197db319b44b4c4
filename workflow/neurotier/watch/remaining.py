"""How long the participants that are left will take, by those of the same run that have ended.

What a participant takes goes by the size of its images, as the tool says it usually does, and by what those who have
ended took. Those who wait are played through on the slots of the run, with pauses between participants as they
were so far. So the estimate is corrected with everyone who ends. Before anybody has, nothing is known.
"""

from __future__ import annotations

import heapq
import math
import statistics
from collections.abc import Callable, Sequence
from dataclasses import dataclass

LEAST_SHARE = 0.1
"""Least half-width of the interval, as a share of the estimate: machines are not more even than that."""

WIDTH = 2.0
"""Standard errors on each side of the estimate."""

MOST_STRETCHED = 5.0
"""Most by which pauses are believed to stretch a run: at its very beginning, slots are still empty."""


@dataclass(frozen=True)
class Ended:
    """A participant that has ended: size of its images, bytes, and when it began and ended, s since 1970."""

    size_bytes: int
    start_s: float
    end_s: float

    @property
    def wall_s(self) -> float:
        return max(self.end_s - self.start_s, 1e-3)


@dataclass(frozen=True)
class Remaining:
    """Time left, s, with an interval."""

    usual_s: float
    low_s: float
    high_s: float


def remaining(
    waiting_bytes: Sequence[int],
    running: Sequence[tuple[int, float]],
    slots: int,
    ended: Sequence[Ended],
    usual_s: Callable[[int], float],
    now_s: float,
) -> Remaining | None:
    """How long it takes until all participants have ended.

    Parameters
    ----------
    waiting_bytes
        Sizes of the images of those who wait, in the order in which they will begin, bytes.
    running
        Of those who are being analysed: size of the images, bytes, and since when, s.
    slots
        How many are analysed at once.
    ended
        Those of this run who have ended.
    usual_s
        What a participant with images of a size takes by the tool's own figures, s; only ratios matter.
    now_s
        When this is asked, s since 1970.

    Returns
    -------
    Remaining or None
        ``None`` if nobody has ended.
    """
    if not ended:
        return None
    scale = sum(one.wall_s for one in ended) / max(sum(usual_s(one.size_bytes) for one in ended), 1e-9)

    def expected_s(size_bytes: int) -> float:
        return scale * usual_s(size_bytes)

    at_work_s = sum(one.wall_s for one in ended) + sum(since_s for _, since_s in running)
    stretch = slots * (now_s - min(one.start_s for one in ended)) / at_work_s
    stretch = min(max(1.0, stretch), MOST_STRETCHED) if len(ended) > slots else 1.0
    now = [max(expected_s(size) - since_s, 0.1 * expected_s(size)) for size, since_s in running]
    free_at_s = (now + [0.0] * slots)[: max(slots, len(now))]
    heapq.heapify(free_at_s)
    for size in waiting_bytes:
        heapq.heappush(free_at_s, heapq.heappop(free_at_s) + stretch * expected_s(size))
    left_s = max(free_at_s)
    share = max(LEAST_SHARE, WIDTH * error_share(ended, expected_s, (len(waiting_bytes) + len(running)) / slots))
    return Remaining(left_s, left_s * max(0.0, 1 - share), left_s * (1 + share))


def error_share(ended: Sequence[Ended], expected_s: Callable[[int], float], rounds: float) -> float:
    """Standard error of the estimate as a share of it: of what one participant takes, over those one after the other,
    and of the mean, which is known by those who have ended."""
    if len(ended) < 2:
        return 0.5
    off = [math.log(one.wall_s / max(expected_s(one.size_bytes), 1e-3)) for one in ended]
    spread = statistics.pstdev(off)
    return spread * math.sqrt(1 / max(rounds, 1.0) + 1 / len(ended))
