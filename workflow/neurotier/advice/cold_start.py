"""The cold start: how long a participant job waits for its programs when nothing is in the page cache.

The calibration finds interpreter, libraries, tool and container image in the page cache; a cold run does not, where
root drops the whole cache. So one participant of the calibration is analysed once more, into a folder that goes, after
the cache was dropped as a campaign does it, and its images were read again: what it then waits for storage, before and
while it computes, it waits for programs, as does the job before it copies itself for the participant. The first jobs of
a run wait for the same pages at the same time, each as long; later jobs find them.
"""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from neurotier.advice.rehearsal import run_job, scratch_results
from neurotier.core.files import read_json
from neurotier.core.places import Places
from neurotier.core.settings import Settings
from neurotier.dataset.bids import Image
from neurotier.storage.page_cache import drop, read

PHASES = ("start_up", "container_start", "compute")
"""Phases that load programs; what staging reads are images, which the model knows."""


def measure_cold_start(
    settings: Settings, known: Places, name: str, images: Sequence[Image], files: Sequence[Path], log: Path
) -> dict[str, float]:
    """Analyse a participant from an empty page cache; each phase to what it waited for its programs, s.

    An ordinary user's cold run finds programs in the page cache, so there is nothing to load.

    Parameters
    ----------
    settings, known
        Of the run.
    name, images
        The participant.
    files
        The images' files, which are read into the page cache.
    log
        File that takes what the job prints.

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
