"""The job of a share and its results folder, made and started as Snakemake does, for tests."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

import psutil
import yaml
from configured import settings_at
from neurotier.core.files import write_json
from neurotier.core.places import Places
from neurotier.core.tables import write_table
from neurotier.dataset.bids import Image, read_image
from neurotier.dataset.index import Index
from neurotier.dataset.source import Dataset
from neurotier.run.jobs import dataset_json
from support import (
    ENVIRONMENT,
    JOB_ENVIRONMENT,
    PATIENCE_S,
    ROOT,
    plain_dataset,
    small_head,
    t1w,
    wait_for,
    words_of,
)

RUN = "run-of-a-pool"


def job(
    results: Path, command: str = "analyze-participants", share: str = "1-of-1", **how: Any
) -> subprocess.Popen[str]:
    """The job of a share, running; ``before`` are words before its command, words in capitals its environment."""
    folder = {"analyze-participants": "shares", "fetch-images": "got", "drop-images": "dropped"}[command]
    given = {"log": results / "pool.log", "marker": results / "state" / folder / share, "share": share, **how}
    before, environment = given.pop("before", []), {key: given.pop(key) for key in how if key.isupper()}
    if command == "analyze-participants":
        given = {"analysis": "analysis", "threads": 2, **given}
    words = [f"--{key.replace('_', '-')}={value}" for key, value in given.items()]
    return subprocess.Popen(
        [*before, sys.executable, "-m", "neurotier", command, f"--results={results}", *words],
        env={**JOB_ENVIRONMENT, "NEUROTIER_RUN": RUN, **environment},
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    )


def analysed(results: Path, label: str, path: str = "") -> subprocess.CompletedProcess[str]:
    """The finished job of one participant; some folders come first on its path."""
    words = ["analyze-participants", f"--only=sub-{label}", f"--results={results}", f"--log={results}/analysis.log"]
    paths = os.pathsep.join(filter(None, [path, ENVIRONMENT["PATH"]]))
    environment = {**JOB_ENVIRONMENT, "PATH": paths}
    return subprocess.run([sys.executable, "-m", "neurotier", *words], env=environment, capture_output=True, text=True)


def said_by(process: subprocess.Popen[str], code: int = 0) -> str:
    """The output of a job that ends with an exit code."""
    output, _ = process.communicate(timeout=2 * PATIENCE_S)
    assert process.returncode == code, output
    return output


def done_in(results: Path) -> list[str]:
    """Participants that have a record, in order of name."""
    return sorted(file.stem for file in (results / "profile/records").rglob("*.json"))


def sleepers(process: subprocess.Popen[str], count: int) -> list[psutil.Process]:
    """The tools of running participants, as soon as there are ``count`` of them."""

    def tools() -> list[psutil.Process]:
        children = psutil.Process(process.pid).children(recursive=True)
        return [child for child in children if words_of(child)[:1] == ["sleep"]]

    return wait_for(lambda: found if len(found := tools()) == count else None, process)


def sleeping(folder: Path, sleep_s: float, *labels: str, **sections: Any) -> Path:
    """A results folder for participants whose tool sleeps."""
    return prepared_results(folder, labels, tool={"name": "noop", "noop": {"sleep_s": sleep_s}}, **sections)


def image(label: str, size_bytes: int | None = 1, content: str = "key") -> Image:
    """The image of a participant, as an index has it."""
    return read_image(t1w(label), "")._replace(size_bytes=size_bytes, content=content)


def write_index(places: Places, images: Iterable[Image]) -> None:
    """Have a results folder select these images."""
    write_table(places.index / "images.tsv", "images", Index([*images], {}).rows())


def rehearsal_of(**figures: Any) -> str:
    """The description of a rehearsal, as text, with some figures replaced."""
    data = yaml.safe_load((ROOT / "workflow/neurotier/analysis/rehearsal/profiles/noop.yaml").read_text())
    for name, value in figures.items():
        data["figures"][name] = {"value": value, "source": "test"}
    return yaml.safe_dump(data)


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
    settings = settings_at(folder, **{"tool": {"name": "noop"}, **sections})
    places = Places.from_settings(settings)
    write_json(places.settings_file, settings.to_json())
    write_json(places.index / "dataset.json", dataset_json(Dataset(str(dataset), dataset, "folder", {"": {}}, {})))
    write_json(places.index / "tool.json", {"name": settings.tool.name, "version": None})
    selected = [image(label, (dataset / t1w(label)).stat().st_size, "") for label in labels]
    write_index(places, [*selected, *(image(f"x{number:07d}", None, "") for number in range(others))])
    return places.results
