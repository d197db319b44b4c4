"""The lines of ``profiles/cluster-generic`` for PBS, SGE and LSF, against commands that answer as the manuals say."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
import yaml
from support import ENVIRONMENT, ROOT, Project, read_json, script, sleeping, wait_for

PROFILE = ROOT / "profiles/cluster-generic/profile.yaml"
COMMANDS = {
    "PBS": ("qsub", "qstat", "qdel"),
    "SGE": ("qsub", "qstat", "qacct", "qdel"),
    "LSF": ("bsub", "bjobs", "bkill"),
}


def states(project: Project) -> list[str]:
    """What became of each job."""
    return [file.read_text() for file in sorted(project.folder.glob("jobs/[0-9]*"))]


def submitted(project: Project) -> list[str]:
    """The lines of the journal that tell of jobs that were submitted."""
    files = project.results.glob("state/journal/*/*.jsonl")
    return [line for file in files for line in file.read_text().splitlines() if '"submitted"' in line]


@pytest.fixture(params=COMMANDS)
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, request: pytest.FixtureRequest) -> Project:
    """A project with a batch system, which keeps its jobs in the folder ``jobs``, and a profile for it, ``site``."""
    tools, text = tmp_path / "tools", PROFILE.read_text()
    project = Project.at(tmp_path / "project", tools=tools)
    (block,) = re.findall(rf"^# {request.param}.*\n(?:# .*\n)+", text, re.MULTILINE)
    lines = [line.removeprefix("# ") for line in block.splitlines() if re.match("# ( |cluster-generic)", line)]
    profile = yaml.safe_load(text) | yaml.safe_load("\n".join(lines))
    for folder in (tools, project.folder / "jobs", project.folder / "site"):
        folder.mkdir()
    for command in COMMANDS[request.param]:
        (tools / command).symlink_to(ROOT / "tests/stand_ins/batch_system.py")
    script(tools / "sacct", "exit 1")  # a Slurm that other tests have started has jobs of the same numbers
    (project.folder / "site/profile.yaml").write_text(yaml.safe_dump(profile))
    monkeypatch.setitem(ENVIRONMENT, "BATCH", str(project.folder / "jobs"))
    return project


@pytest.mark.nightly
def test_a_job_is_submitted_followed_and_missed_when_it_is_killed(project: Project) -> None:
    project.heads("01", "02")
    ended = project.succeeds("participants", "--profile", "site", cores=0, tool="noop")
    assert states(project) == ["ended 265", "ended 0"], ended.output
    assert len(project.records()) == 2
    (noted,) = project.results.glob("state/jobs/*.json")
    jobs = [(row["source"], row["members"], row["submitted_s"] is None) for row in read_json(noted)["rows"]]
    assert jobs == [("head", None, False), ("job", "sub-01 sub-02", False)], "a job's own notes are found by its number"


@pytest.mark.nightly
def test_a_job_whose_head_was_killed_is_ended_by_the_next(project: Project, monkeypatch: pytest.MonkeyPatch) -> None:
    """Even in a job of Slurm's that was started again; its own jobs were not."""
    monkeypatch.setitem(ENVIRONMENT, "SLURM_RESTART_COUNT", "1")
    project.heads("01")
    project.configure(tool=sleeping(30))
    arguments = ["participants", "--profile", "site"]
    head = project.start(*arguments, cores=0)
    wait_for(lambda: len(submitted(project)) == 2, head)
    head.kill()
    head.wait()
    project.succeeds(*arguments, cores=0).says("neurotier: ended 1 cluster job left by an earlier run: 2")
    assert states(project) == ["ended 265", "ended 137", "ended 0"]
    assert read_json(max(project.results.glob("state/runs/*.json")))["again"] is False
