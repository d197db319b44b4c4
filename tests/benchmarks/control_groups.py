"""The meter beside the kernel's control groups: CPU time, bytes, and what the account leaves open, on twelve loads.

Each load runs in a control group of its own, which counts its CPU time whatever becomes of its processes; the meter
stays outside. Bytes are compared with what a loop device has counted that nobody else uses (control groups of version
1 do not see write-back). What the load does not let anybody know is ``n/a``. Needs root.
"""

from __future__ import annotations

import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from bench import print_table
from devices import loop_device
from loads import BURN, MIB, device_bytes
from support import PATIENCE_S
from truth import Bench, bench, error_percent

REPETITIONS = 3
CPUACCT = Path("/sys/fs/cgroup/cpuacct")
QUOTA = 0.4
"""Cores that the load with a quota may use."""

GROUPED = """
import json, os, sys
sys.path.insert(0, sys.argv[1])
from neurotier.meter.measure import measure_child
files = sys.argv[2].split(":")
def child():
    for file in files:
        with open(file, "w") as group:
            group.write("0")
    os.execvp(sys.argv[3], sys.argv[3:])
usage, code = measure_child(child, 5.0)
print(json.dumps(usage.record()))
sys.exit(code)
"""

FIO = ["fio", "--name=load", "--size=64m", "--bs=128k", "--rw=randrw", "--iodepth=8", "--direct=1", "--randseed=1"]
BLAS = "import numpy\nmatrix = numpy.ones((900, 900))\nfor _ in range({}): matrix @ matrix"
START_S = 0.002
"""CPU time of a fork and of joining the control group, at most: the group does not see it, and the meter does, s.

It is some 0.9 ms, so of 0.1 s the meter says about 1 % more than the group, whichever is right.
"""

Record = dict[str, Any]


@dataclass(frozen=True)
class Load:
    """A command, the folder whose device it uses, its quota in cores, and whether it tells its own truth."""

    title: str
    command: Sequence[str]
    device: Path | None = None
    cores: float | None = None
    tells: bool = False


class ControlGroup:
    """A control group of version 1 or 2.

    Attributes
    ----------
    folders
        One; of version 1, that which counts CPU time and that which limits it.
    files
        To be written to by who joins.
    """

    def __init__(self, cores: float | None) -> None:
        name, self.first = f"neurotier-bench-{os.getpid()}", CPUACCT.exists()
        self.folders = [CPUACCT / name, CPUACCT.parent / "cpu" / name] if self.first else [CPUACCT.parent / name]
        for folder in self.folders:
            folder.mkdir()
        self.files = [folder / "cgroup.procs" for folder in self.folders]
        if cores is not None and self.first:
            (self.folders[1] / "cpu.cfs_quota_us").write_text(str(round(100_000 * cores)))
        elif cores is not None:
            (self.folders[0] / "cpu.max").write_text(f"{round(100_000 * cores)} 100000")

    def cpu_s(self) -> float:
        """CPU time of all who have been in it, s."""
        if self.first:
            return int((self.folders[0] / "cpuacct.usage").read_text()) / 1e9
        return int((self.folders[0] / "cpu.stat").read_text().split()[1]) / 1e6

    def wait_until_empty(self) -> None:
        """Wait until nobody is in it."""
        deadline = time.monotonic() + PATIENCE_S
        while any(file.read_text() for file in self.files) and time.monotonic() < deadline:
            time.sleep(0.01)


@contextmanager
def control_group(cores: float | None) -> Iterator[ControlGroup]:
    """A control group, gone afterwards, whose processes may use so many cores."""
    group = ControlGroup(cores)
    try:
        yield group
    finally:
        group.wait_until_empty()
        for folder in group.folders:
            folder.rmdir()


def all_loads(where: Bench, disk: Path, folder: Path) -> list[Load]:
    """The twelve loads."""
    targets = [f"part{number}" for number in range(12)]
    (folder / "burn.py").write_text(BURN.format(0.06))
    recipe = f"{where.python} -S -I {folder}/burn.py"
    (folder / "Makefile").write_text(f"all: {' '.join(targets)}\n{' '.join(targets)}:\n\t{recipe}\n")
    fio = [*FIO, f"--directory={disk}", f"--output={folder}/fio", "--runtime=500ms", "--time_based"]
    return [
        Load("30 children of 20 ms", where.load("children", 30, 0.02), tells=True),
        Load("make -j4, 12 targets of 60 ms", ["make", "-s", "-j4", "-C", str(folder)]),
        Load("daemon, 0.5 s", where.load("daemon", 0.5), tells=True),
        Load("BLAS, 2 threads", ["env", "OPENBLAS_NUM_THREADS=2", sys.executable, "-c", BLAS.format(12)]),
        Load("mapped file, 64 MiB", where.load("mapped", disk, 64), disk, tells=True),
        Load("O_DIRECT, half a second", [*fio, "--ioengine=psync"], disk),
        Load("AIO, half a second", [*fio, "--ioengine=libaio"], disk),
        Load("io_uring, half a second", [*fio, "--ioengine=io_uring"], disk),
        Load(f"CPU quota of {QUOTA} cores", where.load("burn", 0.4), cores=QUOTA, tells=True),
        Load("2,000 true", where.load("forks", 2000), tells=True),
        Load("2 threads of 0.1 s, then asleep", where.load("short_threads", 2, 0.1, 0.15), tells=True),
        Load("sleep 0.5 s", where.load("sleep", 0.5), tells=True),
    ]


def measure(where: Bench, load: Load) -> tuple[Record, Record]:
    """Run a load once; what is true, and what the meter said."""
    if load.device and not load.tells:  # pages of the program itself come from another device
        subprocess.run(load.command, stdout=subprocess.DEVNULL, check=True)
    os.sync()
    with control_group(load.cores) as group:
        before = device_bytes(str(load.device)) if load.device else None
        files = ":".join(str(file) for file in group.files)
        command = [where.python, "-S", "-c", GROUPED, str(where.library), files, *load.command]
        with ExitStack() as stack:
            told = stack.enter_context(where.truth()) if load.tells else {}
            done = subprocess.run(command, stdout=subprocess.PIPE, check=True, cwd=where.shared)
        group.wait_until_empty()
        truth: Record = {"cpu_s": group.cpu_s()}
    os.sync()
    after = device_bytes(str(load.device)) if load.device else None
    if before and after:
        truth |= {name: after[name] - before[name] for name in after}
    if "account_other_s" in told:
        truth["account_other_s"] = told["account_other_s"]
    return truth, json.loads(done.stdout.splitlines()[-1])


def cell(values: Sequence[float | None], limit: float) -> str:
    """Median and worst of some errors, and whether all are within the limit."""
    known = [value for value in values if value is not None]
    if not known:
        return "n/a"
    worst = max(known, key=abs)
    return f"{statistics.median(known):+.2f}, worst {worst:+.2f}{'' if abs(worst) <= limit else ' MISSED'}"


def cpu_error(truth: Record, said: Record) -> float | None:
    """Error of the CPU time, %; none where the load is so short that joining its group is some 5 % of it."""
    return error_percent(said["cpu_s"], truth["cpu_s"]) if truth["cpu_s"] > 20 * START_S else None


def byte_errors(truth: Record, said: Record) -> list[float | None]:
    """Errors of the bytes to and from the device, %."""
    names = [name for name in ("device_read_bytes", "device_written_bytes") if truth.get(name)]
    return [error_percent(said[name], truth[name]) for name in names]


def of_wall(said: Record, seconds: float | None) -> float | None:
    """A share of the wall time, %."""
    return None if seconds is None else 100 * seconds / said["wall_s"]


def row_of(load: Load, runs: Sequence[tuple[Record, Record]]) -> list[str]:
    """A line of the table."""
    bytes_off = [error for truth, said in runs for error in byte_errors(truth, said)]
    asleep_off = [
        of_wall(said, said["account_other_s"] - truth["account_other_s"])
        for truth, said in runs
        if "account_other_s" in truth and said["account_other_s"] is not None
    ]
    reasons = {said["account_reason"] for _, said in runs} | {said["bytes_reason"] for _, said in runs}
    return [
        load.title,
        f"{statistics.median(truth['cpu_s'] for truth, _ in runs):.3f}",
        cell([cpu_error(truth, said) for truth, said in runs], 1.0),
        cell(bytes_off, 2.0),
        cell([of_wall(said, said["residual_s"]) for _, said in runs], 2.0),
        cell(asleep_off, 10.0),
        "/".join(sorted({str(said["account"] or "none") for _, said in runs})),
        "; ".join(sorted(filter(None, reasons))),
    ]


def main() -> None:
    if os.geteuid() != 0:
        print("control groups need root: left out")
        return
    measured: dict[str, list[tuple[Record, Record]]] = {}
    with bench() as where, loop_device(400) as disk, tempfile.TemporaryDirectory(prefix="neurotier-groups-") as folder:
        (disk / "load.0.0").write_bytes(os.urandom(64 * MIB))  # fio would lay out its file as part of the first load
        loads = all_loads(where, disk, Path(folder))
        for _ in range(REPETITIONS):
            for load in loads:
                measured.setdefault(load.title, []).append(measure(where, load))
    header = [
        *("load", "CPU, s", "CPU, % (at most 1)", "device bytes, % (2)", "unexplained, % of wall (2)"),
        *("asleep, % of wall off (10)", "account", "why"),
    ]
    rows = [row_of(load, measured[load.title]) for load in loads]
    print_table(f"The meter beside control groups, median and worst of {REPETITIONS}", header, rows)


if __name__ == "__main__":
    main()
