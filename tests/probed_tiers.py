"""What a probe has found of a tier, for tests of what is predicted by it."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from neurotier.model.this_machine import TierFigures


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
        files={},
    )
    return replace(usual, **changes)
