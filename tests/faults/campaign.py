"""The campaign: trials drawn from their own seeds, side by side, and a table of what they found."""

from __future__ import annotations

import os
import random
import shutil
import tempfile
import time
import traceback
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path

from faults.disturbances import MEMORY_GROUPS
from faults.kinds import FAULTS
from faults.processes import end_all, side_by_side
from faults.rooms import Room, copy_folder, enter, may_have_disks
from faults.templates import Kind, Prepared, prepare, preparing
from faults.trial import Trial

LAST_LINES = 14

TARGETS = ("participants", "participants", "participants", "all")
"""What is asked for: mostly the analyses alone, which take less time than the figures."""


class MissingError(Exception):
    """Something that the campaign needs is missing."""


@dataclass
class Outcome:
    """What a trial found."""

    name: str
    kind: str
    fault: str = ""
    hit: bool = False
    violations: list[str] = field(default_factory=list)
    last_lines: list[str] = field(default_factory=list)
    took_s: float = 0.0


def check_able(folder: Path) -> None:
    """Raise unless this machine and user can hold a campaign."""
    if not may_have_disks(folder):
        raise MissingError("root, loop devices and mkfs.ext4 (Debian's e2fsprogs) are needed")
    if shutil.which("strace") is None:
        raise MissingError("Debian's strace is not installed")
    if not os.access(MEMORY_GROUPS / "cgroup.procs", os.W_OK):
        raise MissingError(f"memory control groups of version 1 ({MEMORY_GROUPS}) are needed")


def draw_kind(number: int, seed: int, only: str) -> str:
    """The kind of a trial."""
    chosen = {name: fault.weight for name, fault in FAULTS.items() if name.startswith(only)}
    if not chosen:
        raise MissingError(f"no kind of trial begins with {only!r}: {', '.join(FAULTS)}")
    return random.Random(f"{seed}-{number}-kind").choices(list(chosen), list(chosen.values()))[0]


@contextmanager
def base_folder() -> Iterator[Path]:
    """A folder in memory for everything of a campaign; trials take it apart themselves."""
    folder = Path(tempfile.mkdtemp(prefix="fault-campaign-", dir="/dev/shm"))
    try:
        yield folder
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def draw_project(number: int, seed: int, name: str) -> Kind:
    """The kind of project that a trial of a kind is held on: what its chance draws first."""
    return random.Random(f"{seed}-{number}").choice(FAULTS[name].kinds)


def prepare_all(room: Room, trials: dict[int, str], seed: int, jobs: int) -> Prepared:
    """Prepare the projects that some trials need, side by side."""
    prepared = Prepared(room)
    (room.base / "prepared").mkdir()
    (room.base / "trials").mkdir()
    needed = {draw_project(number, seed, name) for number, name in trials.items()}
    calls = {kind.name: partial(prepare, room, kind) for kind in sorted(needed, key=lambda kind: kind.name)}
    try:
        for name, answer in side_by_side(calls, room.base / "prepared", jobs):
            if not answer:
                raise RuntimeError(f"could not prepare {name}")
            references, prepared.calls[name] = answer[0]
            prepared.references |= {(name, stage): reference for stage, reference in references.items()}
            print(f"prepared: {name}", flush=True)
    finally:  # stopped, or one of them failed
        end_all(preparing(room))
    return prepared


def hold(trial_number: int, seed: int, name: str, prepared: Prepared) -> Outcome:
    """Hold one trial; to be run in a process of its own, to which the trial may do anything."""
    chance = random.Random(f"{seed}-{trial_number}")
    fault = FAULTS[name]
    kind = chance.choice(fault.kinds)
    stage = chance.choice(fault.stages_of(kind))
    target = kind.target or ("all" if stage == "all" else chance.choice(TARGETS))
    trial = Trial(f"{seed}-{trial_number}", chance, prepared, kind, stage, target)
    folder = prepared.room.base / "trials" / str(trial_number)
    begin = time.monotonic()
    copy_folder(prepared.folder(kind, stage), folder)
    enter(prepared.room, folder)
    try:
        fault.hold(trial)
    except Exception:  # a fault of the campaign itself counts as a violation: somebody has to look at it
        trial.violate(["the trial itself failed: " + traceback.format_exc().strip().replace("\n", " | ")[-600:]])
    finally:
        end_all(trial.name)
    lines = [
        line
        for said in trial.said
        for line in [f"$ {said.command} -> {said.code}", *said.output.splitlines()[-LAST_LINES:]]
    ]
    fault_of = f"[{kind.name}] {trial.fault}"
    return Outcome(trial.name, name, fault_of, trial.hit, trial.violations, lines, time.monotonic() - begin)


def hold_all(seed: int, trials: dict[int, str], prepared: Prepared, jobs: int) -> Iterator[Outcome]:
    """Hold trials side by side; yields outcomes as they end."""
    folder = prepared.room.base / "trials"
    calls = {number: partial(hold, number, seed, name, prepared) for number, name in trials.items()}
    try:
        for number, answer in side_by_side(calls, folder, jobs):
            name = f"{seed}-{number}"
            clear_up(folder / str(number), name)
            lost = Outcome(name, trials[number], violations=["the trial ended without an answer"])
            yield answer[0] if answer else lost
    finally:
        for left in folder.iterdir():
            clear_up(left, f"{seed}-{left.name}")


def clear_up(folder: Path, name: str) -> None:
    """Clean up after a trial whose process has ended."""
    end_all(name)
    shutil.rmtree(folder, ignore_errors=True)


def table(outcomes: Sequence[Outcome]) -> str:
    """Trials, faults that hit, violations and time per kind, as a Markdown table."""
    lines = ["| kind | trials | hit | missed | violations | median s |", "| --- | ---: | ---: | ---: | ---: | ---: |"]
    names = sorted({outcome.kind for outcome in outcomes})
    for name in [*names, "all"]:
        of_kind = [outcome for outcome in outcomes if name in (outcome.kind, "all")]
        hit = sum(outcome.hit for outcome in of_kind)
        bad = sum(bool(outcome.violations) for outcome in of_kind)
        times = sorted(outcome.took_s for outcome in of_kind)
        median_s = times[len(times) // 2] if times else 0.0
        lines.append(f"| {name} | {len(of_kind)} | {hit} | {len(of_kind) - hit} | {bad} | {median_s:.1f} |")
    return "\n".join(lines)


def describe(outcome: Outcome, only: str = "") -> str:
    """A violation: how to repeat it, what was violated, and what was said."""
    seed, _, number = outcome.name.partition("-")
    again = f"make faults SEED={seed} TRIAL={number}" + (f" ONLY={only}" if only else "")
    lines = [
        f"{'VIOLATION' if outcome.violations else 'kept'} {outcome.kind}: {again}",
        f"  fault: {outcome.fault}",
        *(f"  violated: {line}" for line in outcome.violations[:12]),
        *(f"  | {line[:200]}" for line in outcome.last_lines),
    ]
    return "\n".join(lines)
