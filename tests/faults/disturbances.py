"""What happens to a command while it runs, or to its files between two starts."""

from __future__ import annotations

import contextlib
import os
import random
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import psutil

from faults.processes import Running, living, role
from faults.trial import Trial

MEMORY_GROUPS = Path("/sys/fs/cgroup/memory")
HOG = "import time\nheld = []\nwhile True:\n    held.append(b'x' * (1 << 20))\n    time.sleep(0.0005)\n"
HOG_BYTES = 192 << 20
"""What one process beside the run may take before the kernel has to end one of the run."""


def later(trial: Trial, moment_s: float, act: Callable[[], bool]) -> Callable[[Running], None]:
    """Do something to the environment at a moment."""

    def disturb(running: Running) -> None:
        if running.wait(moment_s):
            trial.hit = running.until(act, patience_s=5.0) and running.process.poll() is None

    return disturb


def signal_later(
    trial: Trial, target: str, number: signal.Signals, longest_s: float, continue_after_s: float | None = None
) -> Callable[[Running], None]:
    """Send a signal at a random moment.

    Parameters
    ----------
    trial
        The trial.
    target
        The role of the process that gets it; ``any`` is any one process of the run, ``all`` is all of them, as Ctrl-C.
    number
        The signal.
    longest_s
        The latest moment, s after the start.
    continue_after_s
        After how long the same processes are continued, s; not at all if None.
    """
    moment_s = trial.chance.uniform(0, longest_s)
    pick = trial.chance.random()
    trial.fault = f"{number.name} to {target} after {moment_s:.2f} s, from {trial.stage}"

    def disturb(running: Running) -> None:
        if not running.wait(moment_s):
            return
        targets: list[psutil.Process] = []

        def found() -> bool:
            targets[:] = [process for process in living(trial.name) if target in ("any", "all", role(process))]
            return bool(targets)

        if not running.until(found):
            return
        chosen = targets if target == "all" else [targets[int(pick * len(targets))]]
        for process in chosen:
            with contextlib.suppress(psutil.Error):
                process.send_signal(number)
                trial.hit = True
        if continue_after_s is not None:
            time.sleep(continue_after_s)
            for process in chosen:
                with contextlib.suppress(psutil.Error):
                    process.send_signal(signal.SIGCONT)

    return disturb


@contextmanager
def memory_group(name: str) -> Iterator[Path]:
    """A memory control group of a trial's own; what is left in it is ended."""
    group = MEMORY_GROUPS / f"fault-{name}"
    group.mkdir()
    try:
        yield group
    finally:
        for _ in range(200):
            for word in (group / "cgroup.procs").read_text().split():
                with contextlib.suppress(ProcessLookupError):
                    os.kill(int(word), signal.SIGKILL)
            with contextlib.suppress(OSError):
                group.rmdir()
                break
            time.sleep(0.05)


def joining(group: Path, badness: int = 1000) -> list[str]:
    """Words that put a command into a control group, as what the kernel ends first, put before the command."""
    return ["sh", "-c", f'echo $$ > {group}/cgroup.procs; echo {badness} > /proc/$$/oom_score_adj; exec "$@"', "sh"]


def run_out_of_memory(trial: Trial, moment_s: float, group: Path) -> Callable[[Running], None]:
    """Have the kernel end a process of the run for want of memory, which another in its group takes."""

    def disturb(running: Running) -> None:
        if not running.wait(moment_s):
            return
        used_bytes = int((group / "memory.usage_in_bytes").read_text())
        (group / "memory.limit_in_bytes").write_text(str(used_bytes + HOG_BYTES))
        hog = subprocess.Popen([*joining(group, 0), sys.executable, "-c", HOG])
        try:
            trial.hit = running.until(lambda: killed_for_memory(group) > 0, patience_s=10.0)
        finally:
            hog.kill()
            hog.wait()
            (group / "memory.limit_in_bytes").write_text("-1")

    return disturb


def killed_for_memory(group: Path) -> int:
    """How many processes of a group the kernel has ended for want of memory."""
    words = (group / "memory.oom_control").read_text().split()
    return int(words[words.index("oom_kill") + 1])


def spoil(path: Path, how: str, chance: random.Random) -> None:
    """Damage a file."""
    content = path.read_bytes()
    if how == "truncated":
        os.truncate(path, int(chance.uniform(0, len(content))))
    elif how == "replaced":
        path.write_bytes(chance.randbytes(len(content)))
    elif how == "empty":
        os.truncate(path, 0)
    elif how == "of the future":
        future_s = time.time() + 86_400 * chance.choice((1, 400))
        os.utime(path, (future_s, future_s))
    else:
        path.unlink()
        if how == "a folder":
            path.mkdir()
        elif how == "fifo":
            os.mkfifo(path)


def restore(path: Path, content: bytes, times: os.stat_result) -> None:
    """Have a file as it was, with its times."""
    if path.is_dir() and not path.is_symlink():
        shutil.rmtree(path)
    else:
        path.unlink(missing_ok=True)
    path.write_bytes(content)
    os.utime(path, ns=(times.st_atime_ns, times.st_mtime_ns))
