"""Kinds of trials. Each disturbs ``snakemake`` as a user starts it, on three participants, and starts it again."""

from __future__ import annotations

import contextlib
import os
import shutil
import signal
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import psutil
from neurotier.core.places import file_of

from faults import invariants, strace
from faults.disks import fill, free_again, lose_disk, read_only, remount_disk, snapshot, writable
from faults.disturbances import joining, later, memory_group, restore, run_out_of_memory, signal_later, spoil
from faults.processes import Running, Said, end_all, environment_of, living, run
from faults.rooms import command
from faults.templates import (
    ANNEX,
    ANNEX_DISK,
    DISK,
    OTHER_DISKS,
    OTHERS,
    PARTICIPANTS,
    PLAIN,
    SAVED_DISK,
    SCRATCH,
    Kind,
    snakemake,
)
from faults.trial import PATIENCE_S, Trial

PROCESSES = ("snakemake", "tool", "git", "any", "any", "any", "all")
ENDING = (signal.SIGKILL, signal.SIGKILL, signal.SIGTERM, signal.SIGINT)
RUN_S = {"fresh": 9.0, "indexed": 6.0, "ready": 3.5}
"""How long a run takes from each stage on a quiet machine, about, s."""

AFTER_S = (0, 1, 4, 8)
"""Moments of a power cut after the end of a run, s."""

REFUSED = "another run is using this results folder"

NOT_OURS = ("state/lock", "logs/")
"""Files that nobody needs: damage to them changes nothing."""


def moment_s_of(trial: Trial, times: float = 1.0) -> float:
    """A random moment of the disturbed command, s after its start."""
    return trial.chance.uniform(0, times * run_s_of(trial))


def run_s_of(trial: Trial) -> float:
    """How long a run of a trial takes, about, s."""
    return trial.kind.run_s or RUN_S[trial.stage]


def kill(trial: Trial) -> None:
    """A signal that ends Snakemake, a tool, git, any one process of the run, or all of them."""
    running = [name for name in PROCESSES if trial.kind.annex or name != "git"]
    target, number = trial.chance.choice(running), trial.chance.choice(ENDING)
    trial.disturb(signal_later(trial, target, number, run_s_of(trial)))
    trial.start_again()


def stop_and_continue(trial: Trial) -> None:
    """One process or all of them stand still for seconds, and then go on."""
    target, still_s = trial.chance.choice(PROCESSES), trial.chance.uniform(0.2, 4.0)
    trial.disturb(signal_later(trial, target, signal.SIGSTOP, run_s_of(trial), continue_after_s=still_s))
    trial.start_again()


def out_of_memory(trial: Trial) -> None:
    """The kernel ends the largest process of the run, as in a job whose memory is limited."""
    moment_s = moment_s_of(trial)
    trial.fault = f"out of memory after {moment_s:.2f} s, from {trial.stage}"
    with memory_group(trial.name) as group:
        trial.disturb(run_out_of_memory(trial, moment_s, group), before=joining(group))
        end_all(trial.name)
    trial.start_again()


def at_call(trial: Trial, fault: str, call: strace.Call) -> None:
    """A fault at the n-th system call of a name, in each process that makes so many."""
    log = trial.room.at / "injected"
    trial.fault = f"{fault} at {call.name} {call.nth}: {call.shown[:100]}"
    trial.disturb(before=strace.injecting(log, call, fault))
    trial.hit = strace.has_hit(log)
    trial.start_again()


def kill_at_call(trial: Trial) -> None:
    """A signal that comes at the n-th call: kills between any two steps of a write."""
    call = strace.draw_call(trial.prepared.calls[trial.kind.name], trial.chance)
    at_call(trial, f"signal={trial.chance.choice(ENDING).name}:when={call.nth}", call)


def fail_call(trial: Trial) -> None:
    """A call that fails as on a full, broken or read-only disk."""
    call = strace.draw_call(trial.prepared.calls[trial.kind.name], trial.chance)
    at_call(trial, strace.draw_error(call, trial.chance), call)


def place_of(trial: Trial) -> Path:
    """The file system of a trial's own: that of the work tier, or the project's."""
    return trial.room.scratch if trial.kind.scratch else trial.room.project


def full(trial: Trial) -> None:
    """The work tier's or the project's real file system becomes full; then there is room again."""
    place, moment_s = place_of(trial), moment_s_of(trial)
    left_bytes = trial.chance.choice((0, 4096, 8192, 20_000, 60_000))
    trial.fault = f"{place.name} full but for {left_bytes} bytes after {moment_s:.2f} s, from {trial.stage}"
    trial.disturb(later(trial, moment_s, lambda: fill(place, left_bytes)))
    free_again(place)
    trial.start_again()


def made_read_only(trial: Trial) -> None:
    """The work tier or the project's disk becomes read-only; then it can be written to again."""
    place, moment_s = place_of(trial), moment_s_of(trial)
    trial.fault = f"{place.name} read-only after {moment_s:.2f} s, from {trial.stage}"
    trial.disturb(later(trial, moment_s, lambda: read_only(place)))
    writable(place)
    trial.start_again()


def lost_disk(trial: Trial) -> None:
    """The project's disk is gone at once: every call fails, and what was not flushed is lost; then it is back."""
    moment_s = moment_s_of(trial)
    trial.fault = f"disk lost after {moment_s:.2f} s, from {trial.stage}"
    trial.start(later(trial, moment_s, lambda: lose_disk(trial.room.project)))
    end_all(trial.name)
    remount_disk(trial.room)
    trial.start_again()


def power_cut(trial: Trial) -> None:
    """The power fails at a random moment."""
    moment_s = moment_s_of(trial, 1.2)
    trial.fault = f"power cut after {moment_s:.2f} s, from {trial.stage}"
    cut_power(trial, lambda running: running.wait(moment_s))


def power_cut_after(trial: Trial) -> None:
    """The power fails when the run has ended."""
    after_s = trial.chance.choice(AFTER_S)
    trial.fault = f"power cut {after_s} s after the end, from {trial.stage}"

    def ended(running: Running) -> bool:
        running.process.wait(PATIENCE_S)
        time.sleep(after_s)
        return True

    cut_power(trial, ended)


def cut_power(trial: Trial, wait: Callable[[Running], bool]) -> None:
    """Nothing is left but what the small disk holds when ``wait`` returns, which says whether the run goes on."""
    cut = trial.room.at / "cut.img"

    def disturb(running: Running) -> None:
        trial.hit = wait(running)
        for process in living(trial.name):  # what they would still write comes after the cut
            with contextlib.suppress(psutil.Error):
                process.suspend()
        snapshot(trial.room.disk, cut)
        end_all(trial.name)

    trial.start(disturb)
    cut.replace(trial.room.disk)
    remount_disk(trial.room)
    trial.start_again()


def spoiled_source(trial: Trial) -> None:
    """Images of a plain folder are cut short, replaced or taken away while they are read; then they are as before.

    Where that may have been while the folder was indexed, it is indexed again, as for any change that is to be noticed.
    """
    participant = trial.chance.choice(PARTICIPANTS)
    image = next((trial.room.source / participant).rglob("*_T1w.nii.gz"))
    content, times = image.read_bytes(), image.stat()
    how = trial.chance.choice(("truncated", "replaced", "empty", "removed", "a folder", "fifo"))
    moment_s = trial.chance.choice((0.0, moment_s_of(trial)))
    trial.fault = f"image of {participant} {how} after {moment_s:.2f} s, from {trial.stage}"

    def act() -> bool:
        spoil(image, how, trial.chance)
        return True

    trial.start(later(trial, moment_s, act))
    restore(image, content, times)
    trial.start_again(*(["--forcerun", "index_dataset"] if trial.stage == "fresh" else []))


def lost_source(trial: Trial) -> None:
    """The source is moved away, or contents in it are damaged, while they are fetched; then it is as before."""
    source, room = trial.room.source, trial.room
    how = trial.chance.choice(("moved away", "removed", "truncated", "replaced"))
    moment_s = trial.chance.choice((0.0, moment_s_of(trial)))
    trial.fault = f"source {how} after {moment_s:.2f} s, from {trial.stage}"
    shutil.copytree(source, room.at / "kept", symlinks=True)

    def act() -> bool:
        if how == "moved away":
            source.rename(room.at / "moved")
            return True
        for image in source.rglob("*_T1w.nii.gz"):
            content = image.resolve()
            content.parent.chmod(0o755)
            content.chmod(0o644)
            spoil(content, how, trial.chance)
        return True

    trial.start(later(trial, moment_s, act))
    for folder in (source, room.at / "moved"):
        command("chmod", "-R", "u+w", str(folder)) if folder.exists() else None
        shutil.rmtree(folder, ignore_errors=True)
    (room.at / "kept").rename(source)
    trial.start_again()


def spoiled_files(trial: Trial) -> None:
    """Files below results, tiers and Snakemake's own folder are removed or damaged between two starts.

    What was measured and is whole is not measured again, but for runs of the incrementation after one that is, and what
    a rehearsal has shown of participants of whom one is analysed again.
    """
    said, kept = [], invariants.measured(trial.room)
    trial.kept = {} if trial.target == "bigbrain" else kept
    for _ in range(trial.chance.choice((1, 1, 2, 4))):
        victim = draw_victim(trial)
        how = trial.chance.choice(ways_to_spoil(victim))
        with contextlib.suppress(OSError):
            is_analysed_again = "/sub-" in str(victim) and {"derivatives", "records"}.intersection(victim.parts)
            rehearsed = [trial.room.results / "advice/rehearsal.json"] if is_analysed_again else []
            for file in (victim, *rehearsed, *(folder / "condition.json" for folder in victim.parents)):
                kept.pop(file, None)
            if ".git/objects/" in str(victim):  # git links those of a clone to the source's, which are the user's
                content = victim.read_bytes()
                victim.unlink()
                victim.write_bytes(content)
            spoil(victim, how, trial.chance)
            said.append(f"{victim.relative_to(trial.room.project)} {how}")
    trial.fault, trial.hit = "; ".join(said), True
    trial.start_again()


def draw_victim(trial: Trial) -> Path:
    """A file to damage: first its folder, so that few files of one come as often as the many figures."""
    room = trial.room
    files = [path for path in sorted(room.results.rglob("*")) if path.is_file() and not path.is_symlink()]
    files = [path for path in files if not str(path.relative_to(room.results)).startswith(NOT_OURS)]
    for place in (room.project / ".snakemake", *room.project.glob("neurotier-*"), room.scratch):
        files += [path for path in sorted(place.rglob("*")) if path.is_file() and not path.is_symlink()]
    folder = trial.chance.choice(sorted({path.relative_to(room.project).parts[:2] for path in files}))
    return trial.chance.choice([path for path in files if path.relative_to(room.project).parts[:2] == folder])


def ways_to_spoil(victim: Path) -> tuple[str, ...]:
    """How a file is damaged; other bytes of the same size are not seen in derivatives, whose sizes a start compares."""
    if "figures" in victim.parts:  # of which only the names are checked
        return ("removed", "a folder", "of the future")
    return ("truncated", "empty", "removed", "a folder", "of the future")


def planted(trial: Trial) -> None:
    """A FIFO, link or empty file lies where a participant's files are written."""
    participant = trial.chance.choice(PARTICIPANTS)
    results = trial.room.results
    name = trial.chance.choice(
        (
            file_of(Path("logs/analyze_participant"), participant, ".log").as_posix(),
            file_of(Path("profile/records"), participant).as_posix(),
            f"derivatives/{participant}",
            f"derivatives/.{participant}.partial",
        )
    )
    how = trial.chance.choice(("fifo", "link", "empty file"))
    trial.fault, trial.hit = f"{how} at {name}", True
    path = results / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.unlink(missing_ok=True)
    outside = trial.room.at / "outside"
    outside.mkdir()
    (outside / "file").write_text("not ours\n")
    if how == "fifo":
        os.mkfifo(path)
    elif how == "link":
        path.symlink_to(outside if "derivatives" in name else outside / "file")
    else:
        path.touch()
    trial.start_again()
    if (outside / "file").read_text() != "not ours\n" or len(list(outside.iterdir())) != 1:
        trial.violate(["a file outside was changed through a link"])


def two_runs(trial: Trial) -> None:
    """Two runs start on one folder: one is refused in a line, and does the other no harm."""
    moment_s = trial.chance.choice((0.0, trial.chance.uniform(0, 3.0)))
    trial.fault = f"a second run {moment_s:.2f} s after the first, from {trial.stage}"
    others: list[Said] = []

    def start_other(running: Running) -> None:
        if running.wait(moment_s):
            trial.hit = True
            room = trial.room
            words, output = snakemake(trial.target), room.at / "said-other"
            others.append(run(words, room.project, environment_of(trial.name), output, None, PATIENCE_S))

    first = trial.start(start_other)
    for other in others:
        trial.said.append(other)
        refused = [REFUSED in said.output for said in (first, other)]
        if all(refused):
            trial.violate(["both of two runs were refused"])
        for said, was_refused in zip((first, other), refused, strict=True):
            if (said.code == 0) == was_refused:
                trial.violate([f"a run of two {'was refused and' if was_refused else ''} ended with exit {said.code}"])
            if was_refused and len([line for line in said.output.splitlines() if REFUSED in line]) != 1:
                trial.violate(["a run was refused in more than a line"])
    trial.start_again()


@dataclass(frozen=True)
class Fault:
    """A kind of trial.

    Attributes
    ----------
    hold
        Disturbs the command, starts it again, and notes what was violated.
    kinds
        Prepared projects that it is tried on.
    weight
        How often it is drawn.
    stages
        How far the project has come; mostly, what comes next concerns a participant.
    """

    hold: Callable[[Trial], None]
    kinds: tuple[Kind, ...]
    weight: int
    stages: tuple[str, ...] = ()

    def stages_of(self, kind: Kind) -> tuple[str, ...]:
        if kind.target:
            return (kind.target,) if self.stages == SPOILED else ("fresh",)
        return self.stages or (kind.before_analysis, kind.before_analysis, "fresh")


READY = ("ready",)
SPOILED = ("ready", "participants", "all", "all")
FAULTS = {
    "kill": Fault(kill, (PLAIN, ANNEX), 24),
    "kill-at-call": Fault(kill_at_call, (PLAIN,), 20, READY),
    "call-fails": Fault(fail_call, (PLAIN,), 20, READY),
    "stopped": Fault(stop_and_continue, (PLAIN, ANNEX), 6),
    "out-of-memory": Fault(out_of_memory, (PLAIN, ANNEX), 6),
    "tier-full": Fault(full, (SCRATCH, DISK), 8),
    "tier-read-only": Fault(made_read_only, (SCRATCH, DISK), 6),
    "disk-lost": Fault(lost_disk, (DISK,), 5),
    "power-cut": Fault(power_cut, (ANNEX_DISK,), 6),
    "power-cut-saved": Fault(power_cut, (SAVED_DISK,), 3),
    "power-cut-after": Fault(power_cut_after, (ANNEX_DISK,), 2),
    "power-cut-after-saved": Fault(power_cut_after, (SAVED_DISK,), 1),
    "power-cut-elsewhere": Fault(power_cut, OTHER_DISKS, 1),
    "source-spoiled": Fault(spoiled_source, (PLAIN,), 6),
    "source-lost": Fault(lost_source, (ANNEX,), 6),
    "files-spoiled": Fault(spoiled_files, (PLAIN, ANNEX), 14, SPOILED),
    "planted": Fault(planted, (PLAIN,), 4, READY),
    "two-runs": Fault(two_runs, (ANNEX,), 3),
    "others-kill": Fault(kill, OTHERS, 4),
    "others-spoiled": Fault(spoiled_files, OTHERS, 4, SPOILED),
    "others-full": Fault(full, OTHERS, 2),
    "others-power-cut": Fault(power_cut, OTHERS, 2),
}
