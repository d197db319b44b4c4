"""Slots: never more who compute or copy than asked for, whoever dies, and nobody who waits for one that is gone."""

from __future__ import annotations

import json
import os
import signal
import time
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any

import psutil
import pytest
from batch_jobs import done_in, job, prepared_results, sleepers, sleeping
from neurotier.advice.observed import BETWEEN, observe
from neurotier.analysis.slots import Slots
from neurotier.core.files import read_json, write_json
from neurotier.core.parallelism import COMPUTING_PHASES, job_spans, peak
from neurotier.core.places import Places, file_of
from neurotier.run.batches import STAGING_MB
from neurotier.run.jobs import load_settings
from neurotier.run.plan import Plan
from support import PATIENCE_S, plain_dataset, t1w

EVERYONE = ("sub-01", "sub-02", "sub-03", "sub-04")


def forked(work: Callable[[], None]) -> int:
    """A copy of this process that works, and ends."""
    pid = os.fork()
    if pid == 0:
        try:
            work()
        finally:
            os._exit(0)
    return pid


def read_within(pipe: int, size: int) -> bytes:
    """So many bytes of a pipe, which must come."""
    os.set_blocking(pipe, False)
    deadline, came = time.monotonic() + PATIENCE_S, b""
    while len(came) < size:
        with suppress(BlockingIOError):
            came += os.read(pipe, size - len(came))
        assert time.monotonic() < deadline, came
        time.sleep(0.01)
    return came


def test_no_more_hold_a_slot_than_there_are_and_all_have_their_turn() -> None:
    slots, (said, saying) = Slots(2), os.pipe()

    def work() -> None:
        for _ in range(5):
            slot = slots.take()
            os.write(saying, b"+")
            time.sleep(0.06)  # longer than between two looks
            os.write(saying, b"-")
            slots.give(slot)

    pids = [forked(work) for _ in range(5)]
    holding, most = 0, 0
    for sign in read_within(said, 50).decode():
        holding += 1 if sign == "+" else -1
        most = max(most, holding)
    assert (holding, most) == (0, 2)
    for pid in pids:
        os.waitpid(pid, 0)


def test_who_is_killed_takes_neither_its_slot_nor_its_place_in_the_queue_along() -> None:
    slots, (said, saying) = Slots(1), os.pipe()

    def hold(name: bytes) -> Callable[[], None]:
        def work() -> None:
            slots.take()
            os.write(saying, name)
            time.sleep(PATIENCE_S)

        return work

    pids = [forked(hold(b"a"))]
    assert read_within(said, 1) == b"a"
    pids += [forked(hold(b"b")) for _ in range(2)]
    time.sleep(0.1)  # one of them looks, the other waits for that one
    os.kill(pids[1], signal.SIGKILL)
    os.waitpid(pids[1], 0)
    os.kill(pids[0], signal.SIGKILL)
    os.waitpid(pids[0], 0)
    assert read_within(said, 1) == b"b"
    os.kill(pids[2], signal.SIGKILL)
    os.waitpid(pids[2], 0)
    assert slots.take() == 0


def records(results: Path) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = [read_json(file_of(results / "profile" / "records", name)) for name in EVERYONE]
    return found


def test_one_computes_while_others_copy_and_their_wait_is_no_part_of_a_phase(tmp_path: Path) -> None:
    results = sleeping(tmp_path, 2, "01", "02", "03", "04")
    batch = job(results, *EVERYONE, at_once=1, beside=2)
    output, _ = batch.communicate()
    assert (batch.returncode, output) == (0, "")
    found = records(results)
    rows = [phase | {"participant": record["participant"]} for record in found for phase in record["phases"]]
    assert peak(job_spans([row for row in rows if row["phase"] in COMPUTING_PHASES])) == 1
    born = [row for row in rows if row["phase"] != "start_up"]  # which is told to a tick of the kernel's clock
    assert peak(job_spans(born)) == 3
    for phase in ("stage_in", "stage_out"):
        assert peak(job_spans([row for row in rows if row["phase"] == phase])) <= 2
    waited = [record for record in found if record["slot_wait_s"] > 0.25]
    assert len(waited) == 3, "all but the first"
    for record in waited:
        compute = next(phase for phase in record["phases"] if phase["phase"] == "compute")
        stage_in = next(phase for phase in record["phases"] if phase["phase"] == "stage_in")
        assert compute["start_s"] - stage_in["end_s"] > 0.9 * record["slot_wait_s"]
        seen = observe(record, 1, 0.0)
        assert seen.phases[BETWEEN]["cpu_s"] < seen.wall_s - record["slot_wait_s"]


def test_a_killed_participant_gives_its_slot_to_the_next_and_a_killed_job_leaves_nobody(tmp_path: Path) -> None:
    results = sleeping(tmp_path, 100, "01", "02", "03", "04")
    batch = job(results, *EVERYONE, at_once=1, beside=1)
    (victim,) = sleepers(batch, 1)
    copy = next(parent for parent in victim.parents() if parent.ppid() == batch.pid)
    copy.kill()
    psutil.wait_procs([victim], timeout=PATIENCE_S)
    (second,) = sleepers(batch, 1)
    assert second.pid != victim.pid, "who waited computes"
    family = psutil.Process(batch.pid).children(recursive=True)
    batch.kill()
    batch.communicate()
    _, left = psutil.wait_procs(family, timeout=PATIENCE_S)
    assert not left, left
    assert done_in(results) == []

    settings = results / "state" / "settings.json"
    quick = json.loads(settings.read_text())
    quick["tool"]["options"]["sleep_s"] = 0
    write_json(settings, quick)
    again = job(results, *EVERYONE, at_once=1, beside=1)
    output, _ = again.communicate()
    assert again.returncode == 0, output
    assert done_in(results) == list(EVERYONE)


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_who_waits_for_a_slot_ends_when_it_is_told_to_and_clears_up(tmp_path: Path, number: signal.Signals) -> None:
    results = sleeping(tmp_path, 100, "01", "02", "03", "04")
    batch = job(results, *EVERYONE, at_once=1, beside=2)
    sleepers(batch, 1)
    work = Places.from_settings(load_settings(results)).work
    while sum(1 for _ in work.glob("*/in/*/*/*.nii.gz")) < 3 and batch.poll() is None:
        time.sleep(0.02)  # until all three have their images
    family = psutil.Process(batch.pid).children(recursive=True)
    batch.send_signal(number)
    output, _ = batch.communicate(timeout=PATIENCE_S)
    assert batch.returncode == 128 + number
    assert "Traceback" not in output
    assert not [process for process in family if process.is_running()]
    assert not work.exists() or not os.listdir(work)


def test_a_bad_image_of_one_who_waits_fails_it_alone(tmp_path: Path) -> None:
    results = prepared_results(tmp_path, ["01", "02", "03", "04"])
    plain_dataset(tmp_path / "bids", {t1w("02"): b"no image"})
    batch = job(results, *EVERYONE, at_once=1, beside=1)
    output, _ = batch.communicate()
    assert batch.returncode == 0, output
    assert done_in(results) == ["sub-01", "sub-03", "sub-04"]


def test_memory_and_room_of_those_beside_are_asked_for_and_without_room_there_are_none(tmp_path: Path) -> None:
    results = prepared_results(tmp_path, ["01", "02", "03", "04"], batches={"at_once": 2, "staging_beside": 3})
    settings = load_settings(results)
    plan = Plan(settings, Places.from_settings(settings))
    plan.would_be = {"0": list(EVERYONE)}
    assert plan.beside("0") == 2, "there are no more participants"
    each_mb = plan.work_mb("sub-01")
    assert plan.batch_work_mb("0") == 4 * each_mb
    assert plan.batch_mem_mb("0") == 2 * plan.mem_mb("sub-01") + 2 * STAGING_MB
    assert plan.batch_threads("0") == 2, "a core for each who computes"
    plan.work_limit_mb = 4 * each_mb - 1
    assert (plan.beside("0"), plan.batch_work_mb("0")) == (1, 3 * each_mb)
    plan.work_limit_mb = 2 * each_mb
    assert (plan.beside("0"), plan.batch_work_mb("0")) == (0, 2 * each_mb)
    plan.work_limit_mb, plan.memory_limit_mb = None, 2 * plan.mem_mb("sub-01") + STAGING_MB
    assert plan.beside("0") == 1
