"""Cost: what neurotier itself costs, beside the barest way to do the same.

One participant of ``noop`` with one small image: its job, and the same copies and ``true`` by a shell and by Python.
What the start of the job imports; and the job with a few and with very many participants in the index. Jobs have
compiled bytecode, as the start of a run sees to. A table is a function here: name some to print these alone.
"""

from __future__ import annotations

import re
import shutil
import statistics
import subprocess
import sys
import tempfile
from collections.abc import Callable, Mapping
from pathlib import Path

from bench import Timed, print_table, spread, timed
from neurotier.run.hooks import compile_library
from support import ENVIRONMENT, ROOT, prepared_results, t1w

REPETITIONS = 15
FEW, MANY = 200, 100_000
SHOWN = 15
LABEL = "01"
JOB_ENVIRONMENT = {"PYTHONPATH": str(ROOT / "workflow"), "PYTHONDONTWRITEBYTECODE": "1"}

BY_SHELL = 'mkdir work && cp "$1" work/in.nii.gz && (cd work && true) && mkdir out && rm -r work out'

BY_PYTHON = """
import os, shutil, subprocess, sys
os.mkdir("work")
shutil.copyfile(sys.argv[1], "work/in.nii.gz")
subprocess.run(["true"], cwd="work", check=True)
os.mkdir("out")
shutil.rmtree("work")
shutil.rmtree("out")
"""


def job_command(results: Path) -> list[str]:
    """The participant job, as the rule starts it."""
    options = ["--results", str(results), "--log", str(results / "logs" / "job.log")]
    return ["python3", "-m", "neurotier", "analyze-participant", f"sub-{LABEL}", *options]


def repeated(folder: Path, ways: Mapping[str, list[str]], results: Path | None = None) -> dict[str, list[Timed]]:
    """Cost of some commands, each started several times, in turn and once before; what jobs leave is removed."""
    costs: dict[str, list[Timed]] = {name: [] for name in ways}
    for repetition in range(REPETITIONS + 1):
        for name, command in ways.items():
            for left in ("derivatives", "profile") if results else ():
                shutil.rmtree(Path(str(results), left), ignore_errors=True)
            cost = timed(command, folder, **JOB_ENVIRONMENT)
            if repetition:
                costs[name].append(cost)
    return costs


def milliseconds(costs: list[Timed]) -> list[str]:
    """Median and range of CPU and wall times, ms."""
    return [spread([1000 * getattr(one, name) for one in costs], 1) for name in ("cpu_s", "wall_s")]


def print_job(folder: Path) -> None:
    """A participant job, beside the same copies without it."""
    results = prepared_results(folder, [LABEL])
    image = str(folder / "bids" / t1w(LABEL))
    meter = ["python3", "-m", "neurotier", "meter", "-q", "--", "sh", "-c", BY_SHELL, "sh", image]
    ways = {
        "participant job of noop": job_command(results),
        "`neurotier meter -q` and sh": meter,
        "the same copies and `true` by Python": ["python3", "-c", BY_PYTHON, image],
        "the same copies and `true` by sh": ["sh", "-c", BY_SHELL, "sh", image],
        "Python alone": ["python3", "-c", "pass"],
    }
    rows = [[name, *milliseconds(costs)] for name, costs in repeated(folder, ways, results).items()]
    print_table(
        f"One participant with an image of {Path(image).stat().st_size} bytes, median (range) of {REPETITIONS}",
        ["what", "CPU, ms", "wall, ms"],
        rows,
    )


def print_start_up(folder: Path) -> None:
    """What the job imports, phases included, by ``-X importtime``: time in the module itself, without its imports."""
    command = ["python3", "-X", "importtime", *job_command(prepared_results(folder, [LABEL]))[1:]]
    told: dict[str, list[float]] = {}
    for _ in range(REPETITIONS):
        said = subprocess.run(
            command, env={**ENVIRONMENT, **JOB_ENVIRONMENT}, capture_output=True, text=True, check=True
        )
        for self_us, name in re.findall(r"^import time: +(\d+) \| +\d+ \| +([\w.]+)$", said.stderr, re.MULTILINE):
            told.setdefault(name, []).append(int(self_us) / 1000)
    longest = sorted(told, key=lambda name: -statistics.median(told[name]))
    rows: list[list[object]] = [[name, spread(told[name])] for name in longest[:SHOWN]]
    rows.append([f"{len(told)} modules in all", f"{sum(map(statistics.median, told.values())):.1f}"])
    print_table(f"Start-up: modules that take longest, median (range) of {REPETITIONS}", ["module", "wall, ms"], rows)


def print_index(folder: Path) -> None:
    """The job by the number of participants in the index."""
    rows = []
    for count in (FEW, MANY):
        results = prepared_results(folder / str(count), [LABEL], others=count - 1)
        (costs,) = repeated(folder, {"job": job_command(results)}, results).values()
        index_bytes = (results / "index" / "images.tsv").stat().st_size
        rows.append([f"{count:,}", f"{index_bytes / 2**20:.1f}", *milliseconds(costs)])
    header = ["participants in the index", "index, MiB", "CPU, ms", "wall, ms"]
    print_table(f"A job by the size of the index, median (range) of {REPETITIONS}", header, rows)


TABLES: dict[str, Callable[[Path], None]] = {"job": print_job, "start-up": print_start_up, "index": print_index}


def main() -> None:
    compile_library()
    for name in sys.argv[1:] or TABLES:
        with tempfile.TemporaryDirectory(prefix="neurotier-benchmark-", dir="/var/tmp") as folder:
            TABLES[name](Path(folder))


if __name__ == "__main__":
    main()
