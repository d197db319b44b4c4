"""What the meter says of loads whose cost is known, as root (exact) and as an ordinary user (sampled).

The bounds are those that the meter promises, with room for a noisy machine only where a load is short. None is on
speed: each load tells its own truth, in the same run.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from conftest import missing, nightly
from devices import loop_device
from loads import MIB
from neurotier.meter.exits import DELAY_SWITCH, ExitRecords, delays_accounted
from neurotier.meter.residency import resident_share
from neurotier.meter.usage import ACCOUNT, NOT_ROOT, SWITCHED_OFF
from support import tried_again
from truth import Bench, bench
from workloads import throttled

pytestmark = pytest.mark.alone

CPUS = len(os.sched_getaffinity(0))
ONE, SEVERAL = ("exact", "sampled"), ("scaled", "sampled")
"""Accounts of trees with one and with several active threads; sampled where the kernel misbooked a wait (Linux 6.18
does)."""

TICK_S = 0.01
START_S = 0.02
"""What a process may spend before and after its own account of itself."""


@pytest.fixture(scope="module")
def where() -> Iterator[Bench]:
    with bench() as found:
        yield found


@pytest.fixture(scope="module")
def exact(where: Bench) -> Bench:
    """A bench whose waits are exact."""
    records = ExitRecords.listen()
    if records is None:
        missing("exit records need root, in the machine's own name spaces")
    else:
        records.close()
    if not delays_accounted():
        missing("the kernel accounts no waits: sysctl kernel.task_delayacct=1")
    return where


@pytest.fixture(scope="module")
def disk() -> Iterator[Path]:
    """A folder on a device that nobody else uses."""
    if os.geteuid() != 0:
        missing("a loop device needs root")
    with loop_device(160) as folder:
        yield folder


@pytest.fixture
def default_kernel(exact: Bench) -> Iterator[Bench]:
    """A kernel as it boots since Linux 5.14: it accounts waiting for a core, and not for storage and memory."""
    switch = Path(DELAY_SWITCH)
    switch.write_text("0")
    try:
        yield exact
    finally:
        switch.write_text("1")


def is_true(
    name: str, said: dict[str, Any], truth: dict[str, Any], share: float = 0.01, floor: float = START_S
) -> bool:
    """Whether a figure is that of the truth, but for a share of it and for so much."""
    return bool(abs(said[name] - truth[name]) <= share * truth[name] + floor)


@pytest.mark.parametrize(
    ("load", "ordinary"),
    [
        (("children", 40, 0.02), False),
        (("daemon", 0.5), True),
        *nightly((("children", 40, 0.02), True)),
    ],
)
def test_cpu_time_is_exact_for_everyone(where: Bench, load: tuple[object, ...], ordinary: bool) -> None:
    truth, said = where.metered(*load, ordinary=ordinary)
    assert is_true("cpu_s", said, truth)
    assert said["cpu_source"] == "wait4"


@pytest.mark.parametrize(("count", "load", "source"), [(5000, ["forks"], "wait4"), (4, ["unheard", 0.3], "taskstats")])
def test_children_of_microseconds_and_those_nobody_waits_for_are_counted(
    exact: Bench, count: int, load: list[object], source: str
) -> None:
    truth, said = exact.metered(load[0], count, *load[1:])
    assert said["processes"] == truth["processes"] == count + 1
    assert is_true("cpu_s", said, truth, share=0.02)
    assert said["cpu_source"] == source


def test_an_ordinary_user_sees_children_nobody_waits_for(where: Bench) -> None:
    truth, said = where.metered("unheard", 2, 1, ordinary=True)
    assert 0.5 * truth["cpu_s"] < said["cpu_s"] <= truth["cpu_s"] + START_S  # but for what came after the last look
    assert said["cpu_source"] == "sampled"
    assert said["seen_share"] is None


@tried_again
def test_waiting_for_a_core_is_what_the_scheduler_says(exact: Bench) -> None:
    truth, said = exact.metered("children", 4 * CPUS, 0.3, 4 * CPUS)
    assert truth["run_queue_s"] > 1
    assert is_true("run_queue_s", said, truth, share=0.05)
    assert said["account"] in SEVERAL
    assert said["account_run_queue_s"] / said["wall_s"] > 0.5  # four compete for each
    assert said["residual_s"] == pytest.approx(0, abs=0.02 * said["wall_s"])


@tried_again
def test_threads_count_in_thread_seconds_and_in_wall_time(exact: Bench) -> None:
    truth, said = exact.metered("threads", 2 * CPUS, 0.5)
    assert said["threads"] == truth["threads"] == 2 * CPUS + 1
    assert is_true("cpu_s", said, truth, floor=2 * START_S)
    assert is_true("run_queue_s", said, truth, share=0.05, floor=2 * START_S)
    assert said["account"] in SEVERAL
    assert sum(said[part] for part in ACCOUNT) + said["residual_s"] == pytest.approx(said["wall_s"])
    assert said["run_queue_s"] > said["account_run_queue_s"]


@tried_again
def test_children_that_ran_side_by_side_are_not_told_as_one_after_the_other(exact: Bench) -> None:
    """Their parent slept afterwards for longer than they overlapped, so that lifetimes do not show that they did."""
    truth, said = exact.metered("children", 2, 0.4, 2, 3)
    assert said["account"] in SEVERAL
    assert said["account_other_s"] == pytest.approx(truth["account_other_s"], abs=0.03 * said["wall_s"])


@tried_again
def test_short_children_one_after_the_other_do_not_look_asleep(exact: Bench) -> None:
    """Exit records, and books of live threads, lack most of what they take, which is no overlap."""
    _, said = exact.metered("forks", 1000)
    assert said["account_other_s"] < 0.1 * said["wall_s"]


@tried_again
@pytest.mark.parametrize("load", [(2, 0.1, 0.15), (4, 0.05, 0.2)])
def test_short_threads_that_fall_asleep(exact: Bench, load: tuple[object, ...]) -> None:
    """A quarter of a second: by two looks, half of it was booked wrongly, and nothing said so."""
    truth, said = exact.metered("threads", *load)
    assert said["account"] in SEVERAL
    assert said["account_other_s"] == pytest.approx(truth["account_other_s"], abs=0.1 * said["wall_s"])
    assert said["residual_s"] >= -TICK_S
    assert said["residual_s"] <= 0.1 * said["wall_s"]
    active_s = sum(said[part] for part in ACCOUNT if part != "account_other_s")
    assert active_s + said["residual_s"] >= 0.95 * said["cpu_s"] / CPUS, "no scaling below what the cores allow"


@tried_again
@pytest.mark.parametrize(
    ("engine", "calls", "ordinary"),
    [
        ("libaio", "aio", False),
        ("io_uring", "io_uring", True),
        *nightly(("libaio", "aio", True), ("io_uring", "io_uring", False)),
    ],
)
def test_asynchronous_calls(where: Bench, disk: Path, engine: str, calls: str, ordinary: bool) -> None:
    """Nobody counts what they read and write, but the devices; half a second is accounted for all the same."""
    if shutil.which("fio") is None:
        missing("fio")
    report = where.shared / f"{engine}-{ordinary}"
    common = f"fio --ioengine={engine} --directory={disk} --unlink=1 --bs=128k --rw=randrw --direct=1"
    once = f"{common} --name=once --size=1m"
    subprocess.run(once.split(), check=True, capture_output=True)  # its libraries are in memory then
    job = f"--name={report.name} --size=32m --iodepth=8 --fallocate=none --runtime=500ms --time_based"
    words = f"{common} {job} --output-format=json --output={report}"
    said = where.measured(words.split(), ordinary=ordinary)
    assert abs(said["residual_s"]) <= 0.02 * said["wall_s"]
    job = json.loads(report.read_text())["jobs"][0]
    laid_out = 32 * MIB  # fio writes its file beforehand, unless it is there
    for way, name in (("read", "read"), ("write", "written")):
        moved = job[way]["io_bytes"]
        assert said[f"device_{name}_bytes"] >= 0.98 * moved
        assert said[f"device_{name}_bytes"] <= 1.02 * moved + laid_out + 16 * MIB  # and its own program
        assert said[f"logical_{name}_bytes"] is None
    assert said["bytes_reason"] == calls


@tried_again
@pytest.mark.parametrize("ordinary", [False, True])
def test_sleep_is_neither_cpu_nor_storage(exact: Bench, ordinary: bool) -> None:
    truth, said = exact.metered("sleep", 1, ordinary=ordinary)
    # a process that gets no core between its record and its end is waited for asleep: up to 0.1 s where four compete
    assert is_true("account_other_s", said, truth, share=0.02, floor=0.1)
    assert said["account"] in (["sampled"] if ordinary else ONE)
    assert abs(said["residual_s"]) <= 0.02 * said["wall_s"]


@pytest.mark.parametrize(
    ("way", "ordinary"),
    [("buffered", True), ("direct", False), *nightly(("buffered", False), ("direct", True))],
)
def test_bytes_on_a_device(where: Bench, disk: Path, way: str, ordinary: bool) -> None:
    truth, said = where.metered(way, disk, 48, ordinary=ordinary)
    assert truth["device_written_bytes"] >= 48 * MIB
    for name in ("logical_read_bytes", "logical_written_bytes"):
        assert is_true(name, said, truth, floor=0.25 * MIB)  # the interpreter reads its own files
    for name in ("device_read_bytes", "device_written_bytes"):
        assert is_true(name, said, truth, share=0.02, floor=2 * MIB)
    assert said["bytes_source"] == "procfs"


def waited_for_storage(said: dict[str, Any]) -> bool:
    """Whether nearly all time off a core was booked to storage."""
    off_core_s = said["wall_s"] - said["cpu_s"] - said["run_queue_s"]
    return bool(said["account_block_io_s"] > 0.8 * off_core_s)


@tried_again
def test_slow_device_is_waited_for(exact: Bench) -> None:
    """6 MiB each way at 8 MiB/s: some 1.5 s, nearly all of it waiting for storage."""
    with throttled(64, 8 * MIB) as slow:
        truth, said = exact.metered("direct", slow, 6, 256)
    assert waited_for_storage(said)
    if "block_io_s" in truth and said["account"] != "sampled":
        assert is_true("block_io_s", said, truth, share=0.05, floor=0.05)


@tried_again
def test_ordinary_user_gets_samples_and_no_zeros_for_what_is_unknown(where: Bench) -> None:
    if not delays_accounted():
        missing("the kernel accounts no waits: sysctl kernel.task_delayacct=1")
    truth, said = where.metered("children", 2 * CPUS, 1, 2 * CPUS, ordinary=True)
    assert said["wait_source"] == said["account"] == "sampled"
    assert said["account_reason"] == NOT_ROOT
    assert said["seen_share"] > 0.8
    assert is_true("run_queue_s", said, truth, share=0.25)
    for unknown in ("memory_stall_s", "account_memory_stall_s", "processes", "threads", "thread_s"):
        assert said[unknown] is None


@tried_again
@pytest.mark.parametrize("ordinary", [False, True])
def test_default_kernel_still_gives_an_account(default_kernel: Bench, ordinary: bool) -> None:
    """Waiting for a core is accounted; for storage, threads are seen in the state of waiting for it."""
    truth, said = default_kernel.metered("children", 2 * CPUS, 0.6, 2 * CPUS, ordinary=ordinary)
    assert said["account"] == said["wait_source"] == "sampled"
    assert said["account_reason"] == (NOT_ROOT if ordinary else SWITCHED_OFF)
    assert is_true("run_queue_s", said, truth, share=0.25 if ordinary else 0.05)
    assert said["memory_stall_s"] is None
    with throttled(64, 8 * MIB) as slow:
        _, said = default_kernel.metered("direct", slow, 6, 256, ordinary=ordinary)
    assert waited_for_storage(said)


def test_page_cache_is_checked_and_not_believed(disk: Path) -> None:
    file = disk / "image"
    file.write_bytes(bytes(4 * MIB))
    assert resident_share([file]) == 1
    descriptor = os.open(file, os.O_RDONLY)
    os.fsync(descriptor)
    os.posix_fadvise(descriptor, 0, 0, os.POSIX_FADV_DONTNEED)
    assert resident_share([file]) == 0
    os.posix_fadvise(descriptor, 0, 0, os.POSIX_FADV_RANDOM)  # else the next read would bring its neighbours
    os.pread(descriptor, MIB, 0)
    os.close(descriptor)
    assert 0.2 <= (resident_share([file]) or 0) <= 0.5
    assert resident_share([]) is None
    assert resident_share([disk / "nowhere"]) is None
    os.mkfifo(disk / "FIFO")
    (disk / "link").symlink_to("image")  # as an annex has
    assert resident_share([disk / "link"]) == resident_share([file]) is not None
    assert [resident_share([path]) for path in (disk / "FIFO", Path("/dev/zero"), disk)] == [None] * 3
