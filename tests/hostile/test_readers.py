"""Readers: who may read results of another user learns no secret from them, and cannot hold up a run."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest
from support import Project

HOLD = """
import fcntl, os, sys
fcntl.flock(os.open(sys.argv[1], os.O_RDONLY), fcntl.LOCK_EX)
"""


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can be somebody else, too")
def test_a_reader_finds_no_token_and_holds_no_lock(project: Project, demo_source: Path) -> None:
    arguments = project.configure(dataset={"source": str(demo_source)}, tool={"name": "noop"})
    project.results.joinpath("state").mkdir(parents=True)
    (project.results / "state" / "lock").touch(0o644)  # as earlier starts made it
    ended = project.snakemake(*arguments, targets=["ready"])
    assert ended.code == 0, ended.output
    for name in ("settings.json", "lock"):
        assert (project.results / "state" / name).stat().st_mode & 0o077 == 0, name
    folder = os.open(project.results / "state", os.O_RDONLY)  # as if the folders above could be entered
    words = ["setpriv", "--reuid", "65534", "--regid", "65534", "--clear-groups", sys.executable, "-c", HOLD]
    held = subprocess.run([*words, f"/proc/self/fd/{folder}/lock"], pass_fds=[folder], capture_output=True, text=True)
    os.close(folder)
    assert "PermissionError" in held.stderr
