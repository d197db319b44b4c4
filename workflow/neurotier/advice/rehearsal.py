"""The rehearsal: participants of the calibration are analysed once more, with nothing else running; no results are
kept.

In the calibration, Snakemake is busy at the same time. If participants are short, they are analysed once more in one
job, as many at once as there are processors: this shows what each takes in a fork of the job's process. If other
processes disturb that, it is tried again.

The calibration finds the interpreter, libraries, tool and container image in the page cache; a cold run does not if
root drops the whole cache. So one of the participants is analysed with an empty page cache, dropped as in a campaign,
after its images have been read again: the participant's waits for storage, before and while it computes, are then waits
for programs, and so are the job's waits before it forks. The first jobs of a run wait for the same pages at the same
time, each as long; later jobs find them cached.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

from neurotier.advice.calibration import ObservedJob, observe
from neurotier.analysis.needs import threads_of
from neurotier.core.control_groups import usable_cores
from neurotier.core.errors import ToolError
from neurotier.core.files import Record, partial_of, read_json, write_json
from neurotier.core.places import Places
from neurotier.core.private import remove_leftovers
from neurotier.core.processes import start_process
from neurotier.core.settings import Settings
from neurotier.core.tables import write_table
from neurotier.dataset.bids import Image
from neurotier.dataset.index import Index
from neurotier.meter.exits import delays_accounted, record_of
from neurotier.meter.others import SHORTEST_S, others_share, read_processors
from neurotier.run.images import placed_image
from neurotier.run.jobs import load_settings, save_settings
from neurotier.run.participants import Selected
from neurotier.storage.page_cache import drop, read

TRIES = 3
"""How often it is tried at most if other processes disturb it."""

LONGEST_S = 60.0
"""If the calibration's participants took longer than this together, s, they are not analysed once more in a shared
job."""

COPIED = ("dataset.json", "tool.json", "image.json", "caches.json")
"""Files of the index that a participant job reads, in addition to the table of images, which is made for it."""

PHASES = ("start_up", "container_start", "compute")
"""Phases that load programs; what staging reads are images, which the model accounts for."""


def read_rehearsed(found: Record, selected: Selected, threads: int) -> list[ObservedJob]:
    """The participants of the job that :func:`rehearse_shared` ran; none if there was no such job.

    Parameters
    ----------
    found
        The record of the rehearsal.
    selected
        Participants with their images.
    threads
        Threads of each participant.
    """
    job = found.get("shared") or {"records": []}
    return [observe(record, selected[record["participant"]], threads) for record in job["records"]]


def rehearse_shared(settings: Settings, known: Places, participants: Selected, log: Path) -> Record:
    """Analyse participants in one job, as many at once as there are processors; repeat it if others disturb it.

    Parameters
    ----------
    settings, known
        Of the run.
    participants
        The participants to analyse, with their images.
    log
        File for what the job prints.

    Returns
    -------
    dict
        ``records`` of the participants, and ``others_cpu_share``, the share of the processors that other processes took
        meanwhile, or ``None``. Of several tries, that which was disturbed least.

    Raises
    ------
    ToolError
        If the job fails.
    """
    tries, processors = list[Record](), len(os.sched_getaffinity(0))
    for _ in range(TRIES):
        with scratch_results(settings, known, participants, log) as places:
            before = read_processors(os.getpid())
            run_job(places, list(participants), log)
            time.sleep(max(0.0, before.time_s + SHORTEST_S - time.time()))
            after = read_processors(os.getpid())
            records = [read_json(places.record(name)) for name in participants]
        share = others_share([before, after], before.time_s, after.time_s, processors)
        known_share = share if isinstance(share, float) else None
        tries.append({"records": records, "others_cpu_share": known_share})
        if (known_share or 0.0) <= settings.validity.others_cpu_share:
            return tries[-1]
    return min(tries, key=lambda one: one["others_cpu_share"])


@contextmanager
def scratch_results(settings: Settings, known: Places, participants: Selected, log: Path) -> Iterator[Places]:
    """Make a results folder with all that the jobs of some participants read; it is removed afterwards.

    The container image is verified for these results first, as in a run before its participant jobs.
    """
    folder = partial_of(known.advice / "rehearsal")
    own = replace(settings, results=f"{settings.results}/{folder.relative_to(known.results)}")
    places = Places.from_settings(own)
    try:
        save_settings(own, places)
        for file in COPIED:
            if (known.index / file).exists():
                write_json(places.index / file, read_json(known.index / file))
        index = Index([image for images in participants.values() for image in images], {})
        write_table(places.images_table, "images", index.rows())
        placed_image(own, places, log)
        yield places
    finally:
        remove_leftovers(places.work, places.identity)
        shutil.rmtree(places.results, ignore_errors=True)


def run_job(places: Places, names: Sequence[str], log: Path) -> float:
    """Run one job that analyses some participants, as many at once as there are processors, as Snakemake would run it.

    Returns
    -------
    float
        How long the job's own process, without its forks for participants, waited for storage, s; 0 if the kernel does
        not account for it.

    Raises
    ------
    ToolError
        If the job fails.
    """
    threads = threads_of(load_settings(places.results))
    cores = threads * min(len(names), max(1, round(usable_cores()) // threads))
    words = ["analyze-participants", "--only", *names, "--threads", str(cores)]
    words += ["--results", str(places.results), "--log", str(log)]
    job = start_process([sys.executable, "-m", "neurotier", *words], stdin=subprocess.DEVNULL)
    os.waitid(os.P_PID, job.pid, os.WEXITED | os.WNOWAIT)
    record = record_of(job.pid) if delays_accounted() else None
    if job.wait() != 0:
        raise ToolError("could not be analysed once more", " ".join(names), f"see {log}")
    return record.block_io_ns / 1e9 if record else 0.0


def measure_cold_start(
    settings: Settings, known: Places, name: str, images: list[Image], files: Sequence[Path], log: Path
) -> dict[str, float]:
    """Analyse a participant with an empty page cache; returns how long each phase waited for its programs, s.

    The result is empty for an ordinary user, whose cold runs find programs in the page cache.

    Parameters
    ----------
    settings, known
        Of the run.
    name, images
        The participant.
    files
        The files of the images, which are read into the page cache first.
    log
        File for what the job prints.

    Raises
    ------
    ToolError
        If the job fails.
    """
    with scratch_results(settings, known, {name: images}, log) as places:
        os.sync()  # dirty pages cannot be dropped
        if not drop():
            return {}
        read(files)
        launch_s = run_job(places, [name], log)
        waited_s = loading_s(read_json(places.record(name))["phases"])
    return waited_s | {"start_up": launch_s + waited_s["start_up"]}


def loading_s(phases: Sequence[Record]) -> dict[str, float]:
    """How long each phase waited for storage, s; if the kernel does not account for that, all of its time off a core.

    >>> usage = {"wall_s": 3.0, "cpu_s": 1.0, "run_queue_s": 0.5}
    >>> phases = [("start_up", 0.25), ("stage_in", 9.0), ("compute", None)]
    >>> loading_s([{"phase": name, "account_block_io_s": waited, **usage} for name, waited in phases])
    {'start_up': 0.25, 'compute': 1.5}
    """
    waited = {}
    for row in phases:
        if row["phase"] in PHASES:
            off_s = max(0.0, row["wall_s"] - row["cpu_s"] - (row["run_queue_s"] or 0.0))
            waited[row["phase"]] = off_s if row["account_block_io_s"] is None else row["account_block_io_s"]
    return waited
