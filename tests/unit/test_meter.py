"""The meter: the whole tree is accounted for, and nothing of it stays behind. No test asserts on speed."""

from __future__ import annotations

import signal
import subprocess
import sys
import time
from pathlib import Path

import psutil
import pytest
from neurotier.meter.function import measure_function, run_in_phase
from neurotier.meter.measure import measure_command
from support import PATIENCE_S

"""Python that uses a known CPU time, s, whatever the machine's speed."""


def test_memory_of_the_largest_process() -> None:
    hold = "x = bytearray(200_000_000)"
    usage, _ = measure_command([sys.executable, "-S", "-c", hold])
    assert 200_000_000 <= usage.max_rss_bytes < 400_000_000


@pytest.mark.parametrize(
    ("command", "below"),
    [
        ("sleep 100 & sleep 101; true", 3),
        ("sleep 100 & true", 1),  # the grace time of left-over processes is no time in which SIGTERM is lost
    ],
)
def test_sigterm_ends_the_whole_tree(command: str, below: int) -> None:
    script = (
        "import sys; from neurotier.meter.measure import Interrupted, measure_command\n"
        f"try: measure_command(['sh', '-c', 'echo ready; {command}'], grace_s=60)\n"
        "except Interrupted as stop: sys.exit(128 + stop.signal_number)"
    )
    process = subprocess.Popen([sys.executable, "-c", script], stdout=subprocess.PIPE)
    assert process.stdout is not None
    process.stdout.readline()
    while len(tree := psutil.Process(process.pid).children(recursive=True)) != below:
        time.sleep(0.05)
    process.send_signal(signal.SIGTERM)
    assert process.wait(timeout=PATIENCE_S) == 143
    assert not any(child.is_running() for child in tree)


def test_sigkill_of_the_meter_takes_the_phase_with_it() -> None:
    script = (
        "from neurotier.meter.function import measure_function, run_in_phase\n"
        "measure_function(lambda: run_in_phase(['sleep', '100']))"
    )
    process = subprocess.Popen([sys.executable, "-c", script])
    while len(tree := psutil.Process(process.pid).children(recursive=True)) < 2:
        time.sleep(0.05)
    process.kill()
    process.wait()
    _, alive = psutil.wait_procs(tree, timeout=PATIENCE_S)
    assert alive == []


def test_a_tool_begins_with_the_signals_of_a_shell(tmp_path: Path) -> None:
    """Python ignores SIGPIPE; a tool that inherited that would write on into a pipe that nobody reads."""
    with (tmp_path / "status").open("w") as file:
        assert run_in_phase(["grep", "SigIgn", "/proc/self/status"], log=file) == 0
    ignored = int((tmp_path / "status").read_text().split()[1], 16)
    assert not ignored & (1 << signal.SIGPIPE - 1 | 1 << signal.SIGXFSZ - 1)


def test_seconds_after_the_phase_are_not_divided_over_its_wall_time() -> None:
    usage, _ = measure_command(["sh", "-c", "sleep 100 & true"], grace_s=0.2)
    assert usage.left_behind == 1
    assert usage.account is None


def test_what_a_function_prints_is_printed_once() -> None:
    script = (
        "from neurotier.meter.function import measure_function\n"
        "print('before'); measure_function(lambda: print('inside')); print('after')"
    )
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, check=True)
    assert done.stdout == b"before\ninside\nafter\n"


def test_alarms_that_come_as_a_wait_ends_are_no_stop() -> None:
    """Python's sigtimedwait then gives a signal of number 0."""
    before = signal.signal(signal.SIGALRM, lambda *_: None)
    signal.setitimer(signal.ITIMER_REAL, 0.0007, 0.0007)
    try:
        measure_function(lambda: time.sleep(3))
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)
