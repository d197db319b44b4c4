"""The job of a batch, and the results folder that it finds, made and started as Snakemake does, for the tests of it."""

from __future__ import annotations

import subprocess
import sys
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import psutil
from neurotier.core.files import write_json
from neurotier.core.places import Places
from neurotier.core.settings import ROLES, Settings
from neurotier.core.tables import write_table
from neurotier.core.tiers import find_mount
from neurotier.dataset.bids import read_image
from neurotier.dataset.index import Index
from neurotier.dataset.source import Dataset
from neurotier.run.jobs import dataset_json
from support import ENVIRONMENT, PATIENCE_S, ROOT, plain_dataset, small_head, t1w

RUN = "run-of-batches"


def job(results: Path, *names: str, at_once: int = 2, beside: int = 0, **environment: str) -> subprocess.Popen[str]:
    """The job of a batch, running."""
    words = ["analyze-participants", *names, "--results", str(results), "--batch", "0", "--analysis", "analysis"]
    words += ["--at-once", str(at_once), "--beside", str(beside), "--log", str(results / "batch.log")]
    return subprocess.Popen(
        [sys.executable, "-m", "neurotier", *words],
        env={**ENVIRONMENT, "PYTHONPATH": str(ROOT / "workflow"), "NEUROTIER_RUN": RUN, **environment},
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    )


def done_in(results: Path) -> list[str]:
    """Participants that have a record, in order of name."""
    return sorted(file.stem for file in (results / "profile" / "records").rglob("*.json"))


def name_of(process: psutil.Process) -> str:
    """Name of a process; empty if it is gone."""
    try:
        return str(process.name())
    except psutil.NoSuchProcess:
        return ""


def sleepers(process: subprocess.Popen[str], count: int) -> list[psutil.Process]:
    """The tools of participants under way, as soon as there are so many."""
    deadline = time.monotonic() + PATIENCE_S
    while True:
        children = psutil.Process(process.pid).children(recursive=True)
        tools = [child for child in children if name_of(child) == "sleep"]
        if len(tools) == count:
            return tools
        assert time.monotonic() < deadline
        time.sleep(0.02)


def sleeping(folder: Path, sleep_s: float, *labels: str) -> Path:
    """A results folder for participants whose tool sleeps."""
    return prepared_results(folder, labels, tool={"name": "noop", "noop": {"sleep_s": sleep_s}})


def prepared_results(folder: Path, labels: Sequence[str], others: int = 0, **sections: Any) -> Path:
    """A results folder as a run has it when its first participant job starts, made without Snakemake.

    Parameters
    ----------
    folder
        Where dataset and results are made.
    labels
        Participants with a small head each.
    others
        So many more are in the index, but not in the dataset.
    sections
        Sections of the configuration; the tool is ``noop`` unless they say otherwise.
    """
    dataset = plain_dataset(folder / "bids", {t1w(label): small_head(number) for number, label in enumerate(labels)})
    tiers = {"disk": {"path": str(folder), "kind": find_mount(folder).kind}}
    placement = dict.fromkeys(ROLES, "disk")
    settings = Settings.from_config({"tiers": tiers, "placement": placement, "tool": {"name": "noop"}, **sections})
    places = Places.from_settings(settings)
    write_json(places.settings_file, settings.to_json())
    write_json(places.index / "dataset.json", dataset_json(Dataset(str(dataset), dataset, "folder", {"": {}})))
    write_json(places.index / "tool.json", {"name": settings.tool.name, "version": "1"})
    size_bytes = {path: (dataset / path).stat().st_size for path in map(t1w, labels)}
    index = [
        read_image(path, "", size_bytes.get(path))
        for path in map(t1w, [*labels, *map("x{:07d}".format, range(others))])
    ]
    write_table(places.index / "images.tsv", "images", Index(index, []).rows())
    return places.results
