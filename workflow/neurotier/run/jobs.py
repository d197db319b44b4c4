"""Jobs: the commands of the shell rules, which read their inputs from the results folder and record their failures.

A failed job prints one line on the terminal and leaves a failure record for the report. A ``NeurotierError`` gives the
reason; any other exception is a bug in neurotier, whose traceback goes to the job's log.
"""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import asdict, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from neurotier.core.errors import (
    KilledError,
    NeurotierError,
    SettingsError,
    SourceError,
    StateError,
    TierError,
    may_pass,
    one_line,
)
from neurotier.core.files import clear_log, read_json, write_json, write_text
from neurotier.core.places import Places
from neurotier.core.processes import RUN, current_run
from neurotier.core.settings import Settings
from neurotier.meter.measure import Interrupted
from neurotier.meter.own import times_so_far
from neurotier.run import slurm
from neurotier.run.participants import images_of, participants

if TYPE_CHECKING:  # thousands of jobs start: each imports what it uses, where it uses it
    from neurotier.containers.store import PlacedImage, Store
    from neurotier.dataset.source import Dataset
    from neurotier.run.profile_tables import Record

READ_AGAIN = "start the same command again, or make this Python environment anew"


def load_settings(results: Path) -> Settings:
    """Settings of the run that works on a results folder.

    Raises
    ------
    SettingsError
        If no run has begun here, as with ``--no-hooks``.
    """
    if not (results / "state" / "settings.json").exists():
        raise SettingsError("no run has begun here", where=str(results), fix="start snakemake without --no-hooks")
    return Settings.from_json(read_json(results / "state" / "settings.json"))


def load_dataset(places: Places) -> Dataset:
    """The dataset that was cloned."""
    from neurotier.dataset.source import Dataset

    data = read_json(places.index / "dataset.json")
    return Dataset(data["source"], Path(data["path"]), data["kind"], data["sites"], data.get("unreachable", {}))


def source_of(settings: Settings, places: Places) -> str:
    """The dataset's source; for the demonstration, the folder that it was made in."""
    source = settings.dataset.source
    return str(places.demo(settings.demo)) if source == "demo" else source


def ensure_clone(settings: Settings, places: Places, site: str, say: Callable[[str], None]) -> Dataset:
    """The dataset with one site installed, cloned again if its tier has lost it (a tmpfs after a reboot).

    Raises
    ------
    SourceError
        If the site cannot be reached, or has changed since it was indexed; other sites do not matter.
    """
    from neurotier.dataset.sites import is_installed
    from neurotier.dataset.source import obtain

    dataset = load_dataset(places)
    if dataset.kind == "folder" or is_installed(dataset.path, site):
        return dataset
    wanted = replace(settings.dataset, sites=[site] if site else [])
    again = obtain(wanted, source_of(settings, places), places.datasets, say)
    if again.sites.get(site) != dataset.sites[site]:
        raise SourceError(
            "was lost from its tier, and the source has changed since it was indexed",
            where=f"dataset.source {dataset.source!r}",
            fix="start with --forcerun clone_dataset",
        )
    return dataset


def dataset_json(dataset: Dataset) -> dict[str, Any]:
    """Content of ``index/dataset.json``."""
    return asdict(dataset) | {"path": str(dataset.path)}


def read_failures(places: Places) -> list[Record]:
    """Failure records of the participants that the index still selects, in order of name."""
    selected = set(participants(places))
    failures = [read_json(file) for file in sorted(places.failures.rglob("*.json"))]
    return [failure for failure in failures if failure["participant"] in selected]


def note_killed(places: Places, run: str) -> None:
    """Write a failure record for every job of this run that began a log but left neither result nor reason.

    Failures of jobs that were killed under Slurm get Slurm's state of the job and its log, whether or not the job could
    give a reason.
    """
    started_s = read_json(places.runs / f"{run}.json")["started_s"]
    for name in participants(places):
        log = places.logs / "analyze_participant" / f"{name}.log"
        if places.record(name).exists() or not log.exists() or log.stat().st_mtime < started_s:
            continue
        reason, exit_code = "the job was killed before it could say why", KilledError.exit_code
        if places.failure(name).exists():
            failure = read_json(places.failure(name))
            reason, exit_code = failure["reason"], failure["exit_code"]
            if failure["run"] != run or exit_code <= 128:
                continue
        job = slurm.job_of(log)
        if job is not None:
            reason += f" (Slurm job {job}: {slurm.state_of(job) or 'state unknown'}; its own log: {log})"
            log = slurm.keep_log(job, places.logs) or log
        keep_failure(places, name, "analyze_participant", reason, exit_code, log)


def keep_failure(places: Places, participant: str, stage: str, reason: str, exit_code: int, log: Path) -> None:
    """Write a failure record for the report."""
    failure = {"participant": participant, "stage": stage, "reason": reason, "exit_code": exit_code}
    write_json(places.failure(participant), failure | {"run": current_run(), "log": str(log)})


def final_failure(places: Places, participant: str) -> Record | None:
    """The failure of a participant in this run if a retry cannot help; ``None`` if there is no such failure."""
    if RUN not in os.environ or not places.failure(participant).exists():
        return None
    failure: Record = read_json(places.failure(participant))
    return failure if failure["run"] == current_run() and not may_pass(failure["exit_code"]) else None


def is_done(places: Places, participant: str) -> bool:
    """Whether this run has analysed a participant."""
    record = places.record(participant)
    return RUN in os.environ and record.exists() and bool(read_json(record)["run"] == current_run())


def analyze_participant(results: Path, participant: str, log: Path) -> int:
    """Run one participant job; the exit code of the process."""
    from neurotier.analysis.participant import Job, run_participant

    settings = load_settings(results)
    places = Places.from_settings(settings)
    failed = final_failure(places, participant)
    if failed is not None:
        print(f"neurotier: {participant}: failed in this run already, and is not tried again", file=sys.stderr)
        clear_log(log)
        write_text(log, f"{slurm.job_line()}{failed['reason']}\n", durable=False)
        return int(failed["exit_code"])
    with reporting(places, participant, "analyze_participant", log) as result:
        begin_log(places, participant, log)
        job = Job(
            participant=participant,
            run=current_run(),
            images=images_of(places, participant),
            dataset=Path(read_json(places.index / "dataset.json")["path"]),
            settings=settings,
            tool_version=read_json(places.index / "tool.json")["version"],
            log=log,
            placed=placed_image(settings, places, log),
            before=preparation_of(places, participant),
        )
        run_participant(job)
    return result.exit_code


def preparation_of(places: Places, participant: str) -> Record:
    """What the job that fetched the images took, and when its end made this job ready, if that was the last input.

    Snakemake updates the times of files when their jobs end, so for other inputs only their order is known.
    """
    marker = places.got(participant)
    got = None
    with suppress(FileNotFoundError, StateError):  # only times are lost
        got = read_json(marker)
    others = [file for file in (places.index / "tool.json", places.index / "image.json") if file.exists()]
    waited = got is None or any(file.stat().st_mtime > got["end_s"] for file in others)
    return {"ready_s": None if got is None or waited else got["end_s"], "got": got}


def image_store(settings: Settings, places: Places, log: Path, say: Callable[[str], None]) -> Store:
    """The store that keeps and places container images.

    Raises
    ------
    ContainerError
        If there is no container engine.
    """
    from neurotier.containers.engine import find_engine
    from neurotier.containers.store import Store, can_unpack
    from neurotier.core.kinds import KINDS
    from neurotier.core.private import make_private
    from neurotier.core.tiers import tiers_of

    form = settings.containers.form
    if form == "auto":  # measured: tests/benchmarks/containers.py
        form = "sif" if KINDS[tiers_of(settings)["images"].kind].remote or not can_unpack() else "sandbox"
    for folder in (places.image_store.absolute(), places.images.absolute()):
        make_private(folder)
    return Store(
        kept=places.image_store.absolute(),
        images=places.images.absolute(),
        verified=places.verified.absolute(),
        run=current_run(),
        engine=find_engine(),
        settings=replace(settings.containers, form=form),
        log=log.absolute(),
        say=say,
    )


def placed_image(settings: Settings, places: Places, log: Path) -> PlacedImage | None:
    """The container image in use, placed again if its tier has lost it; ``None`` on the host."""
    if settings.image is None:
        return None
    from neurotier.containers.store import ContainerImage, PlacedImage

    store = image_store(settings, places, log, lambda line: note(log, line))
    image = ContainerImage(**read_json(places.index / "image.json"), form=store.settings.form)
    return PlacedImage(store.engine, store.place(image), image.cache(store.kept), image.sha256)


def prepare_tool(settings: Settings, places: Places, log: Path) -> dict[str, Any]:
    """Check that the tool or app is there, and prepare it for all participants.

    Returns
    -------
    dict
        Content of ``index/tool.json``: name, version and, in a container, the image's digest.

    Raises
    ------
    ToolError, ContainerError
        If it is missing or cannot be run.
    """
    from neurotier.analysis.tools import make_tool

    placed = placed_image(settings, places, log)
    if placed is None:
        tool = make_tool(settings.tool)
        version = tool.version()
        tool.warm_up()
        return {"name": tool.name, "version": version}
    from neurotier.analysis.app import app_name
    from neurotier.analysis.in_container import prepare_in_container, read_labels
    from neurotier.containers.run import Container
    from neurotier.core.private import remove_empty
    from neurotier.core.work_folders import SCRATCH, work_folder

    try:
        with work_folder(places.preparing, places.identity) as folder:
            container = Container(placed.engine, placed.path, settings.containers, folder / SCRATCH)
            if settings.app.image:
                return {"name": app_name(settings), "version": read_labels(container, log), "image": placed.sha256}
            tool = make_tool(settings.tool)
            version = prepare_in_container(tool, container, placed.cache, log)
            return {"name": tool.name, "version": version, "image": placed.sha256}
    finally:
        remove_empty(places.preparing)


def get_participant_images(results: Path, participant: str, marker: Path, log: Path) -> int:
    """Get one participant's images to the dataset tier; the exit code of the process."""
    from neurotier.analysis.app import root_files
    from neurotier.dataset.attempts import naming_commands
    from neurotier.dataset.contents import get_images

    settings = load_settings(results)
    places = Places.from_settings(settings)
    with reporting(places, participant, "get_images", log) as result:
        begin_log(places, participant, log)
        images = images_of(places, participant)
        paths = [image.path for image in images]
        site = images[0].site
        with naming_commands():
            dataset = ensure_clone(settings, places, site, lambda line: note(log, line))
            if settings.app.image:
                paths += [str(Path(site, name)) for name in root_files(dataset.path / site)]
            fetched = get_images(dataset.path, paths, settings.dataset, lambda line: note(log, line))
        facts = {"end_s": time.time(), "files": len(paths), "fetched_files": fetched}
        write_json(marker, times_so_far() | facts)
    return result.exit_code


def drop_participant_images(results: Path, participant: str, marker: Path, log: Path) -> int:
    """Drop one participant's images from the dataset tier; the exit code of the process.

    Images that git-annex does not drop cost nothing but space; that is reported, and is no failure.
    """
    from neurotier.dataset.contents import drop_images

    settings = load_settings(results)
    places = Places.from_settings(settings)
    kept = drop_images(load_dataset(places).path, [image.path for image in images_of(places, participant)])
    said = f"kept: {kept}\n" if kept else "dropped\n"
    clear_log(log)
    write_text(log, said, durable=False)
    if kept:
        print(f"neurotier: {participant}: images stay on the dataset tier: {kept}", file=sys.stderr, flush=True)
    write_text(marker, said)
    return 0


def begin_log(places: Places, participant: str, log: Path) -> None:
    """Remove the failure record of an earlier attempt, and begin a new log."""
    places.failure(participant).unlink(missing_ok=True)
    clear_log(log)
    write_text(log, slurm.job_line(), durable=False)


class JobResult:
    """The result of a job: its exit code."""

    exit_code = 0


@contextmanager
def reporting(places: Places, participant: str, stage: str, log: Path) -> Iterator[JobResult]:
    """Turn a failure into an exit code, a record for the report, and a line on the terminal and in the log."""
    result = JobResult()
    reason = ""
    try:
        yield result
    except NeurotierError as error:
        result.exit_code, reason = error.exit_code, str(error)
    except Interrupted as stop:
        result.exit_code, reason = 128 + stop.signal_number, str(stop)
    except OSError as error:
        result.exit_code, reason = TierError.exit_code, f"{error.filename or 'a file'}: {error.strerror}"
    except ImportError as error:  # packages turn an unreadable file of theirs into advice of many lines
        result.exit_code = TierError.exit_code
        reason = str(TierError(f"could not be read: {root_cause(error)}", where=sys.prefix, fix=READ_AGAIN))
        note_trace(log)
    except Exception as error:
        result.exit_code, reason = 70, one_line(f"fault in neurotier: {type(error).__name__}: {error}")
        note_trace(log)
    if result.exit_code:
        with suppress(OSError):  # the results tier may be full, and the output go to a file on it
            print(f"neurotier: {participant}: {reason}", file=sys.stderr, flush=True)
        with suppress(OSError):
            note(log, reason)
            keep_failure(places, participant, stage, reason, result.exit_code, log)


def note_trace(log: Path) -> None:
    """Add the exception that is being handled to a job's log."""
    import traceback

    note(log, traceback.format_exc())


def root_cause(error: BaseException) -> str:
    """What an exception goes back to, in one line.

    >>> root_cause(ImportError("no array library"))
    'no array library'
    """
    while error.__cause__ or error.__context__:
        error = error.__cause__ or error.__context__ or error
    return one_line(str(error))


def note(log: Path, line: str) -> None:
    """Add a line to a job's log."""
    with log.open("a") as file:
        file.write(line.rstrip() + "\n")
