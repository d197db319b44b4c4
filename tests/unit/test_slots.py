"""Slots: never more who compute or copy than asked for, whoever dies, and nobody who waits for one that is gone."""

from __future__ import annotations

import json
import os
import signal
import time
from pathlib import Path
from typing import Any

import psutil
import pytest
from batch_jobs import done_in, job, prepared_results, sleepers, sleeping
from neurotier.advice.observed import BETWEEN, observe
from neurotier.core.files import read_json, write_json
from neurotier.core.parallelism import COMPUTING_PHASES, job_spans, peak
from neurotier.core.places import Places, file_of
from neurotier.run.batches import STAGING_MB
from neurotier.run.jobs import load_settings
from neurotier.run.plan import Plan
from support import PATIENCE_S

EVERYONE = ("sub-01", "sub-02", "sub-03", "sub-04")


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
        assert seen.phases[BETWEEN]["cpu_s"] < seen.end_s - seen.start_s - record["slot_wait_s"]


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


def test_memory_and_room_of_those_beside_are_asked_for(tmp_path: Path) -> None:
    results = prepared_results(tmp_path, ["01", "02", "03", "04"], batches={"at_once": 2, "staging_beside": 3})
    settings = load_settings(results)
    plan = Plan(settings, Places.from_settings(settings))
    plan.would_be = {"0": list(EVERYONE)}
    assert plan.beside("0") == 2, "there are no more participants"
    each_mb = plan.work_mb("sub-01")
    assert plan.batch_work_mb("0") == 4 * each_mb
    assert plan.batch_mem_mb("0") == 2 * plan.mem_mb("sub-01") + 2 * STAGING_MB
    assert plan.batch_threads("0") == 2, "a core for each who computes"
