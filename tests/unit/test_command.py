"""The command ends in a line, or by the signal, whatever keeps its own modules from being read."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest
from support import ENVIRONMENT

WITHOUT_A_MODULE = """
import sys

class Broken:
    def find_spec(self, name, path=None, target=None):
        if name == "neurotier.run.jobs":
            raise {error}

sys.meta_path.insert(0, Broken())
from neurotier.__main__ import main
sys.exit(main(["analyze-participant", "sub-01", "--results", "results", "--log", "log"]))
"""


@pytest.mark.parametrize(
    ("error", "code", "said"),
    [
        (
            "OSError(5, 'Input/output error', '/library/jobs.py')",
            73,
            "neurotier: /library/jobs.py: Input/output error\n",
        ),
        ("KeyboardInterrupt", 130, ""),
    ],
)
def test_modules_that_cannot_be_read_are_a_line_and_no_trace(tmp_path: Path, error: str, code: int, said: str) -> None:
    done = subprocess.run(
        [sys.executable, "-c", WITHOUT_A_MODULE.format(error=error)],
        cwd=tmp_path,
        env=ENVIRONMENT,
        capture_output=True,
        text=True,
        check=False,
    )
    assert (done.returncode, done.stderr) == (code, said)
