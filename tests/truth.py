"""Run a load of ``loads.py`` under the meter, and say what is true of it beside what was measured."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from loads import MIB, TRUTH
from support import PATIENCE_S, ROOT

NOBODY = 65534
THROTTLE = Path("/sys/fs/cgroup/blkio")
"""Control groups of version 1: their root group throttles a device for everybody, write-back included."""

BYTECODE = shutil.ignore_patterns("__pycache__")
"""What other tests may be writing meanwhile."""

METER = """
import json, sys
sys.path.insert(0, sys.argv[1])
from neurotier.meter.measure import measure_command
usage, code = measure_command(sys.argv[2:])
print(json.dumps(usage.record()))
sys.exit(code)
"""

Figures = dict[str, Any]


@dataclass(frozen=True)
class Bench:
    """What loads run from: a folder that every user of the machine may read, and one that all may write to.

    Attributes
    ----------
    python
        An interpreter that every user may start.
    program
        ``loads.py``.
    library
        Folder with the package ``neurotier``, as far as the meter needs it.
    shared
        Folder that all may write to.
    """

    python: str
    program: Path
    library: Path
    shared: Path

    def load(self, *words: object) -> list[str]:
        """The command of a load."""
        return [self.python, "-S", "-I", str(self.program), *map(str, words)]

    def metered(self, *words: object, ordinary: bool = False) -> tuple[Figures, Figures]:
        """Run a load under the meter, also as an ordinary user; what is true, and what was measured."""
        with self.truth() as truth:
            said = self.measured(self.load(*words), ordinary)
        return truth, said

    def measured(self, command: list[str], ordinary: bool = False) -> Figures:
        """Run any command under the meter, also as an ordinary user; what was measured."""
        metered = [self.python, "-S", "-c", METER, str(self.library), *command]
        user = as_nobody() if ordinary else {}
        done = subprocess.run(metered, stdout=subprocess.PIPE, check=True, timeout=300, cwd=self.shared, **user)
        return dict(json.loads(done.stdout.splitlines()[-1]))

    @contextmanager
    def truth(self) -> Iterator[Figures]:
        """Collect what the processes of a load say of themselves; it is there when the block has ended."""
        figures: Figures = {}
        with tempfile.NamedTemporaryFile(dir=self.shared) as file:
            os.chmod(file.name, 0o666)  # noqa: S103  # whoever the load runs as adds to it
            os.environ[TRUTH] = file.name
            try:
                yield figures
            finally:
                del os.environ[TRUTH]
            deadline = time.monotonic() + PATIENCE_S
            while "processes" not in figures or figures.get("running", 0) != 0:
                assert time.monotonic() < deadline, f"a process of the load did not end: {figures}"
                for line in file.read().splitlines():
                    for name, value in json.loads(line).items():
                        figures[name] = figures.get(name, 0) + value
                time.sleep(0.01)  # a daemon may outlive the tool that measured it


@contextmanager
def bench() -> Iterator[Bench]:
    """A bench, gone afterwards. Home folders and pytest's are closed to other users, so it lies beside them."""
    with tempfile.TemporaryDirectory(prefix="neurotier-loads-", dir="/var/tmp") as name:
        folder, shared = Path(name), Path(name, "shared")
        folder.chmod(0o755)
        shared.mkdir()
        shared.chmod(0o1777)
        shutil.copy(ROOT / "tests" / "loads.py", folder)
        package = Path("workflow", "neurotier")
        shutil.copytree(ROOT / package / "meter", folder / package / "meter", ignore=BYTECODE)
        (folder / package / "core").mkdir()
        for name in ("__init__.py", "core/__init__.py", "core/libc.py"):  # all that the meter needs of the rest
            shutil.copy(ROOT / package / name, folder / package / name)
        yield Bench(python_for_all(), folder / "loads.py", folder / "workflow", shared)


def python_for_all() -> str:
    """This interpreter if every user of the machine may start it, else the system's."""
    for python in (sys.executable, "/usr/bin/python3"):
        try:
            subprocess.run([python, "-S", "-I", "-c", "pass"], check=True, cwd="/", **as_nobody())
        except PermissionError:
            continue
        return python
    raise FileNotFoundError("an interpreter that an ordinary user may start")


def as_nobody() -> dict[str, Any]:
    """Arguments of ``subprocess`` that make root an ordinary user; none for who is one."""
    return {"user": NOBODY, "group": NOBODY, "extra_groups": []} if os.geteuid() == 0 else {}


@contextmanager
def loop_device(
    mib: int, bytes_per_s: int | None = None, below: str = "/var/tmp", strict_limit: bool = False
) -> Iterator[Path]:
    """A folder, writable by all, on an ext4 of its own whose device nobody else uses; needs root.

    Parameters
    ----------
    mib
        Size, MiB.
    bytes_per_s
        How fast it may be read and written, each way, where the kernel can limit that.
    below
        Folder where its bytes lie; in memory, nobody who keeps a disk busy is in its way.
    strict_limit
        Whether no more than 4 MiB may be dirty, so that writers wait for the device.

    Raises
    ------
    OSError, subprocess.CalledProcessError
        If this machine does not let us.
    """
    with tempfile.TemporaryDirectory(prefix="neurotier-loop-", dir=below) as name:
        folder, image = Path(name, "mount"), Path(name, "image")
        Path(name).chmod(0o755)
        folder.mkdir()
        with image.open("wb") as file:
            os.posix_fallocate(file.fileno(), 0, mib * MIB)
        device = output("losetup", "--show", "--find", "--direct-io=on", str(image)).strip()
        try:
            # all tables are written now, not by the kernel meanwhile
            output("mkfs.ext4", "-q", "-F", "-E", "lazy_itable_init=0,lazy_journal_init=0", device)
            output("mount", device, str(folder))
            try:
                folder.chmod(0o1777)
                with throttled(device, bytes_per_s), strictly_limited(device, strict_limit):
                    yield folder
            finally:
                output("umount", str(folder))
        finally:
            output("losetup", "--detach", device)


@contextmanager
def throttled(device: str, bytes_per_s: int | None) -> Iterator[None]:
    """Limit how fast a device may be read and written, each way."""
    number = Path("/sys/block", Path(device).name, "dev").read_text().strip()
    files = [THROTTLE / f"blkio.throttle.{way}_bps_device" for way in ("read", "write")] if bytes_per_s else []
    for file in files:
        file.write_text(f"{number} {bytes_per_s}")
    try:
        yield
    finally:
        for file in files:
            file.write_text(f"{number} 0")


@contextmanager
def strictly_limited(device: str, wanted: bool) -> Iterator[None]:
    """Limit what may be dirty of a device."""
    number = Path("/sys/block", Path(device).name, "dev").read_text().strip()
    limits = Path("/sys/class/bdi", number)
    if wanted:
        (limits / "strict_limit").write_text("1")
        (limits / "max_bytes").write_text(str(4 * MIB))
    try:
        yield
    finally:
        if wanted:  # the device stays, for whoever has it next
            (limits / "max_ratio").write_text("100")
            (limits / "strict_limit").write_text("0")


@contextmanager
def fuse_folder(bytes_per_s: int) -> Iterator[Path]:
    """A folder of a FUSE file system, over one in memory, that is written no faster; needs bindfs."""
    with tempfile.TemporaryDirectory(prefix="neurotier-fuse-", dir="/dev/shm") as name:
        below, folder = Path(name, "below"), Path(name, "mount")
        below.mkdir()
        folder.mkdir()
        output("bindfs", "-o", "big_writes", f"--write-rate={bytes_per_s}", str(below), str(folder))
        try:
            yield folder
        finally:
            output("umount", str(folder))


def output(*command: str) -> str:
    """What a command prints, which must succeed."""
    return subprocess.run(command, check=True, capture_output=True, text=True).stdout


def error_percent(measured: float | None, truth: float) -> float | None:
    """How far off a figure is, %; ``None`` without a figure or with nothing to compare it to."""
    return None if measured is None or truth == 0 else 100 * (measured - truth) / truth
