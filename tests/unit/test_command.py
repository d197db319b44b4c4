"""The command ends in a line, or by the signal, whatever keeps its own modules from being read, or kills its git."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from neurotier.core.errors import TierError
from neurotier.core.places import Places
from neurotier.meter.measure import Interrupted
from neurotier.run.jobs import reporting
from neurotier.run.stops import raising_interrupted
from support import ENVIRONMENT, JOB_ENVIRONMENT, NOBODY, script

WITHOUT_A_MODULE = """
import sys

class Broken:
    def find_spec(self, name, path=None, target=None):
        if name == "neurotier.run.jobs":
            raise {error}

sys.meta_path.insert(0, Broken())
from neurotier.__main__ import main
sys.exit(main(["analyze-participants", "--only", "sub-01", "--results", "results", "--log", "log"]))
"""


@pytest.mark.parametrize(
    ("error", "code", "said"),
    [
        (
            "OSError(5, 'Input/output error', '/library/jobs.py')",
            73,
            "neurotier: /library/jobs.py: Input/output error\n",
        ),
        (
            "ModuleNotFoundError('No module named psutil')",
            73,
            f"neurotier: {sys.prefix}: No module named psutil; install this Python environment again\n",
        ),
        ("KeyboardInterrupt", 130, ""),
    ],
)
def test_modules_that_cannot_be_read_are_a_line_and_no_trace(tmp_path: Path, error: str, code: int, said: str) -> None:
    command = [sys.executable, "-c", WITHOUT_A_MODULE.format(error=error)]
    done = subprocess.run(command, cwd=tmp_path, env=ENVIRONMENT, capture_output=True, text=True)
    assert (done.returncode, done.stderr) == (code, said)


def test_a_package_whose_files_cannot_be_read_is_no_fault_of_ours(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """NumPy answers an unreadable file of its own with a page of advice about installing it."""
    places, log = Places(*[tmp_path] * 5), tmp_path / "log"
    with reporting(places, ["sub-01"], "analyze", log) as result:
        try:
            raise OSError(5, "Input/output error", "/library/array.so")
        except OSError as error:
            raise ImportError("IMPORTANT: PLEASE READ THIS\n" * 20) from error
    assert result.exit_code == TierError.exit_code
    (line,) = capsys.readouterr().err.splitlines()
    assert "[Errno 5] Input/output error: '/library/array.so'; start the same command again" in line
    assert "fault in neurotier" not in line
    assert "PLEASE READ" in log.read_text()


LIMITED = f"""
import os, resource, subprocess, threading
from types import SimpleNamespace
from neurotier.analysis.tools import Tool
from neurotier.run.jobs import own_error

def start_tool():
    with Tool.starting(SimpleNamespace(name="bet"), "sub-01"):
        subprocess.run(["true"])

resource.setrlimit(resource.RLIMIT_AS, (1 << 32,) * 2)
resource.setrlimit(resource.RLIMIT_NPROC, (0, 0))
if os.getuid() == 0:  # whose processes are not limited
    os.setuid({NOBODY})
threading.stack_size(1 << 33)
for work in (lambda: bytearray(1 << 33), threading.Thread().start, os.fork, start_tool):
    try:
        work()
    except Exception as error:
        print(own_error(error).exit_code, own_error(error))
"""


def test_where_memory_or_processes_are_limited_another_attempt_may_be_given_more() -> None:
    """Nothing is killed there for lack of them."""
    done = subprocess.run([sys.executable, "-c", LIMITED], env=JOB_ENVIRONMENT, capture_output=True, text=True)
    assert not done.stderr
    said, fix = "137 no more memory, threads or processes: ", "; see the limits (ulimit -a), and start the same command"
    lines = done.stdout.splitlines()
    assert [line.startswith(said) and fix in line for line in lines] == [True] * 4, lines


def test_a_stop_while_a_module_makes_a_class_is_a_stop(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    class Stopping:
        def __set_name__(self, *_: Any) -> None:
            signal.raise_signal(signal.SIGTERM)

    with raising_interrupted(), reporting(Places(*[tmp_path] * 5), ["sub-01"], "analyze", tmp_path / "log") as result:
        type("Made", (), {"attribute": Stopping()})
    with pytest.raises(Interrupted), raising_interrupted():
        type("Made", (), {"attribute": Stopping()})
    assert (result.exit_code, capsys.readouterr().err) == (128 + signal.SIGTERM, "")


GET = """
from neurotier.dataset.commands import datalad_errors
from neurotier.core.errors import NeurotierError
try:
    with datalad_errors():
        from datalad.api import get
        get(path=["image"], dataset=".")
except NeurotierError as error:
    print(type(error).__name__, error)
"""


@pytest.mark.parametrize(
    ("killed", "said"),
    [
        ("*version*", "SourceError git or git-annex: does not answer"),
        ("*", "KilledError git or git-annex: git config was killed"),
    ],
)
def test_a_git_that_was_killed_is_reported_in_a_line(tmp_path: Path, killed: str, said: str) -> None:
    """Which DataLad raises as a trace."""
    script(tmp_path / "git", f'case "$*" in\n{killed}) kill -9 $$ ;;\nesac\nexec {shutil.which("git")} "$@"')
    environment = {**ENVIRONMENT, "PATH": f"{tmp_path}{os.pathsep}{os.environ['PATH']}"}
    printed = subprocess.check_output([sys.executable, "-c", GET], cwd=tmp_path, env=environment, text=True)
    assert printed.startswith(said)
