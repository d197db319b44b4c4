"""Fitting: speeds that a simulation was given must come out of what its streams did."""

from __future__ import annotations

import pytest
from neurotier.model.fit import fit_tier
from neurotier.model.fluid import simulate
from neurotier.model.machine import Machine, PageCache, Processors, TierSpeed, cache_of
from neurotier.model.observed import Observed, Stream
from neurotier.model.workload import Step, Workload

MB = 1e6
CACHE = PageCache(available_bytes=1e12)
MEMORY_SPEED = TierSpeed(5000 * MB, 4000 * MB, 1000 * MB, 800 * MB)


def observe(tier: TierSpeed, parallelism: int) -> Observed:
    """What the streams of a simulated run did."""
    task = (Step("read", "read", 100 * MB, "tier"), Step("write", "write", 100 * MB, "tier"))
    machine = Machine(Processors(64, 64), CACHE, {"tier": tier, cache_of("tier"): MEMORY_SPEED})
    found = simulate(Workload([task] * 100, spawn_s=0.05), machine, parallelism, seed=3)
    streams = [Stream(phase == "write", 100 * MB, start, end) for _, phase, start, end in found.spans_s]
    return Observed(streams, CACHE)


def test_loaded_speeds_come_out() -> None:
    true = TierSpeed(500 * MB, 200 * MB, 400 * MB, 150 * MB, mixed=0.7)
    prior = TierSpeed(300 * MB, 300 * MB, 300 * MB, 300 * MB)
    fitted, _ = fit_tier([observe(true, 20)], prior, "tmpfs")
    assert fitted.read_bytes_per_s == pytest.approx(true.read_bytes_per_s, rel=0.1)
    assert fitted.write_bytes_per_s == pytest.approx(true.write_bytes_per_s, rel=0.1)
    assert fitted.mixed == pytest.approx(true.mixed, rel=0.1)


def test_what_streams_are_too_slow_to_show_stays_where_it_was() -> None:
    """Four streams at 50 MB/s each cannot tell whether the tier gives 1,000 or 9,000 MB/s."""
    true = TierSpeed(9000 * MB, 9000 * MB, 50 * MB, 50 * MB)
    prior = TierSpeed(1000 * MB, 1000 * MB, 100 * MB, 100 * MB)
    fitted, _ = fit_tier([observe(true, 4)], prior, "tmpfs")
    assert fitted.read_stream_bytes_per_s == pytest.approx(50 * MB, rel=0.1)
    assert fitted.read_bytes_per_s == pytest.approx(1000 * MB, rel=0.3)


def test_writes_to_a_disk_tell_of_memory() -> None:
    true = TierSpeed(500 * MB, 200 * MB, 500 * MB, 200 * MB, write_back=True)
    fitted, memory = fit_tier([observe(true, 10)], true, "block", MEMORY_SPEED)
    assert memory is not None
    assert memory.write_stream_bytes_per_s == pytest.approx(800 * MB, rel=0.1)
    assert fitted.read_bytes_per_s == pytest.approx(500 * MB, rel=0.05)
    assert fitted.write_back


@pytest.mark.parametrize("spread", [0.0, 0.3])
def test_unevenness_is_seen(spread: float) -> None:
    true = TierSpeed(500 * MB, 500 * MB, 500 * MB, 500 * MB, unevenness=spread)
    fitted, _ = fit_tier([observe(true, 10)], true, "tmpfs")
    assert fitted.unevenness == pytest.approx(spread, abs=0.1)
