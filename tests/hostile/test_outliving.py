"""Containers that would outlive their job: they kill their guard inside, ignore signals and fork away."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path

import psutil
import pytest
from conftest import nightly
from container_images import Engine, tiny_root
from hostile_host import SWITCHES, Host
from support import PATIENCE_S, lives, wait_for, words_of

SOON_S = 60.0
"""Within this, nothing of a container may live after its job, however busy the machine is; it would sleep for a day."""

KILLER = """trap "" TERM INT HUP QUIT
for again in 1 2 3; do
    for process in /proc/[0-9]*; do
        process=${process#/proc/}
        [ $process = $$ ] || [ $process = 1 ] || kill -9 $process
    done
done 2>/dev/null
(setsid sh -c "trap '' TERM INT HUP QUIT; while :; do sleep 86393; done" </dev/null >/dev/null 2>&1 &)
while :; do sleep 86393; done"""
"""An app that kills whatever it sees, its guard too, and has a child that got away."""

NEVER_STARTED = "#!/bin/busybox sh\ntrap '' TERM INT HUP\nexec busybox sleep 86393\n"
"""A shell for an image that never says that it has started."""


class Run:
    """A run of one participant with an app, and its processes."""

    def __init__(self, host: Host) -> None:
        self.host = host

    def start(self, sleeping: int) -> None:
        """Start it, and wait for so many processes in the container that will never end."""
        self.snakemake = self.host.project.start("participants", *SWITCHES)
        self.find(sleeping)

    def find(self, sleeping: int) -> None:
        """Wait for so many processes in the container that will never end, and tell who is who."""
        wait_for(lambda: sum("86393" in words_of(one) for one in self.inside()) == sleeping)
        self.family = psutil.Process(self.snakemake.pid).children(recursive=True)
        (self.engine,) = [one for one in self.family if "runtime parent" in " ".join(words_of(one))]
        self.job = psutil.Process(self.engine.ppid())
        (self.guard,) = [one for one in self.job.children() if one != self.engine]  # a copy of the job

    def inside(self) -> list[psutil.Process]:
        """Living processes of the container: in their own name space, with the project's folders in sight."""
        found = []
        for process in psutil.process_iter():
            with suppress(OSError, psutil.Error):
                mounts = Path(f"/proc/{process.pid}/mountinfo").read_text()
                if str(self.host.folder) in mounts and lives(process):
                    found.append(process)
        return found

    def kill(self, names: str) -> None:
        """Kill processes in an order, of which some end with others."""
        for name in names.split(", "):
            with suppress(psutil.NoSuchProcess):
                getattr(self, name).kill()

    def ended(self) -> bool:
        return not self.inside() and not any(lives(process) for process in self.family)


@pytest.fixture
def run(engine: Engine, tmp_path: Path) -> Iterator[Callable[..., Run]]:
    """Makes runs; what is left of them at the end is killed."""
    runs: list[Run] = []

    def make(shell: str = "", name: str = "host") -> Run:
        host = Host.at(tmp_path / name)
        if shell:
            sh = tiny_root(host.folder) / "bin/sh"
            sh.unlink()
            sh.write_text(shell)
            sh.chmod(0o755)
        host.configure(["01"], app={"image": host.image(engine, KILLER), "group": False})
        runs.append(Run(host))
        return runs[-1]

    yield make
    for one in runs:
        one.snakemake.kill()
        for process in one.inside():
            with suppress(psutil.Error):
                process.kill()


@pytest.mark.parametrize(
    "killed",
    ["job", "snakemake, engine, job", *nightly("engine", "snakemake, job", "snakemake, job, engine")],
)
def test_an_app_that_has_killed_its_guard_ends_with_its_job(run: Callable[..., Run], killed: str) -> None:
    one = run()
    one.start(2)
    if "snakemake" not in killed:  # it starts a second attempt, whose app does the same
        first = [*one.inside(), one.job, one.engine, one.guard]
        one.kill(killed)
        wait_for(lambda: not any(map(lives, first)), within_s=SOON_S)
        one.find(2)
    one.kill(killed)
    assert one.snakemake.wait(PATIENCE_S) != 0
    wait_for(one.ended, within_s=SOON_S)


def test_what_outlives_even_its_guard_is_ended_by_the_next_start(run: Callable[..., Run]) -> None:
    """The kernel ends some engines with their job.

    That is asked for before the engine executes its second program, and Linux remembers it only if the engine does so
    in its first thread: less than one in ten, on a busy machine.
    """
    for attempt in range(20):
        one = run(name=str(attempt))
        one.start(2)
        one.kill("snakemake")
        for process in {*one.family} - {one.engine, *one.inside()}:
            with suppress(psutil.NoSuchProcess):  # it has ended with its parent
                process.kill()
        one.snakemake.wait()
        psutil.wait_procs([one.engine], 3)  # the kernel's signal has been sent by now, and need not have been heard
        if lives(one.engine):
            break
    assert one.inside(), "nobody was left to end it"
    one.host.run("ready", "--forcerun", "index_dataset").succeeded()
    wait_for(one.ended, within_s=SOON_S)  # the kernel ends the others with the container's first process


def test_an_image_that_never_says_it_has_started_ends_with_its_job(run: Callable[..., Run]) -> None:
    one = run(shell=NEVER_STARTED)
    one.start(1)
    one.kill("snakemake, job")
    wait_for(one.ended, within_s=SOON_S)
