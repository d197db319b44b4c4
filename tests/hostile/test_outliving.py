"""Containers that would outlive their job: they kill their guard inside, ignore signals and fork away."""

from __future__ import annotations

import os
import signal
import subprocess
import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path

import psutil
import pytest
from container_images import Engine
from hostile_host import JOB_ENVIRONMENT, JOB_RUN, Host
from neurotier.core.processes import end, lives, processes_of
from support import PATIENCE_S, words_of

SOON_S = 10.0
"""Within this, nothing of a container may live after its job."""

PLAIN, QUOTED = f"NEUROTIER_RUN={JOB_RUN}\0".encode(), f'"NEUROTIER_RUN":"{JOB_RUN}"'.encode()
"""The mark of the run in an environment, and in that of a container as its engine passes it on."""

KILLER = """trap "" TERM INT HUP QUIT
for again in 1 2 3; do
    for process in /proc/[0-9]*; do
        process=${process#/proc/}
        [ $process = $$ ] || [ $process = 1 ] || kill -9 $process
    done
done 2>/dev/null
(setsid sh -c "trap '' TERM INT HUP QUIT; while :; do sleep 86393; done" </dev/null >/dev/null 2>&1 &)
echo >/out/ready
while :; do sleep 86393; done"""
"""An app that kills whatever it sees, its guard too, and has a child that got away."""


@pytest.fixture
def host(tmp_path: Path) -> Host:
    return Host.at(tmp_path / "host")


def wait_until(condition: Callable[[], object], patience_s: float = PATIENCE_S) -> None:
    deadline = time.monotonic() + patience_s
    while not condition():
        assert time.monotonic() < deadline
        time.sleep(0.1)


@pytest.fixture
def start(host: Host, engine: Engine) -> Iterator[Callable[..., subprocess.Popen[bytes]]]:
    """Starts jobs, each on a host; what is left of them and of their containers at the end is killed."""
    jobs: list[tuple[Host, subprocess.Popen[bytes]]] = []

    def start_job(root: Path, host: Host = host) -> subprocess.Popen[bytes]:
        quiet = subprocess.DEVNULL
        command = host.command(engine, root, "app")
        jobs.append((host, subprocess.Popen(command, env=JOB_ENVIRONMENT, stdout=quiet, stderr=quiet)))
        return jobs[-1][1]

    yield start_job
    for host, job in jobs:
        job.kill()
        job.wait()
        for process in inside(host):
            with suppress(psutil.Error):
                process.kill()


def inside(host: Host) -> list[psutil.Process]:
    """Living processes of a container that works for this host: in their own namespace, with its folder in sight."""
    found = []
    for process in psutil.process_iter():
        with suppress(OSError, psutil.Error):
            mounts = Path(f"/proc/{process.pid}/mountinfo").read_text()
            if str(host.work) in mounts and lives(process):
                found.append(process)
    return found


def environment(process: psutil.Process) -> bytes:
    return Path(f"/proc/{process.pid}/environ").read_bytes()


def engine_of(job: subprocess.Popen[bytes]) -> psutil.Process:
    """The engine's process on the host: the child of a job that is not its guard, which is a copy of the job."""
    children = psutil.Process(job.pid).children()
    (engine,) = [child for child in children if "runtime parent" in " ".join(words_of(child))]
    return engine


@pytest.mark.parametrize("killed", ["job", "engine, job", "job, engine"])
def test_an_app_that_has_killed_its_guard_ends_with_its_job(
    host: Host, start: Callable[..., subprocess.Popen[bytes]], killed: str
) -> None:
    job = start(host.image(app=KILLER))
    wait_until((host.work / "out" / "ready").exists)
    engine, family = engine_of(job), psutil.Process(job.pid).children(recursive=True)
    wait_until(lambda: sum("86393" in words_of(process) for process in inside(host)) == 2)
    pids = {"job": job.pid, "engine": engine.pid}
    for name in killed.split(", "):
        with suppress(ProcessLookupError):
            os.kill(pids[name], signal.SIGKILL)
    job.wait()
    wait_until(lambda: not inside(host), SOON_S)
    wait_until(lambda: not any(lives(process) for process in family), SOON_S)


def test_every_process_of_a_container_has_the_run(host: Host, start: Callable[..., subprocess.Popen[bytes]]) -> None:
    """By which the next start finds what a crash of everything, guard included, has left."""
    job = start(host.image(app=KILLER))
    wait_until((host.work / "out" / "ready").exists)
    guard, *_ = [child for child in psutil.Process(job.pid).children() if child != engine_of(job)]
    for process in (guard, psutil.Process(job.pid)):
        assert PLAIN in environment(process)
    assert QUOTED in environment(engine_of(job))
    wait_until(lambda: sum("86393" in words_of(process) for process in inside(host)) == 2)
    for process in inside(host):
        assert QUOTED in environment(process) or PLAIN in environment(process)


def test_what_outlives_even_its_guard_is_found_by_its_run(
    tmp_path: Path, start: Callable[..., subprocess.Popen[bytes]]
) -> None:
    """The kernel ends some engines with their job.

    That is asked for before the engine executes its second program, and Linux remembers it only if the engine does so
    in its first thread: less than one in ten, on a busy machine.
    """
    for attempt in range(20):
        host = Host.at(tmp_path / str(attempt))
        job = start(host.image(app=KILLER), host)
        wait_until((host.work / "out" / "ready").exists)
        engine = engine_of(job)
        guard, *_ = [child for child in psutil.Process(job.pid).children() if child != engine]
        guard.kill()
        job.kill()
        job.wait()
        psutil.wait_procs([engine], 3)  # the kernel's signal has been sent by now, and need not have been heard
        if lives(engine):
            break
    assert inside(host), "nobody was left to end it"
    assert processes_of(["another-run"]) == []
    end(processes_of([JOB_RUN]))
    wait_until(lambda: not inside(host))  # the kernel ends the others with the container's first process


def test_an_app_whose_engine_is_killed_ends_and_so_does_its_job(
    host: Host, start: Callable[..., subprocess.Popen[bytes]]
) -> None:
    job = start(host.image(app=KILLER))
    wait_until((host.work / "out" / "ready").exists)
    engine_of(job).kill()
    assert job.wait(SOON_S) == 1
    assert inside(host) == []


def test_an_image_that_never_says_it_has_started_ends_with_its_job(
    host: Host, start: Callable[..., subprocess.Popen[bytes]]
) -> None:
    root = host.image()
    (root / "bin" / "sh").unlink()
    (root / "bin" / "sh").write_text("#!/bin/busybox sh\ntrap '' TERM INT HUP\nexec busybox sleep 86392\n")
    (root / "bin" / "sh").chmod(0o755)
    job = start(root)
    wait_until(lambda: any("86392" in words_of(process) for process in inside(host)))
    job.kill()
    job.wait()
    wait_until(lambda: not inside(host), SOON_S)
