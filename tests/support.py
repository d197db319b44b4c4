"""Makers and runners for the tests; fixtures that use them are in ``conftest.py``."""

from __future__ import annotations

import fcntl
import hashlib
import json
import os
import re
import signal
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import fasteners
import nibabel as nib
import numpy as np
import psutil
import yaml
from neurotier.core.files import write_json
from neurotier.core.places import Places, file_of
from neurotier.core.settings import ROLES, DemoSettings, Settings
from neurotier.core.tables import write_table
from neurotier.core.tiers import find_mount
from neurotier.dataset.bids import read_image
from neurotier.dataset.index import Index
from neurotier.dataset.source import Dataset
from neurotier.demo.dataset import make_demo_dataset
from neurotier.run.jobs import dataset_json

ROOT = Path(__file__).resolve().parent.parent
DEBIAN_HEAD = Path("/usr/share/mricron/templates/ch2.nii.gz")
STAND_INS = ROOT / "tests" / "stand_ins"
ENVIRONMENT = {**os.environ, "PATH": f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"}

PATIENCE_S = 180.0
"""After how long a test no longer waits for what should take a second, s: other tests run beside it."""


@dataclass(frozen=True)
class Ended:
    """A command that has ended."""

    code: int
    output: str

    def lines(self, part: str) -> list[str]:
        """Lines of the output that contain a text."""
        return [line for line in self.output.splitlines() if part in line]

    @property
    def analysed(self) -> list[str]:
        """Participants for whom a job was begun, or would be, in order of name."""
        return sorted(name for line in self.lines("Analysing ") for name in re.findall(r"[\w/]*sub-\w+", line))


@dataclass(frozen=True)
class Project:
    """A working folder with the workflow, its configuration and profiles, as in a clone.

    Attributes
    ----------
    before
        Gives words to begin each command with, which may have another user run it on another host.
    """

    folder: Path
    before: Callable[[], Sequence[str]] = tuple

    @classmethod
    def at(cls, folder: Path, before: Callable[[], Sequence[str]] = tuple) -> Project:
        folder.mkdir(parents=True)
        for name in ("workflow", "config", "profiles", "containers", "requirements.lock"):
            (folder / name).symlink_to(ROOT / name)
        return cls(folder, before)

    @property
    def results(self) -> Path:
        return self.folder / "results"

    def command(self, *arguments: str, targets: Sequence[str] = (), cores: int = 2) -> list[str]:
        """A command line; targets come first, since ``--configfile`` takes all words that follow it.

        Without cores, ``--cores`` is left out.
        """
        given = ["--cores", str(cores)] if cores else []
        return [*self.before(), sys.executable, "-m", "snakemake", *targets, *given, *arguments]

    def snakemake(
        self, *arguments: str, targets: Sequence[str] = (), cores: int = 2, path: Path | None = None
    ) -> Ended:
        """Run snakemake as a user would; ``path`` comes first on PATH."""
        return self.ended(self.command(*arguments, targets=targets, cores=cores), path)

    def start(self, *arguments: str) -> subprocess.Popen[bytes]:
        """Start snakemake in the background, silent."""
        quiet: dict[str, Any] = dict.fromkeys(("stdin", "stdout", "stderr"), subprocess.DEVNULL)
        return subprocess.Popen(self.command(*arguments), cwd=self.folder, env=ENVIRONMENT, **quiet)

    def run(self, *arguments: str, path: Path | None = None) -> Ended:
        """Run Python in the working folder."""
        return self.ended([*self.before(), sys.executable, *arguments], path)

    def ended(self, command: Sequence[str], path: Path | None = None) -> Ended:
        """Run a command in the working folder."""
        environment = dict(ENVIRONMENT)
        if path is not None:
            environment["PATH"] = f"{path}{os.pathsep}{environment['PATH']}"
        done = subprocess.run(
            command,
            cwd=self.folder,
            env=environment,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
        )
        return Ended(done.returncode, done.stdout)

    def configure(self, **sections: Any) -> list[str]:
        """Arguments for a configuration of one's own, laid over ``config/config.yaml``.

        Other tests run beside it, so that runs are not held to be disturbed unless asked for.
        """
        sections.setdefault("validity", {"others_cpu_share": 1})
        file = self.folder / "own.yaml"
        file.write_text(yaml.safe_dump(sections))
        return ["--configfile", str(file)]

    def table(self, path: str) -> list[dict[str, str]]:
        """Rows of a table below the results folder."""
        head, *rows = (self.results / path).read_text().splitlines()
        return [dict(zip(head.split("\t"), row.split("\t"), strict=True)) for row in rows]

    def failure(self, participant: str) -> dict[str, Any]:
        """Why a participant failed, as its job has written it down."""
        written: dict[str, Any] = json.loads(file_of(self.results / "state" / "failures", participant).read_text())
        return written

    def leftovers(self) -> list[Path]:
        """Everything on work tiers, and every hidden half result."""
        work = list(self.folder.glob("neurotier-*/work/**/*"))
        return work + list((self.results / "derivatives").glob("**/.*.partial"))


def git(folder: Path, *arguments: str) -> str:
    """Run git (or git-annex) with an identity, which a bare machine has none of; its output."""
    done = subprocess.run(
        ["git", "-c", "user.name=t", "-c", "user.email=t@t", *arguments],
        cwd=folder,
        env=ENVIRONMENT,
        check=True,
        capture_output=True,
        text=True,
    )
    return done.stdout.strip()


def make_demo(folder: Path) -> Path:
    """The demonstration dataset with coarse voxels, which are quick to process."""
    make_demo_dataset(folder, DemoSettings(head="simulated", voxel_size_mm=4.0, seed=7), say=lambda _: None)
    return folder


def once(folder: Path, make: Callable[[Path], Path]) -> Path:
    """Have something made once for all processes that ask for it; they wait for the one that makes it.

    Parameters
    ----------
    folder
        Where it is made; its name tells it from other things. One that could not be made is made anew in another.
    make
        Makes it in a new folder, and returns its path.
    """
    made = folder.with_suffix(".made")
    with fasteners.InterProcessLock(folder.with_suffix(".lock")):
        if not made.exists():
            made.write_text(str(make(Path(tempfile.mkdtemp(prefix=f"{folder.name}-", dir=folder.parent)))))
        return Path(made.read_text())


def link_images(image: Path, project: Project) -> None:
    """Give a project the store in which an image lies; names there tell what was built, so that it is not again."""
    store = project.folder / image.parents[1].name / image.parent.name
    store.mkdir(parents=True, exist_ok=True)
    for file in image.parent.iterdir():
        if file.is_file() and not (store / file.name).exists():
            os.link(file, store / file.name)


def words_of(process: psutil.Process) -> list[str]:
    """A process's command line; nothing if it is gone."""
    try:
        return process.cmdline()
    except psutil.Error:
        return []


def processes_in(folder: Path) -> list[psutil.Process]:
    """Those that work below a folder; some of Ray's have no environment to be known by."""
    found = []
    for process in psutil.process_iter():
        with suppress(psutil.Error, OSError):
            if Path(process.cwd()).is_relative_to(folder):
                found.append(process)
    return found


def listening(folder: Path) -> set[str]:
    """Addresses of this network on which processes that work below a folder listen."""
    pids = {process.pid for process in processes_in(folder)}
    sockets = [one for one in psutil.net_connections("inet") if one.pid in pids and not one.raddr]
    return {str(next(iter(one.laddr))).removeprefix("::ffff:") for one in sockets}


@contextmanager
def held(file: Path) -> Iterator[None]:
    """Have whoever opens a file wait, as from a device that does not answer; a lease is how file servers do it."""
    signal.signal(signal.SIGIO, signal.SIG_IGN)  # that somebody wants to open it
    descriptor = os.open(file, os.O_RDWR)
    try:
        fcntl.fcntl(descriptor, fcntl.F_SETLEASE, fcntl.F_WRLCK)
        yield
    finally:
        os.close(descriptor)
        signal.signal(signal.SIGIO, signal.SIG_DFL)


def save_image(path: Path, data: np.ndarray) -> Path:
    """A NIfTI of 4 mm voxels."""
    path.parent.mkdir(parents=True, exist_ok=True)
    nib.save(nib.Nifti1Image(data, np.diag([4.0, 4.0, 4.0, 1.0])), path)
    return path


def small_head(seed: int = 0) -> np.ndarray:
    """A ball in air, enough of a head for tools that need no anatomy; int16, 20 x 20 x 20."""
    axis = np.arange(20) - 9.5
    distance = np.sqrt(sum(part**2 for part in np.meshgrid(axis, axis, axis, indexing="ij")))
    noise = np.random.default_rng(seed).integers(0, 20, (20, 20, 20))
    return np.where(distance < 7, 500, 0).astype(np.int16) + noise.astype(np.int16)


def plain_dataset(folder: Path, images: Mapping[str, np.ndarray | bytes]) -> Path:
    """A plain BIDS folder with the given T1w files (path to voxels, or to raw bytes)."""
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "dataset_description.json").write_text(json.dumps({"Name": "test", "BIDSVersion": "1.10.0"}))
    for name, content in images.items():
        if isinstance(content, bytes):
            (folder / name).parent.mkdir(parents=True, exist_ok=True)
            (folder / name).write_bytes(content)
        else:
            save_image(folder / name, content)
    return folder


def t1w(label: str) -> str:
    """Path of the T1w image of a participant without sessions."""
    return f"sub-{label}/anat/sub-{label}_T1w.nii.gz"


def checksums(derivatives: Path) -> dict[str, str]:
    """SHA-256 of every file below a folder, but for Snakemake's own time stamps."""
    return {
        str(path.relative_to(derivatives)): hashlib.sha256(path.read_bytes()).hexdigest()
        for path in sorted(derivatives.rglob("*"))
        if path.is_file() and path.name != ".snakemake_timestamp"
    }


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
