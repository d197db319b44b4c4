"""What a probe has found of a tier, and what jobs took, for tests of what is predicted by them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from neurotier.advice.calibration import QUANTITIES, ObservedJob
from neurotier.advice.predict import Fetching, Inputs
from neurotier.model.machine import PageCache, Processors
from neurotier.model.this_machine import FileCost, TierFigures


def tier_figures(kind: str, curve: dict[int, float], memory: dict[int, float], **changes: Any) -> TierFigures:
    """A tier without cost of requests, but for what is changed; by one stream it writes half as fast as it reads.

    Parameters
    ----------
    curve, memory
        Bandwidth of the device and of the page cache by the number of streams, bytes/s.
    """
    usual = TierFigures(
        kind=kind,
        read_bytes_per_s=curve,
        write_bytes_per_s=curve,
        mixed_bytes_per_s=curve,
        cached_read_bytes_per_s=memory,
        buffered_write_bytes_per_s=memory,
        single_read_bytes_per_s=curve[1],
        single_write_bytes_per_s=curve[1] / 2,
        random_read_s=0.0,
        make_s=0.0,
        look_s=0.0,
        files={1: FileCost(0.0, 0.0)},
        buffered_bytes={1: 0.0},
    )
    return replace(usual, **changes)


def spent(**known: float) -> dict[str, float]:
    """What a phase took and moved; nothing of what is not said."""
    return dict.fromkeys(QUANTITIES, 0.0) | known


def job_of(size_bytes: int, compute: dict[str, float], **changes: Any) -> ObservedJob:
    """A job of 9 s that does nothing but compute, on the disk."""
    phases = {"compute": spent(**compute)}
    return replace(ObservedJob("sub-1", "r", size_bytes, phases, 0.0, 9.0, 0.0, 1, work_tier="disk"), **changes)


def inputs_of(observed: Sequence[ObservedJob], **changes: Any) -> Inputs:
    """On two cores, with memory for all, who have a job each; of what else is not said there is nothing."""
    known = replace(Inputs(list(observed), [], Fetching(), {}, Processors(2, 2), PageCache(1e12)), **changes)
    return known if known.jobs else replace(known, jobs=[[number] for number in range(len(known.participants))])
