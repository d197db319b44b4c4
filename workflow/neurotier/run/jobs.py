"""Jobs: what the commands of shell rules share: reading the state of the results folder, and recording failures.

A failed job prints one line on the terminal and leaves a failure record for the report. A ``NeurotierError`` gives the
reason; any other exception is a bug in neurotier, and its traceback goes to the job's log.
"""

from __future__ import annotations

import os
import re
import socket
import sys
import traceback
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import replace
from pathlib import Path
from typing import Any, TextIO

import psutil

from neurotier.core.errors import (
    KilledError,
    NeurotierError,
    SettingsError,
    SourceError,
    StateError,
    TierError,
    ToolError,
    all_without_credentials,
)
from neurotier.core.files import (
    DENIED,
    FULL,
    Record,
    note,
    read_json,
    read_json_or_empty,
    read_or_empty,
    write_json,
    write_secret,
    write_text,
)
from neurotier.core.places import Places
from neurotier.core.processes import SIGNALS, current_run
from neurotier.core.quantities import first_of
from neurotier.core.settings import Say, Settings
from neurotier.core.tiers import tier_named, with_absolute_paths
from neurotier.dataset.source import Dataset, is_installed, obtain
from neurotier.meter.measure import Interrupted
from neurotier.run.participants import selected_in

AGAIN = ", and start the same command again"

ADVICE = {
    **dict.fromkeys(FULL, f"free some space there{AGAIN}"),
    **dict.fromkeys(DENIED, f"check that you may read and write there{AGAIN}"),
}
"""What to do about an operating system's error."""

NO_MORE = r"can't start new thread|failed to map segment|^\[Errno (11|12)\] [^:]*$"
"""Errors of Python about a thread, of the linker about a library, and of the system about a fork (EAGAIN and ENOMEM,
which concern no file), for which there is no memory or process left."""

EXTERNAL = (NeurotierError, OSError, ImportError, MemoryError)
"""Errors that are not the fault of this library."""

READ_AGAIN = "start the same command again, or install this Python environment again"


def save_settings(settings: Settings, places: Places, on_cluster: bool = False) -> None:
    """Save the settings for jobs, which may run on other nodes (``on_cluster``), and for commands from any working
    folder.

    The user name and token of the dataset's source are kept in a file of their own, since other users may read the
    settings.
    """
    write_json(places.settings_file, settings_without_credentials(with_absolute_paths(settings, on_cluster)))
    write_secret(places.source_file, settings.dataset.source)


def settings_without_credentials(settings: Settings) -> Record:
    """The settings as records and reports show them: without the user name and token of the source."""
    checked = settings.to_json()
    return checked | {"dataset": all_without_credentials(checked["dataset"])}


def load_settings(results: Path) -> Settings:
    """Settings of the latest run in a results folder; other users do not get the user name and token of the source.

    Raises
    ------
    SettingsError
        If no run has begun here, as with ``--no-hooks``, or the folder has been moved or copied since.
    StateError
        If the file is not as this version writes it.
    """
    file = results / "state" / "settings.json"
    if not file.exists():
        raise SettingsError(
            "no run has begun here",
            results,
            "name a results folder, or start snakemake (without --no-hooks)",
        )
    try:
        settings = Settings.from_json(read_json(file))
        made = results_folder(settings)
    except (AttributeError, LookupError, TypeError):
        raise StateError(file) from None
    if source := read_or_empty(results / "state" / "source").decode(errors="replace"):
        settings = replace(settings, dataset=replace(settings.dataset, source=source))
    if not made.exists() or not made.samefile(results):
        raise SettingsError(
            f"its last run was in {made}: this folder was moved or copied",
            results,
            "start a run here, or name that folder",
        )
    return settings


def results_folder(settings: Settings) -> Path:
    """Where the results of a run lie."""
    return tier_named(settings, settings.placement["results"]).path / settings.results


def load_dataset(places: Places) -> Dataset:
    """The dataset as it was when it was cloned."""
    dataset = Dataset(**read_json(places.dataset_facts))
    path = Path(dataset.path)
    # A clone may have moved with the results.
    return dataset._replace(path=path if dataset.kind == "folder" else places.datasets / path.name)


def clone_on(settings: Settings, places: Places, tier: str) -> Path:
    """Where the dataset is, or would be if a tier held the role ``dataset``; a plain folder is read in place."""
    dataset = load_dataset(places)
    if dataset.kind == "folder":
        return dataset.path
    return tier_named(settings, tier).folder("datasets") / dataset.path.name


def source_of(settings: Settings, places: Places) -> str:
    """The dataset's source; for the demonstration, the folder in which it was made."""
    source = settings.dataset.source
    return str(places.demo(settings.demo)) if source == "demo" else source


def ensure_clone(settings: Settings, places: Places, site: str, say: Say) -> Dataset:
    """The dataset with one site installed; it is cloned again if its tier has lost it (a tmpfs after a reboot).

    Raises
    ------
    SourceError
        If the site cannot be reached, or its source has changed since it was indexed; other sites do not matter.
    """
    dataset = load_dataset(places)
    if dataset.kind == "folder" or is_installed(dataset, site):
        return dataset
    wanted = replace(settings.dataset, sites=[site] if site else [])
    again = obtain(wanted, source_of(settings, places), places.datasets, say)
    if again.sites.get(site) != dataset.sites[site]:
        raise SourceError(
            "was lost from its tier, and the source has changed since it was indexed",
            f"dataset.source {dataset.source!r}",
            "start with --forcerun clone_dataset",
        )
    return dataset


def ensure_dataset(settings: Settings, places: Places, say: Say) -> Dataset:
    """The dataset with all sites that were installed; errors as :func:`ensure_clone`."""
    dataset = load_dataset(places)
    for site in dataset.sites:
        ensure_clone(settings, places, site, say)
    return dataset


def dataset_json(dataset: Dataset) -> Record:
    """Content of ``index/dataset.json``."""
    return dataset._asdict() | {"path": str(dataset.path)}


def read_failures(places: Places) -> list[Record]:
    """Failure records of participants that the index still selects."""
    found, selected = map(read_json, sorted(places.failures.rglob("*.json"))), selected_in(places)
    return [failure for failure in found if failure["participant"] in selected]


def note_killed(places: Places, run: str, jobs: Sequence[Record]) -> None:
    """Write a failure record for every participant that this run began and that left neither a result nor a reason.

    If a participant was killed with its cluster job, the job's state and log are added, even if it could give a reason;
    ``jobs`` are rows of ``jobs.tsv``.
    """
    started_s = read_json(places.runs / f"{run}.json")["started_s"]
    last = {name: job for job in jobs for name in (job["members"] or "").split()}
    for name in selected_in(places):
        log = places.log(name)
        if places.record(name).exists() or not log.exists() or log.stat().st_mtime < started_s:
            continue
        reason, exit_code = "the job was killed before it could say why", KilledError.exit_code
        if failure := read_json_or_empty(places.failure(name)):
            reason, exit_code = failure["reason"], failure["exit_code"]
            if failure["run"] != run or exit_code <= 128:
                continue
        if job := last.get(name):
            reason += f" (cluster job {job['job']}: {job['state'] or 'state unknown'}; its own log: {log})"
            for found in (places.logs / "slurm").rglob(f"*/{job['job']}.log"):  # the plugin puts it in some subfolder
                log = places.logs / "slurm" / found.name  # reports link to this path
                write_text(log, found.read_text(errors="replace"))
        keep_failure(places, name, "analyze_participant", reason, exit_code, log)


def forget_stopped(places: Places, run: str) -> int:
    """Remove failure records of participants that ended because this run was stopped: they did not fail. Returns how
    many."""
    stopped = [one for one in read_failures(places) if one["run"] == run and one["exit_code"] - 128 in SIGNALS]
    for one in stopped:
        places.failure(one["participant"]).unlink(missing_ok=True)
    return len(stopped)


def keep_failure(places: Places, participant: str, stage: str, reason: str, exit_code: int, log: Path) -> None:
    """Write a failure record for the report."""
    failure = {"participant": participant, "stage": stage, "reason": reason, "exit_code": exit_code}
    write_json(places.failure(participant), failure | {"run": current_run(), "log": str(log)})


def run_facts(places: Places, run: str = "") -> Record:
    """The facts that a run, by default this one, noted about itself; empty if there are none, as in a job started by
    hand."""
    try:
        return dict(read_json(places.runs / f"{run or current_run()}.json"))
    except FileNotFoundError:
        return {}


def add_facts(places: Places, run: str, /, **more: Any) -> None:
    """Add to the facts of a run, unless it has none."""
    if facts := run_facts(places, run):
        write_json(places.runs / f"{run}.json", facts | more)


def note_swapping(places: Places) -> None:
    """Note how many bytes the machine has swapped out since this run began: swapping makes timings invalid."""
    facts = run_facts(places)
    if facts.get("host") == socket.gethostname():
        add_facts(places, facts["run"], swap_out_bytes=psutil.swap_memory().sout - facts["swap_out_before_bytes"])


def begin_log(log: Path) -> None:
    """Begin a new log; in a Slurm job, its first line names the job and its node."""
    job, node = os.environ.get("SLURM_JOB_ID"), os.environ.get("SLURMD_NODENAME", socket.gethostname())
    write_text(log, f"Slurm job {job} on {node}\n" if job else "", durable=False)


class JobResult:
    """The result of a job: its exit code."""

    exit_code = 0


@contextmanager
def reporting(places: Places, participants: Sequence[str], stage: str, log: Path) -> Iterator[JobResult]:
    """Turn a failure into an exit code, a line on the terminal and in the log, and a record for each participant."""
    result = JobResult()
    try:
        yield result
    except (Exception, Interrupted) as raised:
        hidden = raised.__cause__  # Python 3.11 wraps exceptions raised while a class is created, as during imports
        error = hidden if isinstance(hidden, Interrupted) else raised
        own = own_error(error)
        result.exit_code = own.exit_code
        with suppress(OSError):  # the results tier may be full, and the output may go to a file there
            if not isinstance(error, Interrupted):  # the end of the run reports a stop
                say(f"neurotier: {first_of(participants) or stage}: {own}")
        with suppress(OSError):
            note_failure(log, error)
            for participant in participants:
                keep_failure(places, participant, stage, str(own), own.exit_code, log)


def own_error(error: BaseException) -> NeurotierError | Interrupted:
    """The error of this library that any other amounts to: one line, and an exit code.

    Where a user's memory or processes are limited (``ulimit``, a batch system's limits), nothing is killed for lack of
    them: Python raises one of several errors. Another attempt may be given more, as after a kill. Some packages give
    many lines of advice if one of their files cannot be read.

    >>> str(own_error(FileNotFoundError(2, "No such file or directory", "a.json"))), str(own_error(KeyError("x")))
    ('a.json: No such file or directory', "fault in neurotier: KeyError: 'x'")
    >>> str(own_error(OSError(28, "No space left on device", "a.tsv")))
    'a.tsv: No space left on device; free some space there, and start the same command again'
    >>> str(own_error(OSError(13, "Permission denied", "a.tsv")))
    'a.tsv: Permission denied; check that you may read and write there, and start the same command again'
    >>> error = own_error(MemoryError("Unable to allocate 105. MiB"))
    >>> error.exit_code, str(error).partition(";")[0]
    (137, 'no more memory, threads or processes: Unable to allocate 105. MiB')
    >>> str(own_error(RuntimeError("FT_Load_Glyph (ft2font.cpp line 646) failed with error 0x55"))).partition(": ")[2]
    'could not be read: FT_Load_Glyph (ft2font.cpp line 646) failed with error 0x55; start the same ...'
    >>> str(own_error(RuntimeError("failed to load glyph"))).partition(": ")[2].partition(";")[0]
    'could not be read: failed to load glyph'
    """
    text = str(error)
    if isinstance(error, (NeurotierError, Interrupted)):
        return error
    if isinstance(error, MemoryError) or re.search(NO_MORE, text):
        return KilledError(f"no more memory, threads or processes: {text}", fix=f"see the limits (ulimit -a){AGAIN}")
    if isinstance(error, OSError):
        return TierError(error.strerror or text, error.filename or "a file", ADVICE.get(error.errno or 0, ""))
    is_of_font = isinstance(error, RuntimeError) and text.startswith(("FT_", "failed to load "))
    if is_of_font or isinstance(error, ImportError):  # matplotlib raises other errors for a font that cannot be read
        while below := error.__cause__ or error.__context__:
            error = below
        return TierError(f"could not be read: {error}", sys.prefix, READ_AGAIN)
    return ToolError(f"fault in neurotier: {type(error).__name__}: {text}")


def note_failure(log: Path, error: BaseException) -> None:
    """Add an error to a job's log: its message and, if it is not one of ours, its traceback."""
    own = own_error(error)
    if own is not error:
        note(log, "".join(traceback.format_exception(error)))
    note(log, str(own))


def say(line: str, file: TextIO | None = None) -> None:
    """Print a line for the user, by default on the stream to which Snakemake reports its own progress.

    If the terminal is gone, or the disk of the log is full, the line is lost: that is no reason to lose work.
    """
    file = file or sys.stderr
    try:
        # in one write: with PYTHONUNBUFFERED, others could write before the line's end; print accepts a closed stream
        print(f"{line}\n", end="", file=file, flush=True)
    except OSError:  # otherwise writing the buffered text would fail again at exit, and so would the process
        with open(os.devnull, "w") as nothing:
            os.dup2(nothing.fileno(), file.fileno())
