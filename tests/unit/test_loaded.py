"""What a run shows of its tier: from streams whose bandwidths are easy to see."""

from __future__ import annotations

import math

import pytest
from neurotier.model.loaded import Stream, loaded, pooled

MB = 1e6


def observed(*streams: tuple[bool, float, float, float]) -> list[Stream]:
    """Streams: whether it writes, MB, start and end in s."""
    return [Stream(write, size * MB, start, end) for write, size, start, end in streams]


def test_bandwidths_by_what_is_in_flight() -> None:
    """Two read for 10 s, one reads and one writes for 10 s, and two write for 10 s."""
    seen = loaded(
        observed(
            *((False, 100, 0, 10), (False, 200, 0, 10), (False, 50, 10, 20)),
            *((True, 80, 10, 20), (True, 40, 20, 30), (True, 60, 20, 30)),
        )
    )
    assert seen.read_bytes_per_s == pytest.approx(30 * MB)
    assert seen.write_bytes_per_s == pytest.approx(10 * MB)
    assert (seen.read_only_s, seen.write_only_s) == (10, 10)
    assert seen.mixed_read_bytes_per_s == pytest.approx(5 * MB)
    assert seen.mixed == pytest.approx(5 / 30 + 8 / 10)
    assert seen.most_bytes_per_s == pytest.approx((10 * 30 + 5 * 13) / 15 * MB), "the busier half: 15 of 30 s"
    assert seen.read_stream_bytes_per_s == pytest.approx(10 * MB)


def test_what_was_never_alone_is_not_known() -> None:
    seen = loaded(observed((False, 100, 0, 10), (True, 100, 0, 10)))
    assert math.isnan(seen.read_bytes_per_s)
    assert math.isnan(seen.write_bytes_per_s)
    other = loaded(observed((False, 400, 0, 10), (True, 100, 10, 20)))
    both = pooled([seen, other])
    assert both.read_bytes_per_s == pytest.approx(40 * MB), "of the run that shows it"
    assert both.read_stream_bytes_per_s == pytest.approx(20 * MB), "the geometric mean of 10 and 40"
    weighted = pooled([seen, other], [1.0, 0.5])
    assert weighted.read_stream_bytes_per_s == pytest.approx(10 * 4 ** (1 / 3) * MB)
