"""Processes of a trial: all carry its name in their environment, whoever their parent is by now."""

from __future__ import annotations

import contextlib
import os
import pickle
import signal
import subprocess
import sys
import time
import traceback
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TypeVar

import psutil
from slurm_cluster import end_with_parent
from support import ROOT, STAND_INS, words_of

from faults.rooms import TEMPORARY

K = TypeVar("K")
T = TypeVar("T")

MARKER = "FAULT_TRIAL"

TOOLS = ("/bet", "fio", "bigbrain.engines.worker", "staging.program")
"""Ends of words by which a process is one that does what a run is there for."""

During = Callable[["Running"], None]
"""What happens while a command runs."""


@dataclass
class Running:
    """A command that runs, for whoever wants to disturb it."""

    process: subprocess.Popen[bytes]
    started_s: float

    def wait(self, seconds: float) -> bool:
        """Wait until so long after the start; whether the command still runs then."""
        try:
            self.process.wait(timeout=max(0.0, self.started_s + seconds - time.monotonic()))
        except subprocess.TimeoutExpired:
            return True
        return False

    def until(self, condition: Callable[[], bool], patience_s: float = 20.0) -> bool:
        """Wait for something; whether it came while the command ran."""
        deadline = time.monotonic() + patience_s
        while self.process.poll() is None and time.monotonic() < deadline:
            if condition():
                return True
            time.sleep(0.002)
        return False


@dataclass(frozen=True)
class Said:
    """A command that has ended: how, and what it said."""

    command: str
    code: int
    output: str
    hung: bool = False


def environment_of(name: str) -> dict[str, str]:
    """The environment of a trial's commands."""
    path = os.pathsep.join([str(STAND_INS), str(Path(sys.executable).parent), os.environ["PATH"]])
    return {
        **{key: value for key, value in os.environ.items() if not key.startswith("NEUROTIER_")},
        "PATH": path,
        "PYTHONPATH": str(ROOT / "workflow"),
        "PYTHONDONTWRITEBYTECODE": "1",  # what is written is the trial's own, then
        "TMPDIR": str(TEMPORARY),
        MARKER: name,
    }


def run(
    words: list[str],
    folder: Path,
    environment: dict[str, str],
    output: Path,
    during: During | None = None,
    patience_s: float = 60.0,
) -> Said:
    """Run a command as a user at a terminal would, disturb it, and wait for it.

    Parameters
    ----------
    words
        The command.
    folder, environment
        Where and with what it runs.
    output
        File that takes what it says: a pipe would be held open by whatever outlives it.
    during
        Called as soon as it runs.
    patience_s
        After how long it counts as hung; it is ended then.
    """
    with output.open("wb") as file:
        process = subprocess.Popen(
            words,
            cwd=folder,
            env=environment,
            stdin=subprocess.DEVNULL,
            stdout=file,
            stderr=file,
            start_new_session=True,
            preexec_fn=heed_interrupts,
        )
    running = Running(process, time.monotonic())
    hung = False
    try:
        if during is not None:
            during(running)
        process.wait(timeout=patience_s)
    except subprocess.TimeoutExpired:
        hung = True
    finally:
        if process.poll() is None:
            end_all(environment[MARKER])
            process.wait()
    shown = " ".join(word.replace(sys.executable, "python") for word in words)
    return Said(shown, process.returncode, output.read_text(errors="replace"), hung)


def heed_interrupts() -> None:
    """Background children of a shell ignore Ctrl-C; what is tried here must not."""
    for number in (signal.SIGINT, signal.SIGQUIT, signal.SIGTERM):
        signal.signal(number, signal.SIG_DFL)


def living(name: str) -> list[psutil.Process]:
    """Processes that carry a trial's name and live; zombies have no environment."""
    word = f"{MARKER}={name}".encode()
    found = []
    for process in psutil.process_iter():
        try:
            with open(f"/proc/{process.pid}/environ", "rb") as file:
                if word in file.read().split(b"\0") and process.status() != psutil.STATUS_ZOMBIE:
                    found.append(process)
        except (OSError, psutil.Error):
            continue
    return found


def end_all(name: str) -> None:
    """End everything that carries a trial's name."""
    for _ in range(20):
        left = living(name)
        for process in left:
            with contextlib.suppress(psutil.Error):
                process.kill()
        if not left:
            return
        time.sleep(0.05)


def side_by_side(calls: Mapping[K, Callable[[], T]], folder: Path, jobs: int = 1) -> Iterator[tuple[K, list[T]]]:
    """Call functions in child processes, to which they may do anything; each value as it comes, in a list that is empty
    if there is none.

    Parameters
    ----------
    folder
        Where values are kept meanwhile.
    jobs
        How many are called at once.
    """
    waiting, running = list(calls), dict[int, K]()
    try:
        while waiting or running:
            while waiting and len(running) < jobs:
                key = waiting.pop(0)
                running[call_in_child(calls[key], folder / f"{key}.answer")] = key
            child, _ = os.wait()
            if child in running:
                key = running.pop(child)
                answer = folder / f"{key}.answer"
                yield key, [pickle.loads(answer.read_bytes())] if answer.exists() else []  # noqa: S301  # our child's
                answer.unlink(missing_ok=True)
    finally:  # stopped, or one of them failed
        for child in running:
            os.kill(child, signal.SIGTERM)
            os.waitpid(child, 0)


def call_in_child(function: Callable[[], object], answer: Path) -> int:
    """Have a function called in a child process, which ends with this one; the process."""
    child = os.fork()
    if child:
        return child
    try:
        end_with_parent()
        signal.signal(signal.SIGTERM, lambda *_: sys.exit(1))
        signal.signal(signal.SIGINT, signal.SIG_IGN)  # whoever started it passes signals on
        answer.write_bytes(pickle.dumps(function()))
    except SystemExit:  # it was asked to end
        pass
    except BaseException:
        traceback.print_exc()
    finally:
        os._exit(0)


def role(process: psutil.Process) -> str:
    """What a process of a trial is for, by its command line."""
    words = words_of(process)
    line = " ".join(words)
    if any(word.endswith(TOOLS) for word in words):
        return "tool"
    if "datalad" in line or "git-annex" in line or (words and Path(words[0]).name in ("git", "git-remote-annex")):
        return "git"
    if "-m snakemake" in line and "--mode" not in words:
        return "snakemake"
    return "other"
