"""The engine ``spark``, with real Spark: parts of its time that add up, a log cut off, and bad blocks in it."""

from __future__ import annotations

import math
import shutil
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest
from bigbrain_blocks import make, plan_of, task_of
from neurotier.bigbrain.engines.spark import run_spark
from neurotier.bigbrain.engines.spark_events import (
    DRIVER_PARTS,
    Driver,
    driver_parts,
    drivers_of,
    read_events,
    task_parts,
)
from neurotier.bigbrain.tabulation import records_of
from neurotier.bigbrain.tasks import Task
from support import ENVIRONMENT, PATIENCE_S

pytestmark = pytest.mark.usefixtures("spark")

DELAY_S = 0.1
CLOSE_S = 0.002
"""Spark counts in ms."""


def task_in(folder: Path) -> Task:
    """A run of three small blocks that is not started."""
    return task_of(folder, make(folder), run="spark/disk/2/1", iterations=2, delay_s=DELAY_S)


@pytest.fixture(scope="module")
def done(tmp_path_factory: pytest.TempPathFactory, spark: None) -> Task:
    """A run on this machine that went well."""
    folder = tmp_path_factory.mktemp("spark")
    task = task_in(folder)
    run_spark(plan_of(task), folder / "logs", "local", {})
    return task


def driver_of(task: Task) -> Driver:
    (driver,) = drivers_of(Path(task.records).parent)
    return driver


def test_parts_of_the_driver_add_up_to_its_wall_time(done: Task) -> None:
    driver = driver_of(done)
    assert driver.end_s is not None
    parts = driver_parts(driver, read_events(Path(driver.events)))
    assert tuple(parts) == DRIVER_PARTS
    assert math.fsum(parts.values()) == pytest.approx(driver.end_s - driver.start_s)
    assert all(wall_s >= -CLOSE_S for wall_s in parts.values()), parts
    assert parts["jvm_start"] + parts["context"] == pytest.approx(driver.session_s)
    assert parts["tasks"] >= 2 * 2 * DELAY_S  # three blocks, two at once: one thread has two of them


def test_log_that_a_kill_cut_off_is_read_as_far_as_it_goes(done: Task, tmp_path: Path) -> None:
    driver = driver_of(done)
    shutil.copytree(driver.events, tmp_path / "events")
    (log,) = tmp_path.rglob("events_1_*")
    text = log.read_text()
    second_end = [place for place in range(len(text)) if text.startswith('{"Event":"SparkListenerTaskEnd"', place)][1]
    log.write_text(text[: second_end + 100])
    events = read_events(tmp_path / "events")
    assert len(events.tasks) == 1
    killed = replace(driver, end_s=None)
    parts = driver_parts(killed, events)
    assert parts["ending"] == 0
    assert math.fsum(parts.values()) == pytest.approx(events.tasks[0]["end_s"] - driver.start_s)
    (tmp_path / "nothing").mkdir()
    nothing = read_events(tmp_path / "nothing")
    assert list(driver_parts(killed, nothing).values()) == pytest.approx([driver.session_s, 0, 0, 0, 0])
    assert set(task_parts(nothing, records_of(done)).values()) == {0}


def test_missing_java_is_said(tmp_path: Path) -> None:
    program = "import sys; from pathlib import Path; from neurotier.bigbrain.engines.spark import run_spark\n"
    program += "run_spark(Path(sys.argv[1]), Path(sys.argv[2]), 'local', {})"
    command = [sys.executable, "-c", program, str(plan_of(task_in(tmp_path))), str(tmp_path / "logs")]
    environment = {**ENVIRONMENT, "JAVA_HOME": str(tmp_path)}  # before the one on PATH
    ended = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=PATIENCE_S)
    assert ended.returncode != 0
    line = ended.stderr.splitlines()[-1]
    assert "engine spark: Spark failed: [JAVA_GATEWAY_EXITED]" in line
    assert line.endswith(f"; is there Java 17 or later? see {tmp_path / 'logs' / 'spark.log'}")
