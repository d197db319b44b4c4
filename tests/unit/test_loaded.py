"""What a run shows of its tier: from streams whose bandwidths are easy to see."""

from __future__ import annotations

import numpy as np
import pytest
from neurotier.model.loaded import Stream, loaded, pooled, unevenness
from shown_values import shown


def observed(*streams: tuple[bool, float, float, float]) -> list[Stream]:
    """Streams: whether it writes, bytes, start and end in s."""
    return [Stream(*stream) for stream in streams]


def test_bandwidths_by_what_is_in_flight() -> None:
    """Two read for 10 s, one reads and one writes for 10 s, and two write for 10 s."""
    seen = loaded(
        observed(
            *((False, 100, 0, 10), (False, 200, 0, 10), (False, 50, 10, 20)),
            *((True, 80, 10, 20), (True, 40, 20, 30), (True, 60, 20, 30)),
        )
    )
    alone = "read_bytes_per_s write_bytes_per_s read_only_s write_only_s read_stream_bytes_per_s"
    assert shown(seen, f"{alone} mixed_read_bytes_per_s") == "30 10 10 10 10 5"
    assert seen.mixed == pytest.approx(5 / 30 + 8 / 10)
    assert seen.most_bytes_per_s == pytest.approx((10 * 30 + 5 * 13) / 15), "the busier half: 15 of 30 s"


def test_what_was_never_alone_is_not_known() -> None:
    seen = loaded(observed((False, 100, 0, 10), (True, 100, 0, 10)))
    assert shown(seen, "read_bytes_per_s write_bytes_per_s") == "nan nan"
    other = loaded(observed((False, 400, 0, 10), (True, 100, 10, 20)))
    both = pooled([seen, other])
    assert both.read_bytes_per_s == pytest.approx(40), "of the run that shows it"
    assert both.read_stream_bytes_per_s == pytest.approx(20), "the geometric mean of 10 and 40"
    weighted = pooled([seen, other], [1.0, 0.5])
    assert weighted.read_stream_bytes_per_s == pytest.approx(10 * 4 ** (1 / 3))


def test_unevenness_is_the_spread_of_streams_that_began_together_whatever_slows_all_of_them() -> None:
    """Logarithms of speeds spread by 0.3; meanwhile all get ten times as slow, and one of a hundred stands still."""
    rng, streams = np.random.default_rng(1), []
    for number, start_s in enumerate(rng.uniform(0, 1000, 8000)):
        slower = 10 ** (start_s / 1000) * (50 if number % 100 == 0 else 1)
        took_s = float(slower * np.exp(rng.normal(0, 0.3)))
        streams.append((number % 2 == 0, 100 if number % 2 else 30, float(start_s), float(start_s) + took_s))
    assert unevenness([observed(*streams[:4000]), observed(*streams[4000:])]) == pytest.approx(0.3, abs=0.02)
    alike = [(False, 100, float(start), start + 1.0) for start in range(9)]
    assert unevenness([observed(*alike)]) == 0


def test_fastest_and_busiest_are_of_what_was_seen() -> None:
    """Ten readers one after the other at 10, 20 ... 100 bytes/s, and a writer at 5: nine of ten read less than 91."""
    readers = [(False, 10.0 * number, float(number), number + 1.0) for number in range(1, 11)]
    seen = loaded(observed(*readers, (True, 10, 11.0, 13.0), (True, 30, 13.0, 15.0)))
    assert shown(seen, "fastest_read_bytes_per_s read_stream_bytes_per_s") == "91 55"
    assert shown(seen, "fastest_write_bytes_per_s write_stream_bytes_per_s") == "14 10"
    assert seen.most_bytes_per_s == pytest.approx(70), "the seven busiest of 14 s: 40 to 100"
    assert shown(seen, "mixed_read_bytes_per_s") == "nan", "the first write began when the last read had ended"
    none = loaded(observed((False, 10, 3.0, 3.0), (True, 10, 4.0, 5.0)))
    assert none.read_only_s == 0, "a stream of no length is in no interval"
