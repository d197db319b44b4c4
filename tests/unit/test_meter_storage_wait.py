"""One thread's wait for storage: what is made of the kernel's entries, without running anything."""

from __future__ import annotations

import random
from collections.abc import Iterable

import pytest
from neurotier.meter.activity import TICK_S
from neurotier.meter.storage_wait import StorageWait

BOOT_S = 38_888.98
"""An entry measured from boot, as Linux 6.18 made it."""


def waited(looks: Iterable[tuple[float, float, float, bool]]) -> StorageWait:
    """What is made of looks: when, on a core so far, booked so far (all s), and whether in storage."""
    wait = StorageWait(start_ticks=0, looked_s=0.0)
    for look in looks:
        wait.look(*look)
    return wait


def test_a_wait_over_several_looks_is_believed_when_it_is_booked() -> None:
    """Each look sees the same wait; its entry is longer than the time since the last look, and right."""
    wait = waited([(0.1, 0.1, 0, False), *((at / 10, 0.1, 0, True) for at in range(2, 9)), (0.9, 0.1, 0.75, False)])
    assert wait.total_s == wait.booked_s == 0.75
    assert wait.all_doubtful_s == 0


def test_a_wait_that_goes_on_counts_and_is_not_doubted() -> None:
    wait = waited([(0.1, 0, 0, True), (0.2, 0, 0, True), (0.3, 0, 0, True)])
    assert wait.total_s == pytest.approx(0.3)
    assert wait.all_doubtful_s == 0


@pytest.mark.parametrize("entry_s", [BOOT_S, 0.9])
def test_an_entry_from_an_earlier_start_is_not_believed(entry_s: float) -> None:
    """The states tell in its place: 0.4 s certainly, and half of the 0.1 s in which it woke."""
    looks = [(0.1, 0.1, 0, False), (0.2, 0.2, 0, False), *((at / 10, 0.2, 0, True) for at in range(3, 7))]
    wait = waited([*looks, (0.7, 0.2, entry_s, False), (0.8, 0.3, entry_s, False)])
    assert wait.total_s == pytest.approx(0.4, abs=0.051)
    assert wait.all_doubtful_s == pytest.approx(0.2)  # in which it fell asleep, and in which it woke


def test_what_comes_after_a_misbooked_entry_is_believed_again() -> None:
    wait = waited([(0.1, 0, BOOT_S, False), (0.2, 0.05, BOOT_S + 0.05, False), (0.3, 0.05, BOOT_S + 0.15, False)])
    assert wait.total_s == pytest.approx(0.15)


def test_nobody_waits_for_storage_asleep() -> None:
    assert waited((at, 0.0, 0.0, False) for at in range(1, 100)).total_s == 0


@pytest.mark.parametrize("misbooked", [False, True])
@pytest.mark.parametrize("seed", range(20))
def test_waits_at_any_moments(seed: int, misbooked: bool) -> None:
    """A thread that computes, waits and sleeps by chance, looked at by chance; no entry is off where none is wrong."""
    chance = random.Random(seed)
    now = on = waits = entries = 0.0
    looks, next_look = [], 0.0
    while now < 5:
        kind, length = chance.choice(["on", "wait", "sleep"]), chance.uniform(0.002, 0.15)
        while next_look < now + length:
            part = next_look - now
            so_far = on + part * (kind == "on")
            looks.append((next_look, so_far, entries // TICK_S * TICK_S, kind == "wait"))
            next_look += chance.uniform(0.01, 0.07)
        now += length
        if kind == "on":
            on += length
        elif kind == "wait":
            waits += length
            entries += length if not misbooked or chance.random() < 0.5 else chance.choice([BOOT_S, 3 * length])
    looks.append((now, on, entries // TICK_S * TICK_S, False))
    wait = waited(looks)
    assert wait.total_s == pytest.approx(waits, abs=0.15 * waits if misbooked else 0.03 * waits + 2 * TICK_S)
    assert (wait.all_doubtful_s > 0) == misbooked
