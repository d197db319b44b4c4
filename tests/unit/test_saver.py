"""The process that saves while jobs go on: the end of a run waits for it, and not for ever."""

from __future__ import annotations

import signal
import subprocess
import sys
from pathlib import Path

import pytest
from neurotier.core.places import Places
from neurotier.run import saver
from neurotier.run.saver import Saver

DEAF = "import signal, time; signal.signal(signal.SIGTERM, signal.SIG_IGN); print(flush=True); time.sleep(600)"
LAST = "import sys; print(flush=True); sys.stdin.read()"


@pytest.mark.parametrize(
    ("program", "at_once", "code", "lines"),
    [(LAST, False, 0, 0), (LAST, True, -signal.SIGTERM, 0), (DEAF, False, -signal.SIGKILL, 1)],
)
def test_it_ends(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, program: str, at_once: bool, code: int, lines: int
) -> None:
    """By itself when its input ends, told to after Ctrl-C, and killed if it hears nothing."""

    def start(_: list[str], **options: int) -> subprocess.Popen[bytes]:
        process = subprocess.Popen([sys.executable, "-c", program], stdin=options["stdin"], stdout=subprocess.PIPE)
        assert process.stdout is not None
        process.stdout.readline()
        return process

    monkeypatch.setattr(saver, "start_process", start)
    for name in ("TOLD_S", "PATIENCE_S", "CLEAR_UP_S"):
        monkeypatch.setattr(saver, name, 0.3 if program == DEAF else 60.0)
    said: list[str] = []
    one = Saver(Places(*[tmp_path] * 5))
    one.stop(at_once, said.append)
    assert one.process.wait(60) == code or (at_once and one.process.returncode == 0)
    assert len(said) == lines
