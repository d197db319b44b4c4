"""How long some thread was active: bounds from what is booked for each, without running anything."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from neurotier.meter.activity import Activity, Books
from neurotier.meter.asynchronous import AsynchronousCalls


def tree(cores: int = 2, waits_booked: bool = True) -> Activity:
    activity = Activity(waits_booked)
    activity.cores = cores
    return activity


def asleep(active_s: float, runtime_s: float | None = None) -> Books:
    return Books(active_s, active_s if runtime_s is None else runtime_s, awake=False)


def awake(active_s: float) -> Books:
    return Books(active_s, active_s, awake=True)


def test_threads_at_the_same_time_are_not_one_after_the_other() -> None:
    activity = tree()
    activity.add(0.1, {}, [(1, asleep(0.1)), (2, asleep(0.1))], awake=False)
    assert activity.bounds_s() == pytest.approx((0.1, 0.1))


def test_what_could_be_either_stays_open() -> None:
    activity = tree()
    activity.add(0.4, {}, [(1, asleep(0.1)), (2, asleep(0.1))], awake=False)
    least_s, most_s = activity.bounds_s()
    assert 0.1 <= least_s < most_s <= 0.2


def test_time_on_cores_takes_as_many_as_there_are() -> None:
    activity = tree(cores=2)
    activity.add(1.0, {}, [(number, asleep(0.1)) for number in range(8)], awake=False)
    assert activity.bounds_s()[0] >= 0.399


def test_nobody_is_active_in_an_interval_without_an_entry() -> None:
    activity = tree()
    activity.add(0.1, {1: asleep(0.1)}, [], awake=False)
    activity.add(5.0, {1: asleep(0.1)}, [], awake=False)
    assert activity.bounds_s() == pytest.approx((0.1, 0.1))


def test_waiting_that_is_booked_late_counts_when_it_is_seen_and_only_once() -> None:
    activity = tree()
    activity.add(0.1, {1: awake(0.1)}, [], awake=True)
    activity.add(0.2, {1: awake(0.1)}, [], awake=True)  # waits for a core: no entry yet
    activity.add(0.1, {1: asleep(0.3, runtime_s=0.1)}, [], awake=False)
    assert activity.bounds_s() == pytest.approx((0.3, 0.3), abs=0.011)


def test_another_thread_of_the_same_number() -> None:
    activity = tree()
    activity.add(0.1, {7: asleep(0.1)}, [], awake=False)
    activity.add(0.1, {7: asleep(0.05)}, [], awake=False)
    assert activity.bounds_s() == pytest.approx((0.15, 0.15))


def test_where_waits_for_storage_are_not_booked_nothing_is_ruled_out() -> None:
    activity = tree(waits_booked=False)
    activity.add(1.0, {1: asleep(0.1)}, [], awake=False)
    assert activity.most_s == 1.0


def test_an_ordinary_process_makes_no_asynchronous_calls(tmp_path: Path) -> None:
    calls = AsynchronousCalls()
    with (tmp_path / "file").open("w"):
        calls.look([os.getpid(), 2**22 + 1])  # the second is no process
    assert calls.found is None


def test_an_entry_longer_than_there_was_time_for_is_not_believed() -> None:
    """Linux 6.18 books some waits from an earlier start, or from boot."""
    activity = tree()
    activity.add(0.1, {1: asleep(0.1)}, [], awake=False)
    activity.add(0.5, {1: asleep(38_888.98, runtime_s=0.15)}, [], awake=False)
    assert activity.misbooked
    assert (activity.least_s, activity.most_s) == pytest.approx((0.15, 0.6))
