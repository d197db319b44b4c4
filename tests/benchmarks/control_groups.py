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

    command: Sequence[str]
    device: Path | None = None
    cores: float | None = None
    tells: bool = False


@contextmanager
def control_group(cores: float | None, truth: Record) -> Iterator[str]:
    """A control group whose processes may use so many cores: the files that who joins writes to, with colons between.

    When all have left it, it is gone, and their CPU time is in ``truth``.
    """
    name, first = f"neurotier-bench-{os.getpid()}", CPUACCT.exists()  # version 1, which has a folder for each purpose
    folders = [CPUACCT / name, CPUACCT.parent / "cpu" / name] if first else [CPUACCT.parent / name]
    for folder in folders:
        folder.mkdir()
    if cores is not None:
        quota = (folders[-1] / "cpu.cfs_quota_us") if first else (folders[-1] / "cpu.max")
        quota.write_text(f"{100_000 * cores:.0f}{'' if first else ' 100000'}")
    members = [folder / "cgroup.procs" for folder in folders]
    try:
        yield ":".join(map(str, members))
        deadline = time.monotonic() + PATIENCE_S
        while any(file.read_text() for file in members) and time.monotonic() < deadline:
            time.sleep(0.01)
        used = (folders[0] / ("cpuacct.usage" if first else "cpu.stat")).read_text().split()
        truth["cpu_s"] = int(used[0]) / 1e9 if first else int(used[1]) / 1e6
    finally:
        for folder in folders:
            folder.rmdir()


def all_loads(where: Bench, disk: Path, folder: Path) -> dict[str, Load]:
    """The twelve loads, by title."""
    targets = " ".join(f"part{number}" for number in range(12))
    (folder / "burn.py").write_text(BURN.format(0.06))
    (folder / "Makefile").write_text(f"all: {targets}\n{targets}:\n\t{where.python} -S -I {folder}/burn.py\n")
    fio = [*FIO, f"--directory={disk}", f"--output={folder}/fio", "--runtime=500ms", "--time_based"]
    return {
        "30 children of 20 ms": Load(where.load("children", 30, 0.02), tells=True),
        "make -j4, 12 targets of 60 ms": Load(["make", "-s", "-j4", "-C", str(folder)]),
        "daemon, 0.5 s": Load(where.load("daemon", 0.5), tells=True),
        "BLAS, 2 threads": Load(["env", "OPENBLAS_NUM_THREADS=2", sys.executable, "-c", BLAS.format(12)]),
        "mapped file, 64 MiB": Load(where.load("mapped", disk, 64), disk, tells=True),
        "O_DIRECT, half a second": Load([*fio, "--ioengine=psync"], disk),
        "AIO, half a second": Load([*fio, "--ioengine=libaio"], disk),
        "io_uring, half a second": Load([*fio, "--ioengine=io_uring"], disk),
        f"CPU quota of {QUOTA} cores": Load(where.load("burn", 0.4), cores=QUOTA, tells=True),
        "2,000 true": Load(where.load("forks", 2000), tells=True),
        "2 threads of 0.1 s, then asleep": Load(where.load("short_threads", 2, 0.1, 0.15), tells=True),
        "sleep 0.5 s": Load(where.load("sleep", 0.5), tells=True),
    }


def measure(where: Bench, load: Load) -> tuple[Record, Record]:
    """Run a load once; what is true, and what the meter said."""
    if load.device and not load.tells:  # pages of the program itself come from another device
        subprocess.run(load.command, stdout=subprocess.DEVNULL, check=True)
    os.sync()
    truth: Record = {}
    before = device_bytes(str(load.device)) if load.device else None
    with control_group(load.cores, truth) as files, ExitStack() as stack:
        told = stack.enter_context(where.truth()) if load.tells else {}
        command = [where.python, "-S", "-c", GROUPED, str(where.library), files, *load.command]
        done = subprocess.run(command, stdout=subprocess.PIPE, check=True, cwd=where.shared)
    os.sync()
    after = device_bytes(str(load.device)) if load.device else None
    if before and after:
        truth |= {name: after[name] - before[name] for name in after}
    return told | truth, json.loads(done.stdout.splitlines()[-1])


def cell(values: Sequence[float | None], limit: float) -> str:
    """Median and worst of some errors, and whether all are within the limit."""
    known = [value for value in values if value is not None]
    if not known:
        return "n/a"
    worst = max(known, key=abs)
    return f"{statistics.median(known):+.2f}, worst {worst:+.2f}{'' if abs(worst) <= limit else ' MISSED'}"


def row_of(title: str, runs: Sequence[tuple[Record, Record]]) -> list[str]:
    """A line of the table."""
    cpu, bytes_off, unexplained, asleep = [], [], [], []
    for truth, said in runs:
        if truth["cpu_s"] > 20 * START_S:  # else joining its group is some 5 % of it
            cpu.append(error_percent(said["cpu_s"], truth["cpu_s"]))
        counted = [name for name in ("device_read_bytes", "device_written_bytes") if truth.get(name)]
        bytes_off += [error_percent(said[name], truth[name]) for name in counted]
        if said["residual_s"] is not None:
            unexplained.append(100 * said["residual_s"] / said["wall_s"])
        if "account_other_s" in truth and said["account_other_s"] is not None:
            asleep.append(100 * (said["account_other_s"] - truth["account_other_s"]) / said["wall_s"])
    reasons = {said["account_reason"] for _, said in runs} | {said["bytes_reason"] for _, said in runs}
    return [
        *(title, f"{statistics.median(truth['cpu_s'] for truth, _ in runs):.3f}"),
        *(cell(cpu, 1.0), cell(bytes_off, 2.0), cell(unexplained, 2.0), cell(asleep, 10.0)),
        "/".join(sorted({str(said["account"] or "none") for _, said in runs})),
        "; ".join(sorted(filter(None, reasons))),
    ]


def main() -> None:
    if os.geteuid() != 0:
        print("control groups need root: left out")
        return
    with bench() as where, loop_device(400) as disk, tempfile.TemporaryDirectory(prefix="neurotier-groups-") as folder:
        (disk / "load.0.0").write_bytes(os.urandom(64 * MIB))  # fio would lay out its file as part of the first load
        loads = all_loads(where, disk, Path(folder))
        rounds = [{title: measure(where, load) for title, load in loads.items()} for _ in range(REPETITIONS)]
    header = [
        *("load", "CPU, s", "CPU, % (at most 1)", "device bytes, % (2)", "unexplained, % of wall (2)"),
        *("asleep, % of wall off (10)", "account", "why"),
    ]
    rows = [row_of(title, [each[title] for each in rounds]) for title in loads]
    print_table(f"The meter beside control groups, median and worst of {REPETITIONS}", header, rows)
