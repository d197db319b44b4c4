"""Invariants: what must hold after a fault, and after the same command has run again."""

from __future__ import annotations

import re
import stat
import subprocess
from collections.abc import Iterator
from pathlib import Path

from support import ENVIRONMENT, words_of

from faults.processes import Said, living
from faults.rooms import Room
from faults.templates import Reference, derivatives_in, names_in

TRACE = "Traceback (most recent call last)"
OUR_FRAMES = re.compile(r'File "[^"]*(/workflow/(neurotier|scripts)/|\.snakemake/scripts/)')
"""Frames of our own: Snakemake and Python show traces, too, when they are stopped while they start."""

IMPORTING = re.compile(r"in (get_data|_fill_cache)\n")
"""Python cannot read a module, or list its folder: no program can tell that in its own words."""

STARTING = re.compile(r"snakemake/(__main__|cli|api)\.py.*\nKeyboardInterrupt$", re.DOTALL | re.MULTILINE)
"""Ctrl-C while Snakemake itself still reads the Snakefile, with our frames below its own: it shows a trace."""

MEASURED_TABLES = ("profile/profile.tsv",)
"""Tables that hold times: of these, participants and phases are compared."""

MEASURED_ONCE = (
    *("daq/points/**/*.json", "staging/points/**/*.json", "advice/rehearsal.json"),
    *("campaign/runs/*/*/condition.json", "bigbrain/runs/**/checked.json"),
)
"""Files of what has been measured, which no start measures again; a probe is of its device, and loop devices change."""

UNMEASURED = re.compile(rb'"stopped": true|"why": "images of ')
"""In the file of a campaign's run that was stopped, and of a rehearsal for which images were missing."""

EXACT_TABLES = ("group/group.tsv", "index/skipped.tsv", "index/images.tsv")


def half_files(room: Room, reference: Reference) -> Iterator[str]:
    """Files under a final name that are not what an undisturbed run makes; one that is not there is no fault yet."""
    for name, checksum in derivatives_in(room).items():
        if any(part.startswith(".") and part.endswith(".partial") for part in Path(name).parts):
            continue
        if reference.derivatives.get(name) != checksum:
            size = (room.results / "derivatives" / name).stat().st_size
            known = "differs from the reference" if name in reference.derivatives else "is not in the reference"
            yield f"half file: derivatives/{name} ({size} bytes) {known}"


def incomplete(room: Room, reference: Reference, participants: list[str]) -> Iterator[str]:
    """Derivatives that should be there and are not, or differ."""
    found = derivatives_in(room)
    for name, checksum in reference.derivatives.items():
        whose = next((who for who in participants if name.startswith(f"{who}/")), None)
        if whose is not None and name not in found:
            yield f"missing: derivatives/{name}"
        elif whose is not None and found[name] != checksum:
            yield f"half file: derivatives/{name} differs from the reference"


def unsaved(room: Room) -> Iterator[str]:
    """What is wrong with a dataset of derivatives after a run that saved it."""
    for words in (("fsck", "--full", "--strict"), ("annex", "fsck", "--fast", "--quiet"), ("status", "--porcelain")):
        command = ["git", "-C", str(room.results / "derivatives"), *words]
        done = subprocess.run(command, env=ENVIRONMENT, capture_output=True, text=True, check=False)
        if done.returncode or (words[0] == "status" and done.stdout):
            yield f"dataset: git {words[0]}: {done.stdout.strip()} {done.stderr.strip()}"


def differing_tables(room: Room, reference: Reference) -> Iterator[str]:
    """Tables that are not there, or differ in more than times and paths."""
    for name, text in reference.tables.items():
        path = room.results / name
        if not path.is_file():
            yield f"table: {name} is not there"
            continue
        own_text = path.read_text()
        changing = ("content",) if name == "index/images.tsv" else ()  # a plain file's content is known by its time
        if name in EXACT_TABLES and without(own_text, changing) != without(text, changing):
            yield f"table: {name} differs"
        elif name in MEASURED_TABLES and phases(own_text) != phases(text):
            yield f"table: {name} has {phases(own_text)} instead of {phases(text)}"
        elif own_text.splitlines()[:1] != text.splitlines()[:1]:
            yield f"table: the head of {name} differs"
        elif not name.startswith("profile/") and len(own_text.splitlines()) != len(text.splitlines()):
            yield f"table: {name} has {len(own_text.splitlines())} lines instead of {len(text.splitlines())}"


def measured(room: Room) -> dict[Path, bytes]:
    """What has been measured."""
    files = [file for pattern in MEASURED_ONCE for file in room.results.glob(pattern)]
    return {file: text for file in files if not UNMEASURED.search(text := file.read_bytes())}


def measured_again(kept: dict[Path, bytes], room: Room) -> Iterator[str]:
    """What was measured before a start, and is not as it was."""
    for file, text in kept.items():
        if not file.is_file() or file.read_bytes() != text:
            yield f"measured again: {file.relative_to(room.at)}"


def rows(text: str) -> list[dict[str, str]]:
    head, *lines = text.splitlines() or [""]
    return [dict(zip(head.split("\t"), line.split("\t"), strict=False)) for line in lines]


def without(text: str, columns: tuple[str, ...]) -> list[dict[str, str]]:
    """Rows less some columns."""
    return [{key: value for key, value in row.items() if key not in columns} for row in rows(text)]


def phases(text: str) -> list[tuple[str, str]]:
    return sorted((row.get("participant", ""), row.get("phase", "")) for row in rows(text))


def leftovers(room: Room) -> Iterator[str]:
    """Intermediates and unfinished files, on every tier."""
    for tier in {room.project, room.scratch, room.at}:
        for path in sorted(tier.glob("neurotier-*/work/**/*")):
            yield f"leftover: {path.relative_to(room.at)}"
        for path in sorted(tier.glob("neurotier-*/**/.*.partial")):
            yield f"leftover: {path.relative_to(room.at)}"
    for path in sorted(room.results.rglob(".*.partial")):
        yield f"leftover: {path.relative_to(room.at)}"
    for path in sorted(room.temporary.iterdir()):
        # Snakemake's own copy of the sources, and what Python tries a folder with, if they were killed
        is_trial = path.is_file() and path.stat().st_size <= len(b"blat")
        if re.fullmatch("snakemake[a-z0-9_]{8}" + "|[a-z0-9_]{8}" * is_trial, path.name):
            continue
        yield f"leftover: {path.relative_to(room.at)} (in TMPDIR)"


def unknown_files(room: Room, known: frozenset[str]) -> Iterator[str]:
    """Files that an undisturbed run does not leave."""
    for name in names_in(room.results):
        if name not in known and not name.endswith(".partial"):
            yield f"leftover: results/{name}"
    for path in sorted(room.results.rglob("*")):
        mode = path.lstat().st_mode
        if not stat.S_ISREG(mode) and not stat.S_ISDIR(mode):
            yield f"leftover: results/{path.relative_to(room.results)} is not a file"


def strays(name: str) -> Iterator[str]:
    """Processes of a trial that still live."""
    for process in living(name):
        if words := words_of(process):  # else it has ended meanwhile
            yield f"stray process: {' '.join(words)[:200]}"


def traces(said: Said) -> Iterator[str]:
    """A fault of neurotier shown to the user, or a command that never ended."""
    if said.hung:
        yield f"hung: {said.command}"
    if "fault in neurotier" in said.output:
        yield "trace: a fault in neurotier"
    elif any(is_ours(part) for part in said.output.split(TRACE)[1:]):
        yield "trace: a Python trace was shown"


def is_ours(trace: str) -> bool:
    """Whether a Python trace is one that neurotier should have caught."""
    return bool(OUR_FRAMES.search(trace)) and not STARTING.search(trace) and not IMPORTING.search(trace)
