"""Parallelism: how many participant jobs ran at once, how many were asked for, and why there were fewer.

``--cores`` is a ceiling. What keeps a run below it (memory, room on the work tier, too few participants, jobs that end
before the next ones start) is worth reporting: a measurement 'at 96' during which 40 jobs ran is not one at 96.
"""

from __future__ import annotations

import statistics
from collections.abc import Mapping, Sequence
from itertools import accumulate

from neurotier.core.quantities import counted, share_of
from neurotier.core.tables import Row, grouped

FULL_SHARE = 0.8
"""Share of the requested parallelism that a run's mean must reach; otherwise the shortfall is explained."""

RESOURCES = {
    "mem_mb": ("memory", "MB"),
    "work_mb": ("room on the work tier", "MB"),
    "work_files": ("the number of files on the work tier", "files"),
}
"""Snakemake resources that keep jobs waiting: what each is, and its unit."""

PHASES = ("start_up", "stage_in", "container_start", "compute", "stage_out")
"""Timed parts of a participant job, in their order; a job may lack some."""

MOVING_PHASES = ("stage_in", "container_start", "stage_out")
"""The phases that move data between tiers."""

COMPUTING_PHASES = ("container_start", "compute")
"""The phases that take cores: a pool runs no more of them at once than its job's cores allow."""

Span = tuple[float, float]


def job_spans(rows: Sequence[Row]) -> list[Span]:
    """Start of the first and end of the last phase of each participant job, s since 1970."""
    phases = grouped((row["participant"], (row["start_s"], row["end_s"])) for row in rows)
    return list(filter(None, map(extent, phases.values())))


def peak(spans: Sequence[Span]) -> int:
    """The largest number of spans that overlap at one moment.

    >>> peak([(0, 2), (1, 3), (3, 4)])
    2
    """
    steps = sorted([(start, 1) for start, _ in spans] + [(end, -1) for _, end in spans])
    return max(accumulate((step for _, step in steps), initial=0))


def extent(spans: Sequence[Span]) -> Span | None:
    """The first start and the last end; ``None`` if there are no spans."""
    return (min(start for start, _ in spans), max(end for _, end in spans)) if spans else None


def span_s(spans: Sequence[Span]) -> float:
    """Time from the first start to the last end, s; 0 if there are no spans.

    >>> span_s([(1.0, 2.0), (1.5, 4.0)])
    3.0
    """
    begin_s, end_s = extent(spans) or (0.0, 0.0)
    return end_s - begin_s


def gaps_s(spans: Sequence[Span], at_once: int) -> list[float]:
    """Time from the end of each span to the start of the one that took its place, s, if ``at_once`` run at a time.

    >>> gaps_s([(0, 2), (0, 3), (2.5, 4)], 2)
    [0.5]
    """
    starts, ends = sorted(start for start, _ in spans), sorted(end for _, end in spans)
    return [start - end for start, end in zip(starts[at_once:], ends, strict=False)]


def mean(spans: Sequence[Span]) -> float | None:
    """Sum of the spans over the time from the first start to the last end; ``None`` if that time is 0.

    >>> mean([(0, 2), (1, 3)])
    1.3333333333333333
    """
    return share_of(sum(end - start for start, end in spans), span_s(spans))


def fits(limits: Mapping[str, int], needs: Mapping[str, Sequence[int]]) -> dict[str, int]:
    """How many jobs each resource has room for at once, counting from the smallest job, which runs in any case.

    Parameters
    ----------
    limits
        Resource to its total, in its unit.
    needs
        Resource to the amount that each job takes.

    Examples
    --------
    >>> fits({"mem_mb": 1000}, {"mem_mb": [300, 500, 400], "work_mb": [10, 10, 10]})
    {'mem_mb': 2}
    >>> fits({"mem_mb": 1000}, {"mem_mb": [2000, 2000]})
    {'mem_mb': 1}
    """
    return {
        resource: max(1, sum(used <= limits[resource] for used in accumulate(sorted(each))))
        for resource, each in needs.items()
        if resource in limits
    }


def limited_by(
    asked: int | None,
    spans: Sequence[Span],
    limits: Mapping[str, int],
    needs: Mapping[str, Sequence[int]],
    failed: int = 0,
) -> str | None:
    """Why a run stayed below the requested parallelism, for people; ``None`` if it did not, or if none was requested.

    The times of failed participants are not known: they may have run at the same moment as the others.

    Examples
    --------
    >>> limited_by(4, [(0, 1), (0, 1)], {}, {})
    'there were only 2 participants'
    >>> limited_by(4, [(0, 1), (0, 1), (1, 2), (1, 2)], {"mem_mb": 1000}, {"mem_mb": [400] * 4})
    'memory has room for 2 at once (400 MB each, 1,000 MB)'
    >>> limited_by(3, [(0, 1), (0.9, 2), (1.8, 3)], {}, {})
    'jobs of 1.1 s were over before more than 2 could be started, one every 0.90 s'
    >>> limited_by(8, [(0, 1), (0, 1), (1, 2)], {"mem_mb": 9000}, {"mem_mb": [400] * 3}, failed=5)
    'jobs of 1 s were over before more than 2 could be started, one every 0.50 s'
    >>> limited_by(1, [(0, 1), (2, 3)], {}, {}).partition(":")[0]
    '0.7 ran at once on average'
    >>> limited_by(2, [(0, 2), (0, 1), (1, 2)], {}, {}) is limited_by(2, [(0, 1)], {}, {}, failed=1) is None
    True
    """
    if not asked or not spans:
        return None
    done = len(spans)
    if (count := done + failed) < asked:
        return f"there {'was' if count == 1 else 'were'} only {counted(count, 'participant')}"
    most = peak(spans)
    if most + failed < asked:
        room = fits(limits, needs)
        tight = min(room, key=room.__getitem__, default="")
        if room.get(tight, asked) < min(asked, done):  # if all have room, it is not what kept them waiting
            each, (name, unit) = statistics.median(needs[tight]), RESOURCES[tight]
            return f"{name} has room for {room[tight]} at once ({each:,.0f} {unit} each, {limits[tight]:,} {unit})"
        lasted_s = statistics.median(end - start for start, end in spans)
        starts_s = [start for start, _ in spans]
        every_s = (max(starts_s) - min(starts_s)) / max(1, done - 1)
        return f"jobs of {lasted_s:.2g} s were over before more than {most} could be started, one every {every_s:.2f} s"
    reached = mean(spans)
    if reached and not failed and reached < FULL_SHARE * asked:
        return (
            f"{reached:.1f} ran at once on average:"
            " fewer at the first start, at the last end, between two jobs, or if memory, room or images were short"
        )
    return None
