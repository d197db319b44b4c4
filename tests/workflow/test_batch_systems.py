"""The lines of ``profiles/cluster-generic`` for PBS, SGE and LSF, against commands that answer as the manuals say."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
import yaml
from support import ENVIRONMENT, ROOT, Project

PROFILE = ROOT / "profiles" / "cluster-generic" / "profile.yaml"
COMMANDS = {
    "PBS": ("qsub", "qstat", "qdel"),
    "SGE": ("qsub", "qstat", "qacct", "qdel"),
    "LSF": ("bsub", "bjobs", "bkill"),
}


@pytest.mark.nightly
@pytest.mark.parametrize("system", COMMANDS)
def test_a_job_is_submitted_followed_and_missed_when_it_is_killed(
    project: Project, monkeypatch: pytest.MonkeyPatch, system: str
) -> None:
    profile = yaml.safe_load(PROFILE.read_text())
    block = re.search(rf"^# {system}.*\n(?:# .*\n)+", PROFILE.read_text(), re.MULTILINE)
    assert block
    lines = [line.removeprefix("# ") for line in block[0].splitlines() if re.match("# ( |cluster-generic)", line)]
    profile |= yaml.safe_load("\n".join(lines))
    tools, jobs = project.folder / "tools", project.folder / "jobs"
    for folder in (tools, jobs, project.folder / "site"):
        folder.mkdir()
    for command in COMMANDS[system]:
        (tools / command).symlink_to(ROOT / "tests" / "stand_ins" / "batch_system.py")
    Path(project.folder, "site", "profile.yaml").write_text(yaml.safe_dump(profile))
    monkeypatch.setitem(ENVIRONMENT, "BATCH", str(jobs))
    project.heads("01", "02")
    ended = project.succeeds("participants", *project.configure(tool="noop"), "--profile", "site", cores=0, path=tools)
    assert [file.read_text() for file in sorted(jobs.glob("[0-9]*"))] == ["ended 265", "ended 0"], ended.output
    assert len(project.records()) == 2
