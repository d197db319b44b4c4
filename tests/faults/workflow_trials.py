"""Trials of the whole workflow: ``snakemake`` as a user starts it, on three participants."""

from __future__ import annotations

import contextlib
import random
import shutil
import signal
from pathlib import Path

import psutil

from faults import invariants
from faults.disks import fill, free_again, lose_disk, remount_disk, snapshot, unmount
from faults.job_trials import later, signal_later, spoil_file
from faults.processes import Running, Said, end_all, environment_of, living, run
from faults.rooms import command, mount_disk
from faults.templates import ANNEX, ANNEX_DISK, DISK, PARTICIPANTS, PLAIN, Kind, snakemake
from faults.trial import RUN_PATIENCE_S, Trial

PROCESSES = ("snakemake", "snakemake", "job", "phase", "tool", "get", "git", "script", "all")
NUMBERS = (signal.SIGKILL, signal.SIGKILL, signal.SIGTERM, signal.SIGINT)
RUN_S = {"fresh": 14.0, "indexed": 10.0, "ready": 7.0, "participants": 3.0, "all": 3.0}
"""How long a run takes from each stage on a quiet machine, about, s."""

REFUSED = "another run is using this results folder"

NOT_OURS = ("state/lock", "logs/")
"""What nobody needs: damage to it changes nothing."""


def stage_of(name: str, kind: Kind, chance: random.Random) -> str:
    """How far the project of a trial has come before it."""
    return chance.choice(RUN_STAGES.get(name, (kind.before_analysis, kind.before_analysis, "fresh")))


def target_of(trial: Trial) -> str:
    """What is asked for: mostly the analyses alone, which take less time than the figures."""
    return trial.chance.choice(("participants", "participants", "participants", "all"))


def again(trial: Trial, target: str) -> None:
    """The same command without a fault, and what must hold then."""
    trial.check_exit(trial.command(snakemake(target)))
    trial.check_run(target)


def signalled(trial: Trial) -> None:
    """A signal to Snakemake, a job, its tool, a fetch or a script, or to all of them."""
    target = target_of(trial)
    number, process = trial.chance.choice(NUMBERS), trial.chance.choice(PROCESSES)
    said = trial.command(snakemake(target), signal_later(trial, process, number, RUN_S[trial.stage]))
    trial.violate(invariants.half_files(trial.room, trial.reference("all")), "after the fault: ")
    trial.check_honest(said, list(PARTICIPANTS))
    again(trial, target)


def lost_source(trial: Trial) -> None:
    """The source is moved away, or contents in it are damaged, while they are fetched; then it is as before."""
    target, source, room = target_of(trial), trial.room.source, trial.room
    how = trial.chance.choice(("moved away", "removed", "truncated", "replaced"))
    moment_s = trial.chance.choice((0.0, trial.chance.uniform(0, RUN_S[trial.stage])))
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
            spoil_file(content, how, trial.chance)
        return True

    trial.command(snakemake(target), later(moment_s, act, trial))
    for folder in (source, room.at / "moved"):
        command("chmod", "-R", "u+w", str(folder)) if folder.exists() else None
        shutil.rmtree(folder, ignore_errors=True)
    (room.at / "kept").rename(source)
    again(trial, target)


def spoiled_between(trial: Trial) -> None:
    """Files of a finished run are removed or damaged: state, index, records, tables, derivatives, Snakemake's own."""
    target = "all" if trial.stage == "all" else "participants"
    said = []
    for _ in range(trial.chance.choice((1, 1, 2, 4))):
        victim = draw_victim(trial)
        ways = ("truncated", "empty", "removed") if may_be_told(trial, victim) else ("removed",)
        how = trial.chance.choice(ways)
        with contextlib.suppress(OSError):
            spoil_file(victim, how, trial.chance)
            said.append(f"{victim.relative_to(trial.room.project)} {how}")
    trial.fault, trial.hit = "; ".join(said), True
    again(trial, target)


def draw_victim(trial: Trial) -> Path:
    """A file to damage: first its folder, so that the few files of the state come as often as the many figures."""
    room = trial.room
    files = [path for path in sorted(room.results.rglob("*")) if path.is_file() and not path.is_symlink()]
    files = [path for path in files if not str(path.relative_to(room.results)).startswith(NOT_OURS)]
    files += [path for path in sorted((room.project / ".snakemake" / "metadata").rglob("*")) if path.is_file()]
    folder = trial.chance.choice(sorted({path.relative_to(room.project).parts[:2] for path in files}))
    return trial.chance.choice([path for path in files if path.relative_to(room.project).parts[:2] == folder])


def may_be_told(trial: Trial, victim: Path) -> bool:
    """Whether damage within a file can matter to what is checked; of figures only the names are."""
    return "figures" not in victim.parts


def power_cut(trial: Trial) -> None:
    """The power fails at a random moment: what the small disk held then is all that is left."""
    target = target_of(trial)
    moment_s = trial.chance.uniform(0, 1.2 * RUN_S[trial.stage])
    trial.fault = f"power cut after {moment_s:.2f} s, from {trial.stage}"
    cut = trial.room.at / "cut.img"

    def disturb(running: Running) -> None:
        trial.hit = running.wait(moment_s)
        for process in living(trial.name):  # what they would still write comes after the cut
            with contextlib.suppress(psutil.Error):
                process.suspend()
        snapshot(trial.room.disk, cut)
        end_all(trial.name)

    trial.command(snakemake(target), disturb)
    unmount(trial.room.project)
    cut.replace(trial.room.disk)
    mount_disk(trial.room.disk, trial.room.project)
    again(trial, target)


def full_disk(trial: Trial) -> None:
    """The project's disk becomes full; then there is room again."""
    target, place = target_of(trial), trial.room.project
    left_bytes = trial.chance.choice((0, 8192, 100_000))
    moment_s = trial.chance.uniform(0, RUN_S[trial.stage])
    trial.fault = f"disk full but for {left_bytes} bytes after {moment_s:.2f} s, from {trial.stage}"
    said = trial.command(snakemake(target), later(moment_s, lambda: fill(place, left_bytes), trial))
    trial.check_honest(said, list(PARTICIPANTS))
    free_again(place)
    again(trial, target)


def lost_disk(trial: Trial) -> None:
    """The project's disk is gone at once, for everyone; then it is back."""
    target = target_of(trial)
    moment_s = trial.chance.uniform(0, RUN_S[trial.stage])
    trial.fault = f"disk lost after {moment_s:.2f} s, from {trial.stage}"
    trial.command(snakemake(target), later(moment_s, lambda: lose_disk(trial.room.project), trial))
    end_all(trial.name)
    remount_disk(trial)
    again(trial, target)


def two_runs(trial: Trial) -> None:
    """Two runs start on one folder: one is refused in a line, and does the other no harm."""
    target = target_of(trial)
    moment_s = trial.chance.choice((0.0, trial.chance.uniform(0, 3.0)))
    trial.fault = f"a second run {moment_s:.2f} s after the first, from {trial.stage}"
    others: list[Said] = []

    def start_other(running: Running) -> None:
        if running.wait(moment_s):
            trial.hit = True
            environment = environment_of(trial.name, trial.room.temporary)
            said = run(
                snakemake(target), trial.room.project, environment, trial.room.at / "said-other", None, RUN_PATIENCE_S
            )
            others.append(said)

    first = trial.command(snakemake(target), start_other)
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
    again(trial, target)


RUN_KINDS = {
    "run-signal": (signalled, (ANNEX,), 6),
    "run-source-lost": (lost_source, (ANNEX,), 2),
    "run-files-spoiled": (spoiled_between, (PLAIN, ANNEX), 6),
    "run-power-cut": (power_cut, (ANNEX_DISK,), 3),
    "run-disk-full": (full_disk, (DISK,), 1),
    "run-disk-lost": (lost_disk, (DISK,), 1),
    "run-two": (two_runs, (ANNEX,), 1),
}
"""Kinds of whole-workflow trials: function, prepared projects, weight."""

RUN_STAGES: dict[str, tuple[str, ...]] = {"run-files-spoiled": ("participants", "all", "all")}
