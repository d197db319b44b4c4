"""Cost: what neurotier itself costs, beside the barest way to do the same, and what it may cost at most.

One participant of ``noop`` with one small image: its job, and the same copies and ``true`` by a shell and by Python.
Then the goals, side by side: short participants (``overhead.py``), a slow tier, the start of a command, the meter
(``metering.py``), the increment (``bigbrain.py``), the report (``size.py``). Jobs have compiled bytecode, as the start
of a run sees to. A table is a function here: name some to print these alone.
"""

from __future__ import annotations

import os
import shutil
import sys
import tempfile
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path

import bigbrain
import metering
import numpy as np
import overhead
import size
from bench import Timed, drop_caches, prepare, print_table, restore, scratch_project, spread, timed
from devices import loop_device
from neurotier.run.hooks import compile_library
from noise import make_noise
from pool_jobs import prepared_results
from support import ROOT, t1w

REPETITIONS = 15
FEW, LONGEST = 200, 1_000_000
LABEL = "01"
SLOW_PARTICIPANTS, SLOW_BYTES_PER_S = 24, 8_000_000
JOB_ENVIRONMENT = {"PYTHONPATH": str(ROOT / "workflow"), "PYTHONDONTWRITEBYTECODE": "1"}

BY_SHELL = 'mkdir work && cp "$1" work/in.nii.gz && (cd work && true) && mkdir out && rm -r work out'

BY_HAND = """\
set -e
work=/dev/shm/neurotier-by-hand-$$
mkdir "$work"
cp "{bids}/$1/anat/$1_T1w.nii.gz" "$work"
true
mkdir -p "hand/$1"
rm -r "$work"
"""

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
    return ["python3", "-m", "neurotier", "analyze-participants", "--only", f"sub-{LABEL}", *options]


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


Goal = tuple[str, str, str, str]
"""What is measured, what it came to, what stands beside it, and the goal."""


def job_goal(folder: Path) -> Goal:
    """The CPU time of a job."""
    results = prepared_results(folder, [LABEL])
    ways = {"job": job_command(results), "sh": ["sh", "-c", BY_SHELL, "sh", str(folder / "bids" / t1w(LABEL))]}
    job, shell = (milliseconds(costs)[0] for costs in repeated(folder, ways, results).values())
    return "CPU of a job of noop, ms", job, f"the same copies by sh: {shell}", "120"


def short_goals(_: Path) -> Iterator[Goal]:
    """Short participants, by the whole command beside raw commands."""
    for case, wall, cpu in (("sleep 2", "1.15", ""), ("stand-in bet", "1.5", "1.4")):
        made, count = overhead.measure(case), overhead.CASES[case][0]
        for figure, goal in (("wall_s", wall), ("cpu_s", cpu)):
            raw = spread([getattr(cost, figure) for cost in made["raw"]])
            for way in ("participants", "all"):
                what = f"{count} x {case}, 25 at once, `{way}`, of raw's {figure.partition('_')[0]}"
                yield what, overhead.of_raw(made, way, figure), f"raw: {raw} s", goal


def slow_goal(folder: Path) -> Iterator[Goal]:
    """Participants whose images lie on a slow tier, cold: by us, and by a script that does the same by hand."""
    with loop_device(400, SLOW_BYTES_PER_S) as slow, scratch_project() as project:
        size_bytes = make_noise(slow / "bids", SLOW_PARTICIPANTS, [150], np.int16, ".nii.gz")
        os.sync()
        (project.folder / "names").write_text("\n".join(f"sub-{n:02d}" for n in range(SLOW_PARTICIPANTS)))
        (project.folder / "hand.sh").write_text(BY_HAND.format(bids=slow / "bids"))
        placed = {"dataset": "slow", "work": "tmpfs"}
        tiers = {"slow": {"path": str(slow), "kind": "block"}}
        arguments = project.configure(dataset={"source": str(slow / "bids")}, tool={"name": "noop"}, tiers=tiers)
        arguments += ["--config", f"placement={placed}".replace("'", "")]
        prepare(project, arguments)
        hand = ["parallel", "--will-cite", "-j", "25", "-a", "names", "sh", "hand.sh", "{}"]
        ours, theirs = [], []
        for _ in range(3):
            restore(project)
            drop_caches()
            ours.append(timed(project.command("all", *arguments, "--quiet", cores=25), project.folder))
            drop_caches()
            theirs.append(timed(hand, project.folder))
    bound_s = size_bytes / SLOW_BYTES_PER_S
    what = f"{SLOW_PARTICIPANTS} x {size_bytes / SLOW_PARTICIPANTS / 1e6:.0f} MB over 8 MB/s, cold, flushed, `all`"
    by_hand = [spread([getattr(cost, figure) for cost in theirs]) for figure in ("wall_s", "cpu_s")]
    share = spread([cost.wall_s / bound_s for cost in ours])
    yield f"{what}, wall of the bound's {bound_s:.1f} s", share, f"by hand: {by_hand[0]} s", "1.15"
    yield f"{what}, CPU, s", spread([cost.cpu_s for cost in ours]), f"by hand: {by_hand[1]}", "8"


def start_goal(_: Path) -> Goal:
    """The start of a command that has nothing to do but look."""
    with scratch_project() as project:
        run = size.start(project)
    memory = f"{run.max_rss_bytes / 2**20:.0f} MiB"
    return f"start of a command, {size.START} participants, CPU, s", f"{run.cpu_s:.2f}, {memory}", "", "2.5"


def index_goal(folder: Path) -> Goal:
    """A job with a very long index, beside one with a short one."""
    costs: list[list[Timed]] = []
    for count in (FEW, LONGEST):
        results = prepared_results(folder / str(count), [LABEL], others=count - 1)
        costs += repeated(folder, {"job": job_command(results)}, results).values()
    few, many = (milliseconds(each)[0] for each in costs)
    return f"CPU of a job, {LONGEST:,} rows in the index, ms", many, f"{FEW} rows: {few}", "as with 200"


def meter_goal(_: Path) -> Goal:
    """The meter, beside nothing."""
    times = metering.start_times()
    extra, by_time = (
        spread([one - bare for one, bare in zip(times[name], times["true"], strict=True)], 1)
        for name in ("neurotier meter --quiet -- true", "/usr/bin/time true")
    )
    return "`neurotier meter -q` over nothing, ms", extra, f"/usr/bin/time: {by_time}", "25"


def increment_goal(_: Path) -> Goal:
    """The engine of GNU parallel, beside the published way."""
    row = bigbrain.measure(Path("/dev/shm"), 0.412, 12)
    return f"{row[0]} on {row[1]}, times as fast as published", row[2], f"start of a block: {row[3]} s", "3; 0.03 s"


def report_goal(_: Path) -> Goal:
    """The page of many participants."""
    with scratch_project() as project:
        files = size.measure(project, 6_850)[1]
    return "report.html of 6,850 participants, MB", f"{files['report.html'] / 1e6:.1f}", "", "4"


GOALS: tuple[Callable[[Path], Goal | Iterator[Goal]], ...] = (
    *(job_goal, short_goals, slow_goal, start_goal, index_goal, meter_goal, increment_goal, report_goal),
)


def print_goals(folder: Path) -> None:
    """What may cost so much at most, side by side."""
    rows: list[Goal] = []
    for number, measure in enumerate(GOALS):
        found = measure(folder / str(number))
        rows += [found] if isinstance(found, tuple) else list(found)
    load = f"load {os.getloadavg()[2]:.1f} over the last 15 min"
    print_table(f"Goals, median (range), {load}", ["what", "is", "beside it", "goal"], [list(row) for row in rows])


TABLES: dict[str, Callable[[Path], None]] = {
    "job": print_job,
    "goals": print_goals,
}


def main() -> None:
    compile_library()
    for name in sys.argv[1:] or TABLES:
        with tempfile.TemporaryDirectory(prefix="neurotier-benchmark-", dir="/var/tmp") as folder:
            TABLES[name](Path(folder))


if __name__ == "__main__":
    main()
