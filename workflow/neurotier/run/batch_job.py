"""The job of a batch: it analyses several participants, each in a process of its own, some at the same time.

Python and the libraries start once, and the process is copied for each participant. A participant alone has the process
itself. Who is done is passed over, so that a second attempt does what the first has left. The job succeeds when
everyone has a record, or a failure that would come again; it fails when another attempt may do better.
"""

from __future__ import annotations

import os
import signal
import sys
import time
from collections import deque
from collections.abc import Collection, Mapping, Sequence
from contextlib import nullcontext, suppress
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from neurotier.analysis.needs import threads_of
from neurotier.analysis.slots import Seat
from neurotier.analysis.staging import first_missing
from neurotier.core.errors import BusyError, KilledError, SourceError, StateError, may_pass
from neurotier.core.files import clear_log, read_json, write_json, write_text
from neurotier.core.places import Places
from neurotier.core.processes import RUN, current_run, end_forked, fork_process
from neurotier.core.settings import Settings
from neurotier.meter.measure import Interrupted
from neurotier.run import slurm
from neurotier.run.batches import Made, Wanted, key_of, wanted_by
from neurotier.run.jobs import begin_log, keep_failure, load_settings, note, placed_image, reporting, run_facts
from neurotier.run.journal import noting_job
from neurotier.run.participants import images_of, selected_by
from neurotier.run.shares import Granted
from neurotier.run.submitted import is_over
from neurotier.run.turns import LOOK_S, Arrivals, analysing, end_turn, take_turn, working

if TYPE_CHECKING:  # jobs start often: each imports what it uses, where it uses it
    from neurotier.containers.store import PlacedImage

STAGE = "analyze_participant"
"""What failures of participants name as the stage."""


@dataclass(frozen=True)
class Batch:
    """What the participants of a job share.

    Attributes
    ----------
    got
        What the job that fetched the images noted of each participant, and ``{"failed": code}`` of those it missed.
    waits
        Whether images are fetched while others are analysed, so that each participant waits for its own.
    prepared
        Times at which tool and container image were ready, s since 1970.
    seat
        Of each, in its copy of the process: whether it may copy or compute now.
    """

    settings: Settings
    places: Places
    dataset: Path
    wanted: Wanted
    placed: PlacedImage | None
    got: dict[str, Mapping[str, Any]]
    waits: bool
    prepared: Sequence[float]
    keep_going: bool
    granted: Granted
    seat: Seat


def analyze_participants(
    results: Path, names: Sequence[str], log: Path, number: str, analysis: str, granted: Granted
) -> int:
    """Analyse the participants of a batch; the exit code of the process.

    Parameters
    ----------
    results
        Results folder of the run.
    names
        The participants.
    log
        File that takes what is said of the batch; each participant has one of its own.
    number
        Number of the batch, whose marker is written at the end; empty for none.
    analysis
        See :attr:`neurotier.run.plan.Plan.analysis`.
    granted
        What the job has, and how many participants are analysed at the same time, with those who copy beside them.
    """
    settings = load_settings(results)
    places = Places.from_settings(settings)
    granted = granted.among(len(names))
    if not run_facts(places).get("elsewhere"):
        return analyze_batch(settings, places, names, log, number, analysis, granted)
    granted = granted._replace(elsewhere=True)
    if is_over(places):
        print("neurotier: another run has begun since this job was submitted; it does nothing", file=sys.stderr)
        return BusyError.exit_code
    threads = threads_of(settings)
    slots = granted.at_once
    with noting_job(places, number, names, slots, slots * threads) as note_end:
        exit_code = analyze_batch(settings, places, names, log, number, analysis, granted)
        note_end(exit_code)
    return exit_code


def analyze_batch(
    settings: Settings, places: Places, names: Sequence[str], log: Path, number: str, analysis: str, granted: Granted
) -> int:
    """Analyse the participants of a batch that are not done; see :func:`analyze_participants`."""
    clear_log(log)
    write_text(log, slurm.job_line(), durable=False)
    left = [name for name in names if not places.record(name).exists()]
    with reporting(places, left, STAGE, log) as result:
        granted = granted.with_files(settings, places, (images_of(places, name) for name in names))
        batch = prepare(settings, places, number, analysis, log, granted)
        codes = {name: failed_before(batch, name) for name in names}
        done = [name for name in names if is_done(batch, name)]
        for name in done:
            places.failure(name).unlink(missing_ok=True)
        codes |= dict.fromkeys(done, 0)
        for name in set(names).difference(done):  # were its images not to be had, an old result would pass for a new
            places.record(name).unlink(missing_ok=True)
        left[:] = [name for name in names if codes[name] is None]
        note(log, f"{len(left)} of {len(names)} to analyse: {' '.join(left)}")
    if result.exit_code:
        return result.exit_code
    with working(analysing(places), shared=True) if batch.waits else nullcontext():
        codes.update(analyze_all(batch, left, log, granted.present))
    failed = {name: code for name, code in codes.items() if code}
    again = [code for name, code in failed.items() if may_pass(code) and "failed" not in batch.got.get(name, {})]
    settles = number and batch.keep_going  # else nobody looks who has failed, and the exit code must say so
    exit_code = next(iter(again if settles else failed.values()), 0)
    if number and not exit_code:
        write_json(places.batch(number), {"participants": list(names), "failed": failed}, durable=False)
    return exit_code


def prepare(settings: Settings, places: Places, number: str, analysis: str, log: Path, granted: Granted) -> Batch:
    """Read what all participants share, and import what all will use."""
    facts = run_facts(places)
    got: dict[str, Mapping[str, Any]] = {}
    waits = bool(number) and not facts.get("elsewhere") and not places.got(number).exists()
    with suppress(FileNotFoundError, StateError):  # only times are lost
        got = read_json(places.got(number))["participants"] if number else {}
    dataset = read_json(places.index / "dataset.json")
    others = [places.index / name for name in ("tool.json", "image.json", "caches.json")]
    tool = read_json(places.index / "tool.json")["name"]
    return Batch(
        settings=settings,
        places=places,
        dataset=Path(dataset["path"]),
        wanted=wanted_by(places, analysis, tool, facts.get("anew", False), current_run()),
        placed=placed_image(settings, places, log),
        got=got,
        waits=waits and dataset["kind"] != "folder",
        prepared=[file.stat().st_mtime for file in others if file.exists()],
        keep_going=facts.get("keep_going", True),
        granted=granted,
        seat=Seat.of_job(granted.at_once, granted.beside),
    )


def failed_before(batch: Batch, name: str) -> int | None:
    """The exit code of a participant that has failed in this run, if to try again cannot help."""
    missed = batch.got.get(name, {}).get("failed")
    if missed is not None:
        return int(missed)
    code = failure_code(batch.places, name) if RUN in os.environ else None
    if code is None or may_pass(code):
        return None
    print(f"neurotier: {name}: failed in this run already, and is not tried again", file=sys.stderr, flush=True)
    return code


def is_done(batch: Batch, name: str) -> bool:
    """Whether a participant has the record that is wanted, and the derivatives that it lists."""
    try:
        record = read_json(batch.places.record(name))
        made = Made.by(record)
    except (FileNotFoundError, StateError):
        return False
    analysed = batch.places.analysed(name, bool(batch.settings.app.image))
    return (
        batch.wanted.is_met(made, images_of(batch.places, name))
        and analysed.is_dir()
        and not first_missing(record.get("derivatives", {}), analysed)
    )


def analyze_all(batch: Batch, names: Sequence[str], log: Path, present: int) -> dict[str, int]:
    """Analyse participants, so many at the same time; the exit code of each that was begun.

    Raises
    ------
    Interrupted
        If this process is told to end: so are those that it has begun.
    """
    if len(names) == 1 and not batch.waits:
        return {names[0]: analyze_participant(batch, names[0])}
    if not names:
        return {}
    load_libraries(batch)
    arrivals = Arrivals(batch.places, partial(fetch_in_a_copy, batch, log))
    waiting, expected, running, codes = deque(names), list[str](), dict[int, str](), dict[str, int]()
    try:
        while waiting or expected or running:
            while waiting and len(expected) + len(running) < present:
                expected.append(waiting.popleft())
                if batch.waits:
                    take_turn(batch.places, expected[-1])
            for name in list(expected):
                got = arrivals.look(name) if batch.waits else {}
                if got is None:
                    continue
                expected.remove(name)
                if got:
                    batch.got[name] = got
                if "failed" in got:
                    codes[name] = int(got["failed"])
                    note(log, f"{name}: exit code {codes[name]}: its images could not be fetched")
                    if failure_code(batch.places, name) is None:  # who was killed could not say so
                        reason = str(KilledError("the process that fetched its images was killed"))
                        keep_failure(batch.places, name, "get_images", reason, codes[name], log)
                else:
                    running[fork_process(partial(in_a_copy, batch, name))] = name
            ended, status = next_ended(expected, running)
            arrivals.has_ended(ended, status)
            if ended in running:
                name = running.pop(ended)
                codes[name] = code_of(batch, name, status)
                note(log, f"{name}: exit code {codes[name]}")
                if batch.waits:
                    end_turn(batch.places, name)
                if codes[name] == SourceError.exit_code:  # what was fetched is gone: another attempt fetches it again
                    batch.places.fetched(name).unlink(missing_ok=True)
            if any(codes.values()) and not batch.keep_going:
                waiting.clear()
                expected.clear()
    except Interrupted:
        end_forked({*running, *arrivals.fetching})
        raise
    return codes


def next_ended(expected: Collection[str], running: Collection[int]) -> tuple[int, int]:
    """The next process of this job that ends, and how; 0 if none does and there is somebody to look for meanwhile."""
    if not expected:
        ended, status = os.wait() if running else (0, 0)
    else:
        ended = status = 0
        with suppress(ChildProcessError):
            ended, status = os.waitpid(-1, os.WNOHANG)
        time.sleep(0 if ended else LOOK_S)
    return ended, os.waitstatus_to_exitcode(status)


def fetch_in_a_copy(batch: Batch, log: Path, name: str) -> int:
    """Start to fetch the images of a participant, for want of a job that does; the number of the process."""
    from neurotier.run.fetching import fetch_one

    note(log, f"{name}: nobody else fetches its images")
    return fork_process(partial(fetch_one, batch.settings, batch.places, name, log))


def load_libraries(batch: Batch) -> None:
    """Import and read what participants use, before they part."""
    import neurotier.analysis.participant  # noqa: F401

    selected_by(batch.places.index / "images.tsv")
    if not batch.settings.app.image:
        from neurotier.analysis.tools import make_tool

        make_tool(batch.settings.tool).load()


def in_a_copy(batch: Batch, name: str) -> int:
    """Analyse a participant in a copy of the process of its batch; the exit code."""
    from neurotier.run.stops import unwinding

    try:
        with unwinding():
            return analyze_participant(batch, name)
    except Interrupted as interrupted:
        return 128 + interrupted.signal_number


def code_of(batch: Batch, name: str, code: int) -> int:
    """The exit code of a participant, as a shell gives it; one that was killed could not write down why it failed."""
    if code >= 0:
        return code
    killed = 128 - code
    log = batch.places.log(name).absolute()
    if not may_pass(failure_code(batch.places, name) or killed):
        return killed
    reason = str(KilledError(f"the job was killed by {signal.Signals(-code).name} (out of memory?)"))
    with suppress(OSError):
        keep_failure(batch.places, name, STAGE, reason, killed, log)
    print(f"neurotier: {name}: {reason}", file=sys.stderr, flush=True)
    return killed


def failure_code(places: Places, name: str) -> int | None:
    """The exit code in the failure record that this run has written of a participant."""
    with suppress(FileNotFoundError, StateError, LookupError):
        failure = read_json(places.failure(name))
        return int(failure["exit_code"]) if failure["run"] == current_run() else None
    return None


def analyze_participant(batch: Batch, name: str) -> int:
    """Analyse one participant in this process; the exit code."""
    from neurotier.analysis.participant import Job, run_participant

    places, log = batch.places, batch.places.log(name).absolute()
    with reporting(places, [name], STAGE, log) as result:
        begin_log(places, name, log)
        places.record(name).unlink(missing_ok=True)  # if this fails, an earlier one must not pass for it
        images = images_of(places, name)
        job = Job(
            participant=name,
            run=current_run(),
            images=images,
            dataset=batch.dataset,
            settings=batch.settings,
            tool_version=batch.wanted.version or "",
            log=log,
            placed=batch.placed,
            before={"analysis": key_of(batch.wanted.analysis, images), **preparation(batch, name)},
            share=batch.granted.share(batch.settings) if batch.settings.app.image else None,
            seat=batch.seat,
        )
        run_participant(job)
    return result.exit_code


def preparation(batch: Batch, name: str) -> dict[str, Any]:
    """What it took to fetch a participant's images, and when that made it ready, if that was what it waited for last.

    Snakemake updates the times of files when their jobs end, so for other inputs only their order is known.
    """
    got = batch.got.get(name)
    waited = got is None or any(time_s > got["end_s"] for time_s in batch.prepared)
    return {"ready_s": None if got is None or waited else got["end_s"], "got": got and dict(got)}
