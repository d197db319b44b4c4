"""Power cuts: the device as it was 0, 1, 4 and 8 s after a run ended, and during it; then the same command."""

from __future__ import annotations

import contextlib
import signal
import time
from dataclasses import dataclass
from functools import partial
from pathlib import Path

import psutil
import pytest

from faults import invariants
from faults.disks import snapshot, unmount
from faults.processes import Running, Said, environment_of, living, run
from faults.rooms import Room, mount_disk
from faults.templates import (
    ANNEX_DISK,
    PARTICIPANTS,
    SAVED_DISK,
    Kind,
    Reference,
    in_room,
    make_fresh,
    reference_of,
    snakemake,
)

NAME = "power-cut"
AFTER_S = (0, 1, 4, 8)
DURING_S = 9.0
"""When the run is cut that has not ended, s after its start: about when its first participants are analysed."""


@dataclass(frozen=True)
class Cut:
    """What the same command made of a device that was cut."""

    moment: str
    said: Said
    violations: list[str]


def go(room: Room, during: float | None = None) -> Said:
    """Run the workflow; copy the device so long after the start."""

    def copy(running: Running) -> None:
        if during is not None:
            running.wait(during)
            cut(room, "during the run")

    return run(
        snakemake("participants"),
        room.project,
        environment_of(NAME),
        room.at / "said",
        copy,
        patience_s=300,
    )


def cut(room: Room, moment: str) -> None:
    """Copy the mounted device, with nobody writing meanwhile."""
    processes = living(NAME)
    for number in (signal.SIGSTOP, signal.SIGCONT):
        for process in processes:
            with contextlib.suppress(psutil.Error):
                process.send_signal(number)
        if number == signal.SIGSTOP:
            snapshot(room.disk, room.at / f"{moment}.img")


def cut_and_go_on(room: Room, kind: Kind) -> tuple[Reference, list[Cut]]:
    """One run, and the same command on each copy of its device; the reference is what the run itself left."""
    said = go(room, DURING_S)
    ended_s = time.monotonic()
    assert said.code == 0, said.output
    for after_s in AFTER_S:
        time.sleep(max(0.0, ended_s + after_s - time.monotonic()))
        cut(room, f"{after_s} s after the end")
    reference = reference_of(room)
    cuts = []
    for moment in ("during the run", *(f"{after_s} s after the end" for after_s in AFTER_S)):
        unmount(room.project)
        (room.at / f"{moment}.img").replace(room.disk)
        mount_disk(room.disk, room.project)
        said = go(room)
        violations = [
            *invariants.incomplete(room, reference, list(PARTICIPANTS)),
            *invariants.half_files(room, reference),
            *invariants.leftovers(room),
            *(invariants.unsaved(room) if kind.saved else []),
        ]
        cuts.append(Cut(moment, said, violations))
    return reference, cuts


@pytest.mark.nightly("long")
@pytest.mark.parametrize("kind", [ANNEX_DISK, SAVED_DISK], ids=lambda kind: kind.name)
def test_after_a_power_cut_the_same_command_leaves_what_an_undisturbed_run_does(able: Path, kind: Kind) -> None:
    room = Room(able)
    (able / "prepared").mkdir()
    folder = able / "prepared" / kind.name
    make_fresh(room, kind, folder)
    reference, cuts = in_room(room, folder, partial(cut_and_go_on, room, kind))
    of_participants = [name for name in reference.derivatives if name.startswith(PARTICIPANTS)]
    assert len(of_participants) == 4 * len(PARTICIPANTS)
    wrong = [
        f"{cut.moment}: exit {cut.said.code}, {cut.violations}\n{cut.said.output[-3000:]}"
        for cut in cuts
        if cut.said.code != 0 or cut.violations or list(invariants.traces(cut.said))
    ]
    assert not wrong, "\n\n".join(wrong)
