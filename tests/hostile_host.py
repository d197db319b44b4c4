"""What hostile containers are after: a secret, a folder to write to; and a job that runs them, with a time limit."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

import nibabel as nib
import numpy as np
from container_images import Engine, tiny_root
from neurotier.core.private import PREFIX, user_name
from support import ROOT, small_head

CANARY = b"c4n4ry-0f-th3-h0st"
LIMIT_S = 60
"""After this a job counts as hanging."""

JOB_RUN = f"run-{os.getpid()}"
"""The run of the jobs here; other workers end processes by their run at the same time."""

JOB_ENVIRONMENT = {**os.environ, "PYTHONPATH": str(ROOT / "workflow"), "NEUROTIER_RUN": JOB_RUN}

JOB = """
import os, sys
from pathlib import Path
from types import SimpleNamespace
from neurotier.analysis.app import run_level
from neurotier.analysis.brains import in_container
from neurotier.analysis.in_container import prepare_in_container
from neurotier.analysis.staging import publish
from neurotier.analysis.tools import make_tool
from neurotier.containers.run import Container
from neurotier.containers.store import PlacedImage
from neurotier.dataset.bids import Image
from neurotier.core.errors import NeurotierError
from neurotier.meter.folders import Removal
from neurotier.core.private import make_private
from neurotier.core.settings import ContainerSettings

engine, root, folder, results, kind = sys.argv[1:]
folder, results = Path(folder), Path(results)
log = results / "log"
containers = ContainerSettings("sandbox", False, {}, [], {})
APP = {"image": "x", "name": "app", "filter_file": None, "retry_exit_codes": [], "attempts": 1}
placed = PlacedImage(engine, Path(root), results / "store.cache", "0" * 64)
try:
    if kind == "app":
        settings = SimpleNamespace(containers=containers, app=SimpleNamespace(**APP))
        run_level(["participant"], folder / "in", folder, settings, log, placed)
        publish(folder / "out", results / "derivatives")
    else:
        options = {"fractional_threshold": 0.5} | ({"iterations": 5} if kind == "brainextractor" else {})
        tool = make_tool(SimpleNamespace(name=kind, options=options))
        make_private(folder / "preparing")
        container = Container(engine, Path(root), containers, folder / "preparing" / "scratch")
        print("version", prepare_in_container(tool, container, placed.cache, log))
        settings = SimpleNamespace(containers=containers)
        (image,) = [SimpleNamespace(path="head.nii.gz")]
        masks, _ = in_container(tool, [image], folder, settings, log, placed, Removal())
        print("masks", [int(mask.sum()) for _, mask in masks])
except NeurotierError as error:
    sys.exit(str(error))
"""
"""A program that prepares a tool and runs it on one image, or an app on one participant, as a job does."""


@dataclass(frozen=True)
class Host:
    """A machine with a secret.

    Attributes
    ----------
    folder
        Everything lies below it.
    """

    folder: Path

    @classmethod
    def at(cls, folder: Path) -> Host:
        host = cls(folder)
        host.secret.parent.mkdir(mode=0o700, parents=True)
        host.secret.write_bytes(CANARY + b"\n")
        host.secret.chmod(0o600)
        (host.trap / "inner").mkdir(parents=True)
        (host.trap / "log").write_bytes(CANARY)
        (host.trap / "exit").write_text("0\n")
        head = nib.Nifti1Image(small_head(1), np.diag([4.0, 4.0, 4.0, 1.0]))
        half = np.zeros(head.shape, np.uint8)
        half[: head.shape[0] // 2] = 1
        nib.save(nib.Nifti1Image(half, head.affine), host.trap / "brain_mask.nii.gz")
        (host.work / "in").mkdir(parents=True, mode=0o700)
        host.work.parent.parent.chmod(0o700)
        nib.save(head, host.work / "in" / "head.nii.gz")
        host.results.mkdir()
        return host

    @property
    def secret(self) -> Path:
        """A file that nobody but the user may read, in a folder of the same kind."""
        return self.folder / "private" / "secret"

    @property
    def trap(self) -> Path:
        """A folder of the host that looks like a tool's own, with a mask that would be accepted."""
        return self.folder / "trap"

    @property
    def work(self) -> Path:
        """A job's work folder."""
        return self.folder / f"{PREFIX}{user_name()}" / "work" / "job"

    @property
    def results(self) -> Path:
        return self.folder / "results"

    def image(self, **programs: str) -> Path:
        """An unpacked image with hostile programs, in which SECRET and TRAP stand for the paths of those."""
        places = {"SECRET": str(self.secret), "TRAP": str(self.trap)}
        texts = {name: re.sub("SECRET|TRAP", lambda match: places[match[0]], text) for name, text in programs.items()}
        root = tiny_root(self.folder, texts)
        shutil.copy(self.trap / "brain_mask.nii.gz", root / "opt" / "mask.nii.gz")
        (root / ".singularity.d").mkdir(exist_ok=True)
        script = root / ".singularity.d" / "runscript"
        script.write_text("#!/bin/busybox sh\nexec app\n")
        script.chmod(0o755)
        return root

    def command(self, engine: Engine, root: Path, kind: str) -> list[str]:
        """A job's command line."""
        words = [engine.path, str(root), str(self.work), str(self.results), kind]
        return [sys.executable, "-c", JOB, *words]

    def job(
        self, engine: Engine, root: Path, kind: str, *before: str, **variables: str
    ) -> subprocess.CompletedProcess[str]:
        """Run a hostile image, by words that come before the job's, with more variables of the host;
        :class:`subprocess.TimeoutExpired` if that does not end."""
        return subprocess.run(
            [*before, *self.command(engine, root, kind)],
            env=JOB_ENVIRONMENT | variables,
            capture_output=True,
            text=True,
            timeout=LIMIT_S,
        )

    def untouched(self) -> list[tuple[str, int, bytes]]:
        """What containers must not change: paths, permissions and contents of secret and trap."""
        return [
            (str(path), path.lstat().st_mode, path.read_bytes() if path.is_file() else b"")
            for folder in (self.secret.parent, self.trap)
            for path in [folder, *sorted(folder.rglob("*"))]
        ]


def holding_canary(folder: Path) -> list[Path]:
    """Files below a folder, links not followed, that hold the secret."""
    return [
        path
        for root, _, files in os.walk(folder)
        for path in [Path(root, name) for name in files]
        if path.is_file() and not path.is_symlink() and CANARY in path.read_bytes()
    ]
