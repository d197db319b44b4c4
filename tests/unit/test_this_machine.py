"""The machine of the model, from a probe's figures: speeds that can be worked out by hand."""

from __future__ import annotations

from dataclasses import replace
from types import SimpleNamespace
from typing import Any

import psutil
import pytest
from neurotier.core.tables import Rows
from neurotier.model.fluid import simulate
from neurotier.model.machine import PageCache, Processors, Step, TierSpeed, Workload, cache_of
from neurotier.model.this_machine import (
    UNEVENNESS,
    FileCost,
    Probed,
    TierFigures,
    file_costs,
    in_group,
    machine_of,
    machines_of,
    open_s,
    page_cache_here,
    processors_here,
    tier_speed,
)
from probed_tiers import tier_figures
from shown_values import shown

FIGURES = TierFigures(
    kind="block",
    read_bytes_per_s={1: 100.0, 4: 200.0},
    write_bytes_per_s={1: 50.0, 4: 100.0},
    mixed_bytes_per_s={1: 60.0, 4: 120.0},
    cached_read_bytes_per_s={1: 1000.0, 4: 3000.0},
    buffered_write_bytes_per_s={1: 400.0, 4: 800.0},
    single_read_bytes_per_s=90.0,
    single_write_bytes_per_s=45.0,
    random_read_s=0.25,
    make_s=0.5,
    look_s=0.125,
    files={1: FileCost(0.001, 0.01), 4: FileCost(0.003, 0.02)},
    buffered_bytes={1: 0.0},
)


def test_a_tier_gives_what_the_probe_has_measured() -> None:
    """Four streams; taking turns at 200 and 100 they would move 2 / (1/200 + 1/100) = 133.3 B/s, and move 120."""
    found = tier_speed(FIGURES, 4)
    assert vars(found) == pytest.approx(vars(TierSpeed(200, 100, 100, 50, 0.9, UNEVENNESS, True, 200, 100)))
    two = tier_speed(FIGURES, 2)  # half-way between 1 and 4, over the logarithm
    assert shown(two, "read_bytes_per_s write_bytes_per_s read_stream_bytes_per_s") == "150 75 100"
    assert two.files_per_s == pytest.approx(2 / 0.015)


@pytest.mark.parametrize(
    ("kind", "buffered", "mixed", "expected"),
    [
        ("block", 250.0, 1.0, "True 100 0.1"),  # no device is worse than a tenth or better than both ways at once
        ("block", 200.0, 400.0, "False 100 2"),
        ("block", 190.0, 200.0, "False 100 1.5"),  # less than twice as much: writers wait for the device
        ("block", 80.0, 200.0, "False 80 1.5"),  # and so does a file system that gives less than its device
        ("network", 800.0, 200.0, "False 100 1.5"),  # flushed when a file is closed
        ("tmpfs", 800.0, 200.0, "False 100 1.5"),
    ],
)
def test_writing_back_and_both_ways(kind: str, buffered: float, mixed: float, expected: str) -> None:
    figures = replace(FIGURES, kind=kind, buffered_write_bytes_per_s={4: buffered}, mixed_bytes_per_s={4: mixed})
    assert shown(tier_speed(figures, 4), "write_back write_bytes_per_s mixed") == expected


@pytest.mark.parametrize(
    ("waits_s", "expected"),
    [
        ([0.0, 0.0], "inf inf"),
        ([0.0, 0.02], "200 200"),
        ([0.02, 0.0], "inf inf"),
        ([0.01, 0.08], "100 100"),  # 4 / 0.08 is less than one alone makes
        ([0.25, 0.5], "4 8"),
    ],
)
def test_small_files_are_made_as_fast_as_they_are_waited_for(waits_s: list[float], expected: str) -> None:
    """By one stream alone, and by four together."""
    files = {streams: FileCost(1.0, wait_s) for streams, wait_s in zip((1, 4), waits_s, strict=True)}
    assert shown(tier_speed(replace(FIGURES, files=files), 4), "files_stream_per_s files_per_s") == expected


def test_what_a_file_takes_was_between_the_least_and_the_most_of_all_operations() -> None:
    """Making one takes 1 + 2 s, at least 2 and at most 5; looking at it half of that."""
    took = {"cpu_s": 1.0, "wait_s": 2.0, "low_s": 2.0, "high_s": 5.0}
    for low_s, high_s, low, high in ((2.0, 5.0, 2 / 3, 5 / 3), (3.6, 2.4, 1.0, 1.0)):
        took |= {"low_s": low_s, "high_s": high_s}
        rows: Rows = [
            {"pattern": name, "streams": 1, "kind": "block"} | {f"operation_{name}": took[name] / by for name in took}
            for name, by in (("make", 1), ("look", 2), ("flush", 3))  # participants do not flush their files
        ]
        found = file_costs(rows)[1]
        assert [found.cpu_s, found.wait_s, found.low, found.high] == pytest.approx([1.5, 3.0, low, high])


def test_the_page_cache_holds_what_writers_got_beyond_the_device() -> None:
    """At 125 B/s, of which the device takes 100, a fifth of 1,000 bytes is left; 15 of 100 may be dirty."""
    small = replace(FIGURES, buffered_write_bytes_per_s={4: 125.0}, buffered_bytes={4: 1000.0})
    found = machine_of({"disk": small}, 4, Processors(2, 4), PageCache(100_000.0))
    disk = found.tiers["disk"]
    assert shown(disk, "write_back write_bytes_per_s dirty_bytes") == "True 100 200"
    assert found.page_cache.before(disk).throttling_bytes == pytest.approx(200)
    assert found.tiers[cache_of("disk")].write_bytes_per_s == 3000, "as fast as it is read"
    one = Step("write", "write", 500.0, "disk")
    run = simulate(Workload([(one,)]), found, 1)
    assert run.makespan_s == pytest.approx((500 - 200) / 100, rel=0.1)


def test_a_machine_has_a_page_cache_before_each_tier() -> None:
    found = machine_of({"disk": FIGURES}, 4, Processors(2, 4), PageCache(1e9))
    cache = found.tiers[cache_of("disk")]
    assert shown(cache, "read_bytes_per_s read_stream_bytes_per_s") == "3000 1000"
    assert shown(cache, "write_bytes_per_s write_stream_bytes_per_s") == "800 400"
    # opening a file takes a look and a request, but not in memory
    assert [open_s(replace(FIGURES, kind=kind)) for kind in ("block", "fsdax")] == [0.375, 0.0]


@pytest.mark.parametrize(("where", "expected"), [(-1.0, 25.0), (-0.5, 50.0), (0.0, 100.0), (0.5, 200.0), (1.0, 400.0)])
def test_between_the_least_and_the_most_by_ratios(where: float, expected: float) -> None:
    """From 25 over 100 to 400 every half step doubles; what is no bandwidth stays."""

    def figures(speed: float, mixed: float) -> TierFigures:
        return tier_figures("block", {1: speed}, {1: speed}, mixed_bytes_per_s={1: mixed * speed})

    probed = Probed(figures(100.0, 1.0), figures(25.0, 0.5), figures(400.0, 2.0))
    rng: Any = SimpleNamespace(uniform=lambda _low, _high: where)
    _, drawn = machines_of({"disk": probed}, 1, Processors(1, 1), PageCache(1.0))
    assert vars(drawn(rng).tiers["disk"]) == pytest.approx(
        vars(TierSpeed(expected, expected, expected, expected, 1.0, UNEVENNESS, dirty_bytes=0.0))
    )


def test_this_node_has_what_the_kernel_tells(monkeypatch: pytest.MonkeyPatch) -> None:
    found = processors_here(1, others=0.5)
    assert found.threads == len(psutil.Process().cpu_affinity() or ())
    assert (found.others, processors_here(2, others=0.5).others) == (0.5, 0.25), "counted in jobs"
    assert 0 < found.cores <= min(found.threads, psutil.cpu_count(logical=False) or found.threads)
    cache = page_cache_here(0.0)
    assert 0 < cache.available_bytes <= psutil.virtual_memory().total
    assert 0 < cache.background_ratio < cache.ratio <= 1
    assert page_cache_here(1e18).available_bytes < 0.2 * cache.available_bytes, "a tenth, however much the jobs take"
    for cores, expected in ((1, 1), (None, found.threads)):  # threads share a core, or nobody knows
        monkeypatch.setattr(psutil, "cpu_count", lambda logical, cores=cores: None if logical else cores)
        assert processors_here(1, others=0.0).cores == expected


def test_in_a_control_group_less_may_be_dirty() -> None:
    group = in_group(PageCache(1000.0, background_ratio=0.05, ratio=0.2), 400.0, is_unified=True)
    assert shown(group, "background_bytes throttling_bytes") == "20 50"
