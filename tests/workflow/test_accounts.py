"""Where the time of containers went, with the accounting of waits for storage, and without, as Linux boots."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from pathlib import Path

import pytest
from conftest import missing
from container_images import Engine, make_tiny
from support import Project, numbered

pytestmark = pytest.mark.alone

SWITCH = Path("/proc/sys/kernel/task_delayacct")
APP = """mkdir -p /out/sub-$5
i=0; while [ $i -lt 200000 ]; do i=$((i+1)); done
echo $i >/out/sub-$5/counted"""
"""A BIDS App that computes, and neither reads nor waits."""

CAUSES = [f"account_{cause}_s" for cause in ("user", "system", "run_queue", "block_io", "memory_stall", "other")]


@pytest.fixture(params=["0", "1"])
def accounting(request: pytest.FixtureRequest) -> Iterator[str]:
    """The kernel's accounting of waits for storage and memory, off and on."""
    before = SWITCH.read_text()
    try:
        SWITCH.write_text(request.param)
    except PermissionError:
        missing("the kernel's accounting of waits can be switched by root alone")
    try:
        yield request.param
    finally:
        SWITCH.write_text(before)


def known_s(rows: list[dict[str, str]], *columns: str) -> float:
    return sum(float(row[column]) for row in rows for column in columns if row[column] != "n/a")


def test_a_container_has_an_account(project: Project, engine: Engine, tmp_path: Path, accounting: str) -> None:
    """Twice as many participants at once as there are cores: all of it is computing and waiting for a core."""
    at_once = 2 * len(os.sched_getaffinity(0))
    project.heads(*numbered(at_once))
    app = {"image": make_tiny(engine, tmp_path, APP), "name": "tiny"}
    project.succeeds("--sdm", "apptainer", cores=at_once, app=app, shares={"participants": 1})
    rows = project.table("profile/profile.tsv")
    computing = [row for row in rows if row["phase"] == "compute"]
    assert len(computing) == at_once
    for row in rows:
        assert row["account"] != "n/a", row
        assert known_s([row], *CAUSES, "residual_s") == pytest.approx(float(row["wall_s"]), abs=1e-4)
    explained_s = known_s(computing, "account_user_s", "account_system_s", "account_run_queue_s")
    assert explained_s == pytest.approx(known_s(computing, "wall_s"), rel=0.1)
    run = project.only_run
    assert "n/a" not in (run["account_run_queue_sum_s"], run["account_block_io_sum_s"])
    (most,) = set(re.findall(r"faster tier saves at most (?:about )?([\d.]+)\s%\.", project.page("report")))
    elsewhere_s = known_s(rows, "wall_s") - known_s(rows, "account_user_s", "account_run_queue_s")
    assert float(most) / 100 <= elsewhere_s / known_s(rows, "wall_s") + 0.03
