"""Processes are found by what their run put into their environment, and ended whether or not anybody reaps them."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager

import psutil
from neurotier.core.processes import RUN, end, is_alive, processes_of
from support import JOB_ENVIRONMENT, PATIENCE_S

WHILE_FORKING = """
import functools, os, signal
from neurotier.core.processes import start_process
from neurotier.run.stops import raising_interrupted
os.register_at_fork(before=functools.partial(os.kill, os.getpid(), signal.SIGTERM))
with raising_interrupted():
    start_process(["sleep", "1000"]).wait()
"""


@contextmanager
def started(run: str, *command: str) -> Iterator[subprocess.Popen[bytes]]:
    """A process of a run, which is killed at the end."""
    with subprocess.Popen(command or ("sleep", "1000"), env={**os.environ, RUN: run}) as process:
        try:
            yield process
        finally:
            process.kill()


def test_those_of_the_runs_are_found_and_no_others() -> None:
    with started("test-processes-1") as ours, started("test-processes-2"):
        assert processes_of({"test-processes-1", "test-processes-0"}) == [psutil.Process(ours.pid)]


def test_neither_this_process_nor_those_above_it_are_found() -> None:
    script = "from neurotier.core.processes import processes_of; print(len(processes_of({'test-processes-3'})))"
    shell = f'"{sys.executable}" -c "{script}"; true'
    printed = subprocess.check_output(["sh", "-c", shell], env={**os.environ, RUN: "test-processes-3"})
    assert printed.strip() == b"0"


def test_one_that_ignores_sigterm_is_killed() -> None:
    with started("test-processes-4", "sh", "-c", "trap '' TERM; while :; do sleep 0.1; done") as stubborn:
        time.sleep(0.3)
        process = psutil.Process(stubborn.pid)
        end([process])
        assert not is_alive(process)


def test_a_zombie_has_ended() -> None:
    """In a container without an init nobody reaps: waiting for a zombie would take all patience."""
    with started("test-processes-5") as zombie:
        process = psutil.Process(zombie.pid)
        zombie.kill()
        os.waitid(os.P_PID, zombie.pid, os.WEXITED | os.WNOWAIT)
        assert not is_alive(process)
        assert processes_of({"test-processes-5"}) == []
        begun_s = time.monotonic()
        end([process])
        assert time.monotonic() - begun_s < 5


def test_a_signal_that_comes_while_a_process_is_started_is_not_lost() -> None:
    """Python drops what is raised in the hooks that it runs around a fork."""
    done = subprocess.run([sys.executable, "-c", WHILE_FORKING], capture_output=True, text=True, timeout=PATIENCE_S)
    assert done.returncode == 1
    assert "Interrupted" in done.stderr.splitlines()[-1]
    assert "Exception ignored" not in done.stderr


def test_nothing_that_is_imported_is_looked_through_for_garbage() -> None:
    """Nor anything at the end, when the functions for it are called in the opposite order."""
    at_end = "import atexit, gc; atexit.register(lambda: print(sum(one is kept for one in gc.get_objects())))"
    made = "kept = [[]]; freeze_garbage_collector(); print(gc.get_freeze_count()); kept = [[]]"
    code = f"{at_end}; from neurotier.core.processes import freeze_garbage_collector; {made}"
    printed = subprocess.check_output([sys.executable, "-c", code], env=JOB_ENVIRONMENT)
    frozen, looked_through = map(int, printed.split())
    assert frozen > 1000
    assert looked_through == 0


def test_a_process_without_output_can_be_copied() -> None:
    """As by ``>&-``, with which Python has no ``sys.stdout``."""
    script = "import os; from neurotier.core.processes import fork_process; os.waitpid(fork_process(lambda: 7), 0)"
    command = f'exec "{sys.executable}" -c "{script}" >&-'
    done = subprocess.run(["sh", "-c", command], stderr=subprocess.PIPE, text=True)
    assert (done.returncode, done.stderr) == (0, "")
