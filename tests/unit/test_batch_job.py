"""The job of a batch: everyone for itself, nobody twice, and nothing left behind however it ends."""

from __future__ import annotations

import json
import os
import signal
import time
from contextlib import suppress
from pathlib import Path
from typing import Any

import psutil
import pytest
from batch_jobs import RUN, done_in, job, prepared_results, sleepers, sleeping
from neurotier.core.files import write_json
from neurotier.core.places import Places, file_of
from neurotier.core.processes import lives
from neurotier.run.batches import key_of
from neurotier.run.jobs import load_settings
from neurotier.run.participants import selected_by
from support import PATIENCE_S, plain_dataset, t1w


def failure(results: Path, name: str) -> dict[str, Any]:
    data: dict[str, Any] = json.loads(file_of(results / "state" / "failures", name).read_text())
    return data


def test_each_participant_of_a_batch_has_a_record_and_a_log_of_its_own(tmp_path: Path) -> None:
    results = prepared_results(tmp_path, ["01", "02", "03"])
    batch = job(results, "sub-01", "sub-02", "sub-03")
    output, _ = batch.communicate()
    assert (batch.returncode, output) == (0, "")
    for name in ("sub-01", "sub-02", "sub-03"):
        record = json.loads(file_of(results / "profile" / "records", name).read_text())
        assert [phase["phase"] for phase in record["phases"]] == ["start_up", "stage_in", "compute", "stage_out"]
        images = selected_by(results / "index" / "images.tsv")[name]
        assert record["analysis"] == key_of("analysis", images)
        assert file_of(results / "logs" / "analyze_participant", name, ".log").exists()
    marker = json.loads((results / "state" / "batches" / "0").read_text())
    assert marker == {"participants": ["sub-01", "sub-02", "sub-03"], "failed": {}}


def test_a_bad_image_fails_its_participant_alone_and_the_batch_is_settled(tmp_path: Path) -> None:
    results = prepared_results(tmp_path, ["01", "02", "03"])
    plain_dataset(tmp_path / "bids", {t1w("02"): b"no image"})
    batch = job(results, "sub-01", "sub-02", "sub-03")
    output, _ = batch.communicate()
    assert batch.returncode == 0, output
    assert output.startswith("neurotier: sub-02: sub-02/anat/sub-02_T1w.nii.gz: ")
    assert done_in(results) == ["sub-01", "sub-03"]
    assert json.loads((results / "state" / "batches" / "0").read_text())["failed"] == {"sub-02": 65}
    assert failure(results, "sub-02")["exit_code"] == 65


def test_without_keep_going_nobody_is_begun_after_a_failure(tmp_path: Path) -> None:
    results = prepared_results(tmp_path, ["01", "02", "03"])
    plain_dataset(tmp_path / "bids", {t1w("01"): b"no image"})
    write_json(results / "state" / "runs" / f"{RUN}.json", {"keep_going": False})
    batch = job(results, "sub-01", "sub-02", "sub-03", at_once=1)
    batch.communicate()
    assert batch.returncode == 65
    assert done_in(results) == []
    assert not (results / "state" / "batches" / "0").exists()


def test_a_job_that_comes_after_its_run_does_nothing(tmp_path: Path) -> None:
    """What Slurm starts late, for a run that is over, others do by now."""
    results = prepared_results(tmp_path, ["00"])
    places = Places.from_settings(load_settings(results))
    write_json(places.runs / f"{RUN}.json", {"run": RUN, "started_s": time.time(), "elsewhere": True})
    places.latest_run.write_text("another-run\n")
    late = job(results, "sub-00")
    output, _ = late.communicate(timeout=PATIENCE_S)
    assert late.returncode == 75
    assert "another run has begun since this job was submitted" in output
    assert done_in(results) == []
    assert not (results / "batch.log").exists(), "the log may be that of a job of the other run"
    places.latest_run.write_text(f"{RUN}\n")
    assert job(results, "sub-00").wait(PATIENCE_S) == 0
    assert done_in(results) == ["sub-00"]


def test_who_is_killed_is_tried_again_and_who_is_done_is_not(tmp_path: Path) -> None:
    results = sleeping(tmp_path, 8.0, "01", "02", "03")
    batch = job(results, "sub-01", "sub-02", "sub-03", at_once=3)
    victim = sleepers(batch, 3)[0]
    copy = next(parent for parent in victim.parents() if parent.ppid() == batch.pid)
    copy.kill()
    output, _ = batch.communicate()
    assert batch.returncode == 137
    assert "was killed by SIGKILL" in output
    assert not lives(victim)
    done = done_in(results)
    (killed,) = {"sub-01", "sub-02", "sub-03"} - set(done)
    assert failure(results, killed)["exit_code"] == 137
    assert not (results / "state" / "batches" / "0").exists()

    times = {name: file_of(results / "profile" / "records", name).stat().st_mtime_ns for name in done}
    again = job(results, "sub-01", "sub-02", "sub-03", at_once=3)
    output, _ = again.communicate()
    assert again.returncode == 0, output
    assert f"1 of 3 to analyse: {killed}" in (results / "batch.log").read_text()
    assert {name: file_of(results / "profile" / "records", name).stat().st_mtime_ns for name in done} == times
    assert not file_of(results / "state" / "failures", killed).exists()


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
@pytest.mark.parametrize("whole_group", [False, True])
def test_a_batch_that_is_ended_leaves_nothing_behind(tmp_path: Path, number: signal.Signals, whole_group: bool) -> None:
    """A scheduler tells one process; a terminal tells them all at the same time."""
    results = sleeping(tmp_path, 100, "01", "02", "03")
    batch = job(results, "sub-01", "sub-02", "sub-03")
    family = [*sleepers(batch, 2), *psutil.Process(batch.pid).children(recursive=True)]
    for process in [psutil.Process(batch.pid), *(family if whole_group else [])]:
        with suppress(psutil.NoSuchProcess):
            process.send_signal(number)
    output, _ = batch.communicate(timeout=PATIENCE_S)
    assert batch.returncode == 128 + number
    assert "Traceback" not in output
    assert not [process for process in family if process.is_running()]
    work = Places.from_settings(load_settings(results)).work
    assert not work.exists() or not os.listdir(work)
    assert done_in(results) == []


def test_copies_end_when_the_process_of_the_batch_is_killed(tmp_path: Path) -> None:
    results = sleeping(tmp_path, 100, "01", "02")
    batch = job(results, "sub-01", "sub-02")
    family = [*sleepers(batch, 2), *psutil.Process(batch.pid).children(recursive=True)]
    batch.kill()
    batch.communicate()
    _, left = psutil.wait_procs(family, timeout=PATIENCE_S)
    assert not left, left


def test_a_failed_second_analysis_leaves_no_record_behind(tmp_path: Path) -> None:
    results = prepared_results(tmp_path, ["01"])
    first = job(results, "sub-01")
    assert first.communicate()[0] == ""
    plain_dataset(tmp_path / "bids", {t1w("01"): b"no image"})
    write_json(results / "state" / "runs" / "again.json", {"anew": True})
    job(results, "sub-01", NEUROTIER_RUN="again").communicate()
    assert done_in(results) == []


def test_who_cannot_be_fetched_keeps_no_old_record(tmp_path: Path) -> None:
    """It would pass for one of the tool that is there now, and the run end as if everyone were done."""
    results = prepared_results(tmp_path, ["01", "02"])
    assert job(results, "sub-01", "sub-02").communicate()[0] == ""
    write_json(results / "index" / "tool.json", {"name": "noop", "version": "2"})
    write_json(results / "state" / "got" / "0", {"participants": {"sub-02": {"failed": 69}}})
    job(results, "sub-01", "sub-02", NEUROTIER_RUN="again").communicate()
    assert done_in(results) == ["sub-01"]
