"""What other tools say a command has cost: GNU ``time -v``, ``perf stat``, Snakemake's ``benchmark:``, con/duct.

Each takes a command and an empty folder, runs the command once as its manual says, with its defaults, and gives
the figures it reports under the meter's names; what it does not report is not there.
"""

from __future__ import annotations

import json
import os
import shlex
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

from support import ENVIRONMENT

MIB = 1 << 20
SECTOR_BYTES = 512

Figures = dict[str, float]

SNAKEFILE = """
rule load:
    output:
        touch("done"),
    benchmark:
        "benchmark.tsv"
    threads: 2
    shell:
        {command}
"""


def run(command: list[str], folder: Path) -> None:
    """Run a command, which must succeed."""
    environment = {**os.environ, "PATH": ENVIRONMENT["PATH"]}
    done = subprocess.run(command, cwd=folder, env=environment, stdin=subprocess.DEVNULL, capture_output=True)
    if done.returncode != 0:
        sys.exit(f"{shlex.join(command)}: {done.stderr.decode()[-2000:]}")


def gnu_time(command: list[str], folder: Path) -> Figures:
    """GNU ``time -v``: what ``wait4`` says of the command and those it has waited for."""
    run(["/usr/bin/time", "-v", "-o", "report", *command], folder)
    lines = [line.strip().rpartition(": ") for line in (folder / "report").read_text().splitlines()]
    said = {name: value for name, _, value in lines}
    return {
        "cpu_s": float(said["User time (seconds)"]) + float(said["System time (seconds)"]),
        "device_read_bytes": SECTOR_BYTES * int(said["File system inputs"]),
        "device_written_bytes": SECTOR_BYTES * int(said["File system outputs"]),
    }


def perf_stat(command: list[str], folder: Path) -> Figures:
    """``perf stat``: the kernel's task clock of the command and all its descendants."""
    run(["perf", "stat", "-x,", "-e", "task-clock", "-o", "report", *command], folder)
    counted = next(line for line in (folder / "report").read_text().splitlines() if "task-clock" in line)
    return {"cpu_s": float(counted.split(",")[0]) / 1000}


def snakemake(command: list[str], folder: Path) -> Figures:
    """A rule with ``benchmark:``."""
    (folder / "Snakefile").write_text(SNAKEFILE.format(command=repr(shlex.join(command))))
    run([sys.executable, "-m", "snakemake", "--cores", "2", "--quiet", "all"], folder)
    names, values = (line.split("\t") for line in (folder / "benchmark.tsv").read_text().splitlines())
    said = {name: float(value) for name, value in zip(names, values, strict=True) if name != "h:m:s" and value != "NA"}
    renamed = {"cpu_time": ("cpu_s", 1), "io_in": ("device_read_bytes", MIB), "io_out": ("device_written_bytes", MIB)}
    return {ours: unit * said[name] for name, (ours, unit) in renamed.items() if name in said}


def duct(command: list[str], folder: Path) -> Figures:
    """con/duct, which has no CPU seconds, but an average of CPU use in per cent: times the wall time."""
    program = str(Path(sys.executable).with_name("duct"))
    run([program, "--quiet", "-p", f"{folder}/", "-c", "none", "-o", "none", *command], folder)
    said = json.loads((folder / "info.json").read_text())["execution_summary"]
    if not said["num_samples"]:
        return {}
    return {"cpu_s": said["average_pcpu"] / 100 * said["wall_clock_time"]}


OTHERS: dict[str, Callable[[list[str], Path], Figures]] = {
    "time -v": gnu_time,
    "perf stat": perf_stat,
    "Snakemake": snakemake,
    "con/duct (average use x wall)": duct,
}
