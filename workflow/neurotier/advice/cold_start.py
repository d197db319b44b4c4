"""The cold start: how long a participant job waits for its programs when nothing is in the page cache.

The calibration finds interpreter, libraries, tool and container image in the page cache; a cold run does not, where
root drops the whole cache. So one participant of the calibration is analysed once more, into a folder that goes, after
the cache was dropped as a campaign does it, and its images were read again: what it then waits for storage, before and
while it computes, it waits for programs. The first jobs of a run wait for the same pages at the same time, each as
long; later jobs find them.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from neurotier.advice.calibration import size_of
from neurotier.advice.situation import Situation
from neurotier.core.errors import ToolError
from neurotier.core.files import partial_of, read_json, write_bytes, write_json
from neurotier.core.places import Places
from neurotier.core.processes import start_process
from neurotier.core.work_folders import remove_leftovers
from neurotier.dataset.contents import is_present
from neurotier.run.jobs import load_dataset
from neurotier.run.participants import prepared
from neurotier.storage.page_cache import drop, read

PHASES = ("start_up", "container_start", "compute")
"""Phases that load programs; what staging reads are images, which the model knows."""

COPIED = ("dataset.json", "tool.json", "image.json")
"""What a participant job reads of the index, besides what is prepared for it."""


def measure_cold_start(situation: Situation, chosen: Sequence[str], log: Path) -> dict[str, Any]:
    """Analyse the smallest participant of the calibration from an empty page cache.

    Parameters
    ----------
    chosen
        Participants of the calibration; none if the records of another results folder serve as one.
    log
        File that takes what the job prints.

    Returns
    -------
    dict
        ``load_s``: phase to what it waited for its programs, s; ``why``: why that is not known, else empty. An ordinary
        user's cold run finds programs in the page cache, so there is nothing to load.

    Raises
    ------
    ToolError
        If the job fails.
    """
    if not chosen:
        return {"load_s": {}, "why": "its calibration is that of another results folder"}
    name = min(chosen, key=lambda one: size_of(situation.participants[one]))
    known, images = situation.places, situation.participants[name]
    dataset, links_to = load_dataset(known), situation.settings.dataset.links_to
    if not all(is_present(dataset.path, image.path, links_to) for image in images):
        return {"load_s": {}, "why": f"images of {name} are not here any more"}
    folder = partial_of(known.advice / "cold_start")
    own = replace(situation.settings, results=f"{situation.settings.results}/{folder.relative_to(known.results)}")
    places = Places.from_settings(own)
    try:
        write_json(places.settings_file, own.to_json())
        for file in COPIED:
            if (known.index / file).exists():
                write_json(places.index / file, read_json(known.index / file))
        write_bytes(places.prepared(name), prepared(name, images))
        os.sync()  # dirty pages cannot be dropped
        if not drop():
            return {"load_s": {}, "why": ""}
        read([dataset.path / image.path for image in images])
        words = ["analyze-participants", name, "--results", str(places.results), "--log", str(log)]
        job = start_process([sys.executable, "-m", "neurotier", *words], stdin=subprocess.DEVNULL)
        if job.wait() != 0:
            raise ToolError("could not be analysed from an empty page cache", where=name, fix=f"see {log}")
        return {"load_s": loading_s(read_json(places.record(name))["phases"]), "why": ""}
    finally:
        remove_leftovers(places.work, places.identity)
        shutil.rmtree(places.results, ignore_errors=True)


def loading_s(phases: Sequence[Mapping[str, Any]]) -> dict[str, float]:
    """What each phase waited for storage, s; where the kernel does not account that, all its time without a core.

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
