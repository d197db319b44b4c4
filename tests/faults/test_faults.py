"""A short fault campaign with a fixed seed, and proof that each invariant is violated when it should be."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable
from functools import partial
from pathlib import Path

import pytest
from conftest import DAY
from support import checksums

from faults import invariants
from faults.campaign import Outcome, describe, draw_kind, hold_all, prepare_all, table
from faults.kinds import AFTER_S
from faults.processes import MARKER, Said, end_all
from faults.rooms import Room
from faults.templates import Reference, names_in

SEED, COUNT = 2020, 40
CUTS, DURING = (2, 3, 5, 6, 9), 8
"""Trials whose moments after the end are all that there are, and one that is cut when participants are analysed."""

EVERY = 40
"""Each day one of the trials, and all of them in forty days; it takes most of what the date draws."""


def hold_nothing_violated(able: Path, trials: dict[int, str]) -> list[Outcome]:
    outcomes = list(hold_all(SEED, trials, prepare_all(Room(able), trials, SEED, jobs=2), jobs=2))
    print(f"seed {SEED}\n{table(outcomes)}")
    assert len(outcomes) == len(trials)
    assert [describe(outcome) for outcome in outcomes if outcome.violations] == []
    return outcomes


def test_a_short_campaign_violates_nothing(able: Path) -> None:
    numbers = range(int(os.environ[DAY]) % EVERY, COUNT, EVERY)
    hold_nothing_violated(able, {number: draw_kind(number, SEED, "") for number in numbers})


@pytest.mark.nightly("long")
@pytest.mark.parametrize("saved", ["", "-saved"])
def test_after_a_power_cut_the_same_command_leaves_what_an_undisturbed_run_does(able: Path, saved: str) -> None:
    """Cut at each moment after the end of a run, and during it."""
    trials = {**dict.fromkeys(CUTS, f"power-cut-after{saved}"), DURING: f"power-cut{saved}"}
    faults = "\n".join(outcome.fault for outcome in hold_nothing_violated(able, trials))
    assert all(f"cut {after_s} s after the end" in faults for after_s in AFTER_S), faults


MASK = "derivatives/sub-a/anat/mask"


@pytest.fixture
def whole(tmp_path: Path) -> tuple[Room, Reference]:
    """A results folder of one participant as it should be, and the reference of it."""
    room = Room(tmp_path)
    contents = {
        MASK: "mask",
        "index/images.tsv": "participant\tpath\tcontent\nsub-a\tx\t1\n",
        "index/skipped.tsv": "item\treason\n",
        "group/group.tsv": "participant\tbrain_voxels\nsub-a\t12\n",
        "profile/profile.tsv": "participant\tphase\twall_s\nsub-a\tcompute\t1.0\n",
        "profile/runs.tsv": "run\tvalid\nr\ttrue\n",
    }
    for name, text in contents.items():
        (room.results / name).parent.mkdir(parents=True, exist_ok=True)
        (room.results / name).write_text(text)
    room.temporary.mkdir()
    tables = {name: text for name, text in contents.items() if name.endswith(".tsv")}
    return room, Reference(checksums(room.results / "derivatives"), tables, frozenset(names_in(room.results)))


def found(room: Room, reference: Reference) -> list[str]:
    """Everything that the invariants find."""
    return [
        *invariants.half_files(room, reference),
        *invariants.incomplete(room, reference, ["sub-a"]),
        *invariants.differing_tables(room, reference),
        *invariants.unknown_files(room, reference.names),
        *invariants.leftovers(room),
    ]


def test_invariants_hold_for_what_should_be(whole: tuple[Room, Reference]) -> None:
    assert found(*whole) == []


def append(path: Path) -> None:
    with path.open("a") as file:
        file.write("sub-b\tx\n")


def halve(path: Path) -> None:
    os.truncate(path, path.stat().st_size // 2)


def make(path: Path) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.touch()


@pytest.mark.parametrize(
    ("damage", "name", "violation"),
    [
        (halve, f"results/{MASK}", "half file: derivatives/sub-a/anat/mask"),
        (Path.unlink, f"results/{MASK}", "missing: derivatives/sub-a/anat/mask"),
        (append, "results/group/group.tsv", "table: group/group.tsv"),
        (append, "results/profile/profile.tsv", "table: profile/profile.tsv"),
        (append, "results/index/images.tsv", "table: index/images.tsv"),
        (halve, "results/profile/runs.tsv", "table: the head of profile/runs.tsv"),
        (partial(os.truncate, length=0), "results/profile/runs.tsv", "table: the head of profile/runs.tsv"),
        (Path.unlink, "results/group/group.tsv", "table: group/group.tsv is not there"),
        (make, "results/state/failures/sub-a.json", "leftover: results/state/failures"),
        (make, "results/index/.images.tsv.1f.partial", "leftover: project/results/index/.images"),
        (make, "neurotier-x/work/1/sub-a/in", "leftover: project/neurotier-x/work"),
        (make, "../scratch/neurotier-x/work/1/sub-a/in", "leftover: scratch/neurotier-x/work"),
        (make, "../tmp/tool.tmp", "leftover: tmp/tool.tmp"),
        (os.mkfifo, "results/index/fifo", "leftover: results/index/fifo is not a file"),
    ],
)
def test_each_invariant_is_violated_by_what_it_is_there_for(
    whole: tuple[Room, Reference], damage: Callable[[Path], object], name: str, violation: str
) -> None:
    room, reference = whole
    damage(room.project / name)
    assert any(line.startswith(violation) for line in found(room, reference)), found(room, reference)


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("campaign/runs/x/1/condition.json", '{"stopped": true}'),
        ("advice/rehearsal.json", '{"why": "images of sub-a are not here any more"}'),
    ],
)
def test_what_is_measured_again_is_found_but_for_what_measured_nothing(
    name: str, text: str, whole: tuple[Room, Reference]
) -> None:
    room, _ = whole
    point = room.results / "daq/points/x.json"
    make(point)
    make(room.results / name)
    (room.results / name).write_text(text)
    kept = invariants.measured(room)
    assert (set(kept), list(invariants.measured_again(kept, room))) == ({point}, [])
    point.write_text("again")
    assert list(invariants.measured_again(kept, room)) == ["measured again: project/results/daq/points/x.json"]


def test_a_stray_process_is_found_by_its_marker() -> None:
    name = f"test-{os.getpid()}"
    command = [sys.executable, "-c", "import time; print('up', flush=True); time.sleep(60)"]
    with subprocess.Popen(command, env={**os.environ, MARKER: name}, stdout=subprocess.PIPE) as process:
        assert process.stdout is not None
        process.stdout.readline()
        assert len(list(invariants.strays(name))) == 1
        assert list(invariants.strays(f"{name}0")) == []
        end_all(name)
        assert process.wait(timeout=60) == -9
    assert list(invariants.strays(name)) == []


STARTING = """Traceback (most recent call last):
  File "/a/snakemake/cli.py", line 1
  File "/a/workflow/neurotier/run/jobs.py", line 1
KeyboardInterrupt
"""


@pytest.mark.parametrize(
    ("output", "hung", "expected"),
    [
        ("neurotier: sub-a: disk full\n", False, 0),
        ("neurotier: sub-a: disk full\n", True, 1),
        ("neurotier: sub-a: fault in neurotier: KeyError: 'x'\n", False, 1),
        ('Traceback (most recent call last):\n  File "/a/workflow/neurotier/run/jobs.py", line 1\nOSError\n', False, 1),
        ('Traceback (most recent call last):\n  File "/a/snakemake/main.py", line 1\nOSError\n', False, 0),
        (STARTING, False, 0),
    ],
)
def test_a_trace_of_ours_and_a_command_that_hangs_are_violations(output: str, hung: bool, expected: int) -> None:
    assert len(list(invariants.traces(Said("command", 1, output, hung)))) == expected
