"""What DataLad raises when its git is killed is an error in a line."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from support import ENVIRONMENT, script

GET = """
from neurotier.dataset.commands import naming_commands
from neurotier.core.errors import NeurotierError
try:
    with naming_commands():
        from datalad.api import get
        get(path=["image"], dataset=".")
except NeurotierError as error:
    print(type(error).__name__, error)
"""


@pytest.mark.parametrize(
    ("killed", "said"),
    [
        ("*version*", "SourceError git or git-annex: does not answer"),
        ("*", "KilledError git or git-annex: git --git-dir=/dev/null was killed"),
    ],
)
def test_git_that_is_killed_is_said_in_a_line(tmp_path: Path, killed: str, said: str) -> None:
    script(tmp_path / "git", f'case "$*" in\n{killed}) kill -9 $$ ;;\nesac\nexec {shutil.which("git")} "$@"')
    environment = {**ENVIRONMENT, "PATH": f"{tmp_path}{os.pathsep}{os.environ['PATH']}"}
    printed = subprocess.check_output([sys.executable, "-c", GET], cwd=tmp_path, env=environment, text=True)
    assert printed.startswith(said)
