"""A run in which participants copy in and out while others compute: killed half-way, the same command ends it, and the
row of the run that was killed is what it was, though the next start removes a record of it."""

from __future__ import annotations

import os
import shutil
import signal
from pathlib import Path

import pytest
from support import Project, processes_in, read_json, sleeping, wait_for

TARGETS = ("participants", "tabulate_profile", "--cores", "1")


@pytest.mark.nightly
def test_a_killed_run_is_completed_and_its_tables_tell_who_computed(project: Project, demo_source: Path) -> None:
    """Images are fetched meanwhile."""
    snakemake = project.start(*TARGETS, dataset=demo_source, tool=sleeping(4), shares={"staging_beside": 1})
    wait_for(lambda: project.records(), snakemake)
    os.kill(snakemake.pid, signal.SIGKILL)
    snakemake.wait()
    wait_for(lambda: not processes_in(project.folder))
    done = project.records()
    before = {file: file.stat().st_mtime_ns for file in done[1:]}
    shutil.rmtree(project.derivatives / read_json(done[0])["participant"])

    project.succeeds(*TARGETS)
    records = project.records()
    assert len(records) == 4
    assert {file: file.stat().st_mtime_ns for file in before} == before, "who was done stays done"
    assert not project.leftovers()
    runs = project.table("profile/runs.tsv")
    assert runs[0]["participants"] == str(len(done))
    assert runs[0]["valid"].startswith("invalid: the run was killed")
    assert {run["peak_computing"] for run in runs} == {"1"}
    assert max(int(run["peak_parallelism"]) for run in runs) >= 2, "of the first run, or of the next if that had more"
    assert max(read_json(file)["slot_wait_s"] for file in records) > 0
