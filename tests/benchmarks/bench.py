"""What the benchmarks share: a working folder, timing of commands, and tables.

Figures are whole-process figures of this machine; compare within one table only.
"""

from __future__ import annotations

import os
import resource
import shutil
import signal
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from support import ENVIRONMENT, Project

signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))  # so that devices, throttles and folders go when it is ended


@dataclass(frozen=True)
class Timed:
    """One finished command: wall time in s, CPU time in s, peak memory of its largest process in bytes."""

    wall_s: float
    cpu_s: float
    max_rss_bytes: int


def timed(command: Sequence[str], cwd: Path, **environment: str) -> Timed:
    """Run a command, which must succeed, and say what it cost."""
    begin = time.monotonic()
    with tempfile.TemporaryFile() as output:
        process = subprocess.Popen(
            command, cwd=cwd, env={**ENVIRONMENT, **environment}, stdin=subprocess.DEVNULL, stdout=output, stderr=output
        )
        try:
            _, status, usage = os.wait4(process.pid, 0)
        except BaseException:
            process.terminate()
            process.wait()
            raise
        process.returncode = os.waitstatus_to_exitcode(status)
        if process.returncode != 0:
            output.seek(0)
            sys.exit(output.read().decode()[-3000:])
    return Timed(time.monotonic() - begin, usage.ru_utime + usage.ru_stime, usage.ru_maxrss * 1024)


@contextmanager
def scratch_project() -> Iterator[Project]:
    """A working folder that is gone afterwards."""
    with tempfile.TemporaryDirectory(prefix="neurotier-benchmark-", dir=os.environ.get("TMPDIR", "/var/tmp")) as folder:
        yield Project.at(Path(folder) / "project")


def drop_caches() -> None:
    os.sync()
    Path("/proc/sys/vm/drop_caches").write_text("3")


def prepare(project: Project, **environment: str) -> None:
    """Index the dataset and prepare the tool, and keep that for :func:`restore`."""
    targets = ["results/index/images.tsv", "results/index/tool.json"]
    timed(project.command(*targets), project.folder, **environment)
    project.results.rename(project.folder / "prepared")


def restore(project: Project) -> None:
    """The results folder as it was when nobody was analysed yet."""
    shutil.rmtree(project.results, ignore_errors=True)
    subprocess.run(["cp", "-a", "prepared", "results"], cwd=project.folder, check=True)


def spread_of(costs: Sequence[Any], figure: str, digits: int = 2, times: float = 1.0) -> str:
    """Median and range of a figure that several costs have, in other units if need be."""
    return spread([times * getattr(cost, figure) for cost in costs], digits)


def spread(values: Sequence[float], digits: int = 2) -> str:
    """Median and range, as ``1.00 (0.90-1.20)``."""
    median, least, most = statistics.median(values), min(values), max(values)
    return f"{median:.{digits}f} ({least:.{digits}f}-{most:.{digits}f})"


def print_table(title: str, header: Sequence[str], rows: Sequence[Sequence[object]]) -> None:
    """A table as Markdown."""
    print(f"\n{title}  [{len(os.sched_getaffinity(0))} CPUs, pages of {resource.getpagesize()} bytes]\n")
    for row in (header, ["---"] * len(header), *rows):
        print("| " + " | ".join(str(cell) for cell in row) + " |")
    sys.stdout.flush()
