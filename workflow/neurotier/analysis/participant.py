"""The participant job: one process tree that analyses all images of one participant.

Its phases are measured separately: ``start_up`` is everything before the others, mainly the start of Python;
``stage_in`` copies the images from the dataset tier to a private folder on the work tier; ``container_start`` lasts
until a container is up; ``compute`` checks the images and runs the tool; ``stage_out`` copies the derivatives to the
results tier, where they appear by a single rename. A participant's derivatives are either complete or missing.
"""

from __future__ import annotations

import socket
import time
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from typing import TypeVar

from neurotier.analysis.activity import URI
from neurotier.analysis.app import app_name, call_app
from neurotier.analysis.brains import Analysed, Job, analyze_images, files_of
from neurotier.analysis.needs import work_bytes, work_files
from neurotier.analysis.staging import MARGIN_BYTES, check_room, naming_full_tier, publish, stage_in
from neurotier.core.files import Record, write_json
from neurotier.core.foreign import entries_below
from neurotier.core.places import Places
from neurotier.core.private import IN, OUT, remove_empty, work_folder
from neurotier.core.processes import current_run
from neurotier.core.tiers import Tier, tiers_of
from neurotier.dataset.bids import Image
from neurotier.meter.folders import FolderWatch
from neurotier.meter.function import measure_function
from neurotier.meter.lap import subtract_lap
from neurotier.meter.own import usage_since_birth
from neurotier.meter.residency import resident_share
from neurotier.meter.traffic import Flow, flow, growth
from neurotier.meter.usage import Usage

T = TypeVar("T")

STAGED_FACTOR, STAGED_MARGIN_BYTES = 2, 64_000_000
"""Limit of what is staged: this factor times the indexed sizes, and a margin for an app's files at the dataset's root.
A file that exceeds it is not the one that was indexed."""


def staged_limit_bytes(images: list[Image], tier: Tier) -> int:
    """Most that a participant's staged files may take, bytes."""
    sizes = [image.size_bytes for image in images if image.size_bytes is not None]
    if len(sizes) < len(images):  # sizes are not known
        return tier.free_bytes()
    return STAGED_MARGIN_BYTES + STAGED_FACTOR * sum(sizes)


def run_participant(job: Job) -> bool:
    """Analyse one participant: publish derivatives and record, or raise and publish nothing; returns whether an app was
    started again on the way.

    Raises
    ------
    NeurotierError
        With the reason and the image, tier or tool concerned.
    """
    settings = job.settings
    tiers = tiers_of(settings, in_job=True)
    places, work_tier = Places.from_settings(settings, tiers), tiers["work"]
    needed = work_bytes(job.images, settings), work_files(job.images, settings)
    check_room(work_tier, *needed)
    check_room(tiers["results"], MARGIN_BYTES)  # checked before hours of work that could not be kept
    phases, waited_s = [phase_row("start_up", usage_since_birth())], 0.0

    def turn(name: str) -> None:
        nonlocal waited_s
        began_s = time.monotonic()
        job.wait_for(name)
        waited_s += time.monotonic() - began_s

    with (
        naming_full_tier(work_tier, *needed),
        work_folder(places.work_of(job.participant), places.identity) as folder,
        naming_full_tier(work_tier, *needed),  # inside, too: removing the folder frees room
    ):
        files = files_of(job.images, job.dataset, settings)
        limit_bytes, links_to = staged_limit_bytes(job.images, work_tier), settings.dataset.links_to
        turn("stage_in")  # waiting for other participants is part of no phase
        staging = partial(stage_in, job.dataset, files, folder / IN, limit_bytes, links_to)
        copied, usage = run_phase("stage_in", staging, [job.dataset / path for path in files])
        phases.append(phase_row("stage_in", usage, copied[0], staging_flows(copied, tiers["dataset"], work_tier)))

        watch, copies = FolderWatch(folder), [folder / IN / path for path in files]
        turn("compute")
        analysed, usage = run_phase("compute", lambda: analyze(job, folder), copies, [watch])
        if start := analysed.container_start:
            subtract_lap(start, usage)
            phases.append(phase_row("container_start", start, traffic=[image_flow(tiers["images"], start)]))
        phases.append(phase_row("compute", usage, traffic=[growth(work_tier.name, watch, analysed.removal)]))

        made = folder / OUT
        if not settings.is_app:
            made /= f"sub-{job.images[0].label}"
        written = [made / entry.path for entry in entries_below(made) if entry.is_file]
        final = places.analysed(job.participant, settings.is_app)
        turn("stage_out")  # held until the record is written: its flush may wait for others' writes
        made_bytes = sum(path.stat().st_size for path in written)
        with naming_full_tier(tiers["results"], made_bytes, len(written)):
            publishing = partial(publish, made, final, settings.results_dataset)
            (copied, kept), usage = run_phase("stage_out", publishing, written)
        phases.append(phase_row("stage_out", usage, copied[0], staging_flows(copied, work_tier, tiers["results"])))
    if settings.tiers[work_tier.name].node:
        remove_empty(places.work)  # the end of the run cannot reach a tier of this node
    caches = {cache.name: f"sha256:{cache.sha256}" for cache in job.placed.caches.values()} if job.placed else {}
    record = {
        "participant": job.participant,
        "run": current_run(),
        "host": socket.gethostname(),
        "tool": app_name(settings),
        "tool_version": job.tool_version,
        "container": job.placed and f"sha256:{job.placed.sha256}",
        "work_tier": work_tier.name,
        "work_path": str(work_tier.path),
        **job.before,
        "slot_wait_s": waited_s,
        "phases": phases,
        "images": analysed.rows,
        **({"calls": analysed.calls, "caches": caches} if analysed.calls else {}),
        "derivatives": kept,
    }
    with naming_full_tier(tiers["results"], made_bytes):
        write_json(places.record(job.participant), record)
    return any(call["attempts"] > 1 for call in analysed.calls)


def analyze(job: Job, folder: Path) -> Analysed:
    """The compute phase, with the start of the container."""
    if job.settings.is_app and job.placed:
        return call_app(job, folder, job.placed)
    return analyze_images(job, folder, f"{URI}{job.activity}" if job.settings.results_dataset else "")


def run_phase(
    name: str, function: Callable[[], T], reads: Sequence[Path], watches: Sequence[FolderWatch] = ()
) -> tuple[T, Usage]:
    """Run and measure one phase that reads some files, while folders are watched; returns its value and its cost."""
    resident_before = resident_share(reads)
    value, usage = measure_function(function, watches=watches, where=f"phase {name}")
    usage.input_bytes = sum(path.stat().st_size for path in reads)
    usage.input_resident_before, usage.input_resident_after = resident_before, resident_share(reads)
    return value, usage


def phase_row(name: str, usage: Usage, staged_bytes: int | None = None, traffic: Sequence[Flow] = ()) -> Record:
    """A phase's row in a record."""
    return {"phase": name, **usage.record(), "staged_bytes": staged_bytes, "traffic": list(traffic)}


def staging_flows(copied: tuple[int, int], source: Tier, target: Tier) -> list[Flow]:
    """The traffic of copying this many bytes and files from one tier to another."""
    return [flow(source.name, "staging", read=copied), flow(target.name, "staging", written=copied)]


def image_flow(tier: Tier, start: Usage) -> Flow:
    """Bytes that starting a container read from the images tier: those of the image that entered the page cache."""
    before, after = start.input_resident_before, start.input_resident_after
    if before is None or after is None or start.input_bytes is None:
        return flow(tier.name, "page_cache")
    return flow(tier.name, "page_cache", read=(max(0, round((after - before) * start.input_bytes)), 1))
