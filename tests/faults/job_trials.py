"""Trials of one participant job: quick, so most of a campaign."""

from __future__ import annotations

import contextlib
import os
import random
import signal
from collections.abc import Callable
from pathlib import Path

import psutil
from neurotier.core.places import file_of

from faults import invariants, strace
from faults.disks import fill, free_again, lose_disk, read_only, remount_disk, writable
from faults.processes import Running, Said, living, role
from faults.templates import ANNEX, DISK, PARTICIPANTS, PLAIN, SCRATCH, get_words
from faults.trial import Trial

SIGNALS = (signal.SIGKILL, signal.SIGKILL, signal.SIGTERM, signal.SIGINT)
JOB_S = 0.9
"""How long a job takes on a quiet machine, about, s: faults come in this time."""


def with_fault(
    trial: Trial, first: Callable[[str, str], Said], heal: Callable[[], None] | None = None, half_files: bool = True
) -> None:
    """A job with a fault, what must hold then, and the same job without it.

    Parameters
    ----------
    trial
        The trial.
    first
        Runs the disturbed job of a participant and a run.
    heal
        Mends the environment.
    half_files
        Look for half files after the fault; not where the fault itself makes them, or nothing can be read then.
    """
    participant = trial.chance.choice(PARTICIPANTS)
    said = first(participant, trial.begin())
    if half_files:
        trial.violate(invariants.half_files(trial.room, trial.reference("participants")), "after the fault: ")
        trial.check_honest(said, [participant])
    if heal is not None:
        heal()
    again = trial.begin()
    trial.check_exit(trial.job(participant, again))
    trial.end(again)
    trial.check_job(participant)


def signal_later(trial: Trial, target: str, number: signal.Signals, longest_s: float) -> Callable[[Running], None]:
    """Send a signal to a kind of process at a random moment; ``all`` is everything, as Ctrl-C does."""
    moment_s = trial.chance.uniform(0, longest_s if target in ("all", "job", "snakemake") else longest_s / 2)
    pick = trial.chance.random()
    trial.fault = f"{number.name} to {target} after {moment_s:.2f} s"

    def disturb(running: Running) -> None:
        if not running.wait(moment_s):
            return
        targets: list[psutil.Process] = []

        def found() -> bool:
            alive = living(trial.name)
            targets[:] = alive if target == "all" else [process for process in alive if role(process) == target]
            return bool(targets)

        if not running.until(found):
            return
        for process in targets if target == "all" else [targets[int(pick * len(targets))]]:
            with contextlib.suppress(psutil.Error):
                process.send_signal(number)
                trial.hit = True

    return disturb


def kill_at_moment(trial: Trial) -> None:
    """A signal to the job, its phase, the tool or all of them."""
    target = trial.chance.choice(("job", "phase", "tool", "all"))
    during = signal_later(trial, target, trial.chance.choice(SIGNALS), JOB_S)
    with_fault(trial, lambda who, run: trial.job(who, run, during))


def at_call(trial: Trial, fault: str, call: strace.Call) -> None:
    """A job that runs with a fault at one of its system calls."""
    log = trial.room.at / "injected"
    trial.fault = f"{fault} at {call.name} {call.nth}: {call.shown[:100]}"

    def first(who: str, run: str) -> Said:
        said = trial.job(who, run, before=strace.injecting(log, call, fault))
        trial.hit = strace.has_hit(log)
        return said

    with_fault(trial, first)


def kill_at_call(trial: Trial) -> None:
    """A signal that comes at the n-th call: kills between any two steps of a write."""
    call = strace.draw_call(trial.prepared.calls(trial.kind), trial.chance)
    number = trial.chance.choice(SIGNALS)
    at_call(trial, f"signal={number.name}:when={call.nth}", call)


def fail_call(trial: Trial) -> None:
    """A call that fails as on a full, broken or read-only disk."""
    call = strace.draw_call(trial.prepared.calls(trial.kind), trial.chance)
    at_call(trial, strace.draw_error(call, trial.chance), call)


def later(moment_s: float, act: Callable[[], bool], trial: Trial) -> Callable[[Running], None]:
    """Do something to the environment at a moment."""

    def disturb(running: Running) -> None:
        if running.wait(moment_s):
            trial.hit = running.until(act, patience_s=5.0) and running.process.poll() is None

    return disturb


def full_tier(trial: Trial) -> None:
    """The work tier's or the project's real file system becomes full."""
    place = trial.room.scratch if trial.kind is SCRATCH else trial.room.project
    left_bytes = trial.chance.choice((0, 4096, 8192, 20_000, 60_000))
    moment_s = trial.chance.uniform(0, JOB_S)
    trial.fault = f"{place.name} full but for {left_bytes} bytes after {moment_s:.2f} s"
    during = later(moment_s, lambda: fill(place, left_bytes), trial)
    with_fault(trial, lambda who, run: trial.job(who, run, during), heal=lambda: free_again(place))


def read_only_tier(trial: Trial) -> None:
    """The work tier or the project's disk becomes read-only."""
    place = trial.room.scratch if trial.kind is SCRATCH else trial.room.project
    moment_s = trial.chance.uniform(0, JOB_S)
    trial.fault = f"{place.name} read-only after {moment_s:.2f} s"
    during = later(moment_s, lambda: read_only(place), trial)
    with_fault(trial, lambda who, run: trial.job(who, run, during), heal=lambda: writable(place))


def lost_disk(trial: Trial) -> None:
    """The project's disk is gone at once: every call fails, and what was not flushed is lost."""
    moment_s = trial.chance.uniform(0, JOB_S)
    trial.fault = f"disk lost after {moment_s:.2f} s"
    during = later(moment_s, lambda: lose_disk(trial.room.project), trial)
    with_fault(trial, lambda who, run: trial.job(who, run, during), heal=lambda: remount_disk(trial), half_files=False)


def spoiled_source(trial: Trial) -> None:
    """The image is cut short, replaced or taken away while the job reads it; then it is as before."""
    participant = trial.chance.choice(PARTICIPANTS)
    image = next((trial.room.source / participant).rglob("*_T1w.nii.gz"))
    content = image.read_bytes()
    how = trial.chance.choice(("truncated", "replaced", "empty", "removed", "folder", "fifo"))
    moment_s = trial.chance.choice((0.0, trial.chance.uniform(0, JOB_S)))
    trial.fault = f"image of {participant} {how} after {moment_s:.2f} s"
    times = image.stat()

    def spoil() -> bool:
        spoil_file(image, how, trial.chance)
        return True

    def heal() -> None:
        restore(image, content, times)

    run = trial.begin()
    trial.job(participant, run, later(moment_s, spoil, trial))
    heal()
    again = trial.begin()
    trial.check_exit(trial.job(participant, again))
    trial.end(again)
    trial.check_job(participant)


def spoil_file(path: Path, how: str, chance: random.Random) -> None:
    """Damage a file."""
    content = path.read_bytes()
    if how == "truncated":
        os.truncate(path, int(chance.uniform(0, len(content))))
    elif how == "replaced":
        path.write_bytes(chance.randbytes(len(content)))
    elif how == "longer":
        path.write_bytes(chance.randbytes(len(content) + 1))
    elif how == "empty":
        os.truncate(path, 0)
    else:
        path.unlink()
        if how == "folder":
            path.mkdir()
        elif how == "fifo":
            os.mkfifo(path)
        elif how == "link":
            path.symlink_to("/etc/hostname")


def restore(path: Path, content: bytes, times: os.stat_result) -> None:
    """Have a file as it was, with its times."""
    if path.is_dir() and not path.is_symlink():
        path.rmdir()
    else:
        path.unlink(missing_ok=True)
    path.write_bytes(content)
    os.utime(path, ns=(times.st_atime_ns, times.st_mtime_ns))


def spoiled_between(trial: Trial) -> None:
    """What a job left is removed or damaged before it runs again."""
    participant = trial.chance.choice(PARTICIPANTS)
    run = trial.begin()
    trial.check_exit(trial.job(participant, run))
    trial.end(run)
    mine = [
        path
        for path in sorted(trial.room.results.rglob("*"))
        if path.is_file() and participant in str(path) and not path.is_relative_to(trial.room.results / "index")
    ]
    victim = trial.chance.choice(mine)
    # no other content of the same size: a start compares sizes alone, as workflow/README.md says
    how = trial.chance.choice(("truncated", "longer", "empty", "removed", "folder", "fifo", "link"))
    trial.fault, trial.hit = f"{victim.relative_to(trial.room.results)} {how} between the jobs", True
    spoil_file(victim, how, trial.chance)
    again = trial.begin()
    trial.check_exit(trial.job(participant, again))
    trial.end(again)
    trial.check_job(participant)


def planted(trial: Trial) -> None:
    """A FIFO, link or folder lies where the job writes."""
    participant = trial.chance.choice(PARTICIPANTS)
    results = trial.room.results
    name = trial.chance.choice(
        (
            file_of(Path("logs/analyze_participant"), participant, ".log").as_posix(),
            file_of(Path("profile/records"), participant).as_posix(),
            file_of(Path("state/failures"), participant).as_posix(),
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
    again = trial.begin()
    trial.check_exit(trial.job(participant, again))
    trial.end(again)
    trial.check_job(participant)
    if (outside / "file").read_text() != "not ours\n" or len(list(outside.iterdir())) != 1:
        trial.violate(["a file outside was changed through a link"])


def get_again(trial: Trial, participant: str) -> None:
    """The same get without a fault, and the analysis of what it brought."""
    again = trial.begin()
    trial.check_exit(trial.command(get_words(participant), patience_s=60, more={"NEUROTIER_RUN": again}))
    (trial.room.results / "state" / "got" / participant).unlink(missing_ok=True)  # as Snakemake does
    trial.check_exit(trial.job(participant, again))
    trial.end(again)
    with contextlib.suppress(OSError):
        (trial.room.results / "state" / "got").rmdir()
    trial.check_job(participant)


def killed_get(trial: Trial) -> None:
    """A signal to the job that fetches, or to what it started."""
    participant = trial.chance.choice(PARTICIPANTS)
    target = trial.chance.choice(("get", "git", "all"))
    during = signal_later(trial, target, trial.chance.choice(SIGNALS), 1.2)
    trial.command(get_words(participant), during, 60, {"NEUROTIER_RUN": trial.begin()})
    get_again(trial, participant)


def lost_source(trial: Trial) -> None:
    """The source is moved away, or a content in it is damaged, while it is fetched; then it is as before."""
    participant = trial.chance.choice(PARTICIPANTS)
    source = trial.room.source
    how = trial.chance.choice(("moved away", "content removed", "content truncated", "content replaced"))
    moment_s = trial.chance.choice((0.0, trial.chance.uniform(0, 1.2)))
    trial.fault = f"source {how} after {moment_s:.2f} s"
    image = next((source / participant).rglob("*_T1w.nii.gz"))
    content = image.resolve()
    kept = trial.room.at / "kept"
    kept.write_bytes(content.read_bytes())

    def act() -> bool:
        if how == "moved away":
            source.rename(source.with_name("moved"))
        else:
            content.parent.chmod(0o755)
            content.chmod(0o644)
            spoil_file(content, how.removeprefix("content "), trial.chance)
        return True

    trial.command(get_words(participant), later(moment_s, act, trial), 60, {"NEUROTIER_RUN": trial.begin()})
    if source.with_name("moved").exists():
        source.with_name("moved").rename(source)
    elif trial.hit or not content.exists():
        content.unlink(missing_ok=True)
        content.write_bytes(kept.read_bytes())
        content.chmod(0o444)
    get_again(trial, participant)


JOB_KINDS = {
    "job-kill": (kill_at_moment, (PLAIN,), 22),
    "job-kill-at-call": (kill_at_call, (PLAIN,), 22),
    "job-call-fails": (fail_call, (PLAIN,), 22),
    "job-tier-full": (full_tier, (SCRATCH, DISK), 6),
    "job-tier-read-only": (read_only_tier, (SCRATCH, DISK), 6),
    "job-disk-lost": (lost_disk, (DISK,), 4),
    "job-source-spoiled": (spoiled_source, (PLAIN,), 6),
    "job-files-spoiled": (spoiled_between, (PLAIN,), 6),
    "job-planted": (planted, (PLAIN,), 4),
    "get-killed": (killed_get, (ANNEX,), 4),
    "get-source-lost": (lost_source, (ANNEX,), 4),
}
"""Kinds of job-level trials: function, prepared projects, weight."""
