"""The lines of ``profiles/cluster-generic`` for PBS, SGE and LSF, against commands that answer as the manuals say."""

from __future__ import annotations

import re
from pathlib import Path
from typing import NamedTuple

import pytest
import yaml
from support import ENVIRONMENT, ROOT, Project, read_json, sleeping, wait_for

PROFILE = ROOT / "profiles/cluster-generic/profile.yaml"
COMMANDS = {
    "PBS": ("qsub", "qstat", "qdel"),
    "SGE": ("qsub", "qstat", "qacct", "qdel"),
    "LSF": ("bsub", "bjobs", "bkill"),
}


class Batch(NamedTuple):
    """Folders of its commands and of its jobs."""

    tools: Path
    jobs: Path

    def states(self) -> list[str]:
        """What became of each job."""
        return [file.read_text() for file in sorted(self.jobs.glob("[0-9]*"))]


def submitted(project: Project) -> list[str]:
    """The lines of the journal that tell of jobs that were submitted."""
    files = project.results.glob("state/journal/*/*.jsonl")
    return [line for file in files for line in file.read_text().splitlines() if '"submitted"' in line]


@pytest.fixture(params=COMMANDS)
def batch(project: Project, monkeypatch: pytest.MonkeyPatch, request: pytest.FixtureRequest) -> Batch:
    """A batch system, and a profile for it in the folder ``site``."""
    system = request.param
    profile = yaml.safe_load(PROFILE.read_text())
    block = re.search(rf"^# {system}.*\n(?:# .*\n)+", PROFILE.read_text(), re.MULTILINE)
    assert block
    lines = [line.removeprefix("# ") for line in block[0].splitlines() if re.match("# ( |cluster-generic)", line)]
    profile |= yaml.safe_load("\n".join(lines))
    tools, jobs = project.folder / "tools", project.folder / "jobs"
    for folder in (tools, jobs, project.folder / "site"):
        folder.mkdir()
    for command in COMMANDS[system]:
        (tools / command).symlink_to(ROOT / "tests/stand_ins/batch_system.py")
    Path(project.folder, "site", "profile.yaml").write_text(yaml.safe_dump(profile))
    monkeypatch.setitem(ENVIRONMENT, "BATCH", str(jobs))
    return Batch(tools, jobs)


@pytest.mark.nightly
def test_a_job_is_submitted_followed_and_missed_when_it_is_killed(project: Project, batch: Batch) -> None:
    project.heads("01", "02")
    ended = project.succeeds("participants", "--profile", "site", cores=0, path=batch.tools, tool="noop")
    assert batch.states() == ["ended 265", "ended 0"], ended.output
    assert len(project.records()) == 2


@pytest.mark.nightly
def test_a_job_whose_head_was_killed_is_ended_by_the_next(
    project: Project, batch: Batch, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Even in a job of Slurm's that was started again; its own jobs were not."""
    monkeypatch.setitem(ENVIRONMENT, "SLURM_RESTART_COUNT", "1")
    project.heads("01")
    project.configure(tool=sleeping(30))
    arguments = ["participants", "--profile", "site"]
    head = project.start(*arguments, cores=0, path=batch.tools)
    wait_for(lambda: len(submitted(project)) == 2, head)
    head.kill()
    head.wait()
    project.succeeds(*arguments, cores=0, path=batch.tools).says(
        "neurotier: ended 1 cluster job left by an earlier run: 2"
    )
    assert batch.states() == ["ended 265", "ended 137", "ended 0"]
    assert read_json(max(project.results.glob("state/runs/*.json")))["again"] is False
