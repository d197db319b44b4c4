"""Cost: what neurotier itself costs, beside the barest way to do the same, and what it may cost at most.

One participant of ``noop`` with one small image: its job, and the same copies and ``true`` by a shell and by Python.
Then the goals, side by side: short participants, 25 at once, beside GNU parallel on raw commands, in turn over the same
dataset (raw is copy, tool and copy; ours checks, meters, publishes and records, with the run report, ``all``, or not);
a slow tier, the start of a command, the meter, the increment, the report. Jobs have compiled bytecode, as the start of
a run sees to. Words are the goals to print: ``job``, and the others of :data:`GOALS`.
"""

from __future__ import annotations

import os
import shutil
import sys
import tempfile
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

import bigbrain
import numpy as np
import size
from bench import Timed, drop_caches, prepare, print_table, restore, scratch_project, spread, spread_of, timed
from devices import loop_device
from neurotier.run.head import compile_library
from noise import make_noise
from pool_jobs import prepared_results
from support import ENVIRONMENT, ROOT, STAND_INS, Project, sleeping, t1w

REPETITIONS = 15
AT_ONCE, ROUNDS = 25, 3
PATH = f"{STAND_INS}:{ENVIRONMENT['PATH']}"
FEW, MANY = 200, 1_000_000
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

Goal = tuple[str, str, str, str]
"""What is measured, what it came to, what stands beside it, and the goal."""

PARALLEL = ["parallel", "--will-cite", "-j", str(AT_ONCE), "-a", "names"]
"""Runs a command for each line of the file ``names``."""

CASES: dict[str, tuple[int, Mapping[str, Any], str]] = {
    "sleep 2": (200, sleeping(2), "sleep 2"),
    "stand-in bet": (50, {"name": "bet"}, "bet head.nii.gz brain -m -f 0.5"),
}
"""Name to the number of participants, our tool, and the raw command in a folder with the head."""

RAW = """\
set -e
work=$PWD/raw/work/$1 results=$PWD/raw/results/$1
mkdir -p "$work" "$results"
cp "bids/$1/anat/$1_T1w.nii.gz" "$work/head.nii.gz"
cd "$work"
TOOL
find . -name 'brain*' -exec cp -t "$results" '{}' +
rm -r "$work"
"""


def check_all_done(project: Project, count: int, masks: bool) -> None:
    """Both ways have done all."""
    raw = project.folder / "raw" / "results"
    assert len(project.records()) == len(list(raw.iterdir())) == count
    if masks:
        assert len(list(project.derivatives.glob("*/anat/*_mask.nii.gz"))) == count
        assert len(list(raw.rglob("brain_mask.nii.gz"))) == count


def beside_raw(name: str) -> dict[str, list[Timed]]:
    """Cost of each way, in turn, of one case."""
    count, tool, raw = CASES[name]
    with scratch_project() as project:
        labels = [f"{number:03d}" for number in range(count)]
        project.heads(*labels)
        (project.folder / "raw.sh").write_text(RAW.replace("TOOL", raw))
        (project.folder / "names").write_text("\n".join(f"sub-{label}" for label in labels))
        project.configure(tool=tool)
        prepare(project, PATH=PATH)
        ways = {
            "raw": [*PARALLEL, "sh", "raw.sh", "{}"],
            **{way: project.command(way, "--quiet", cores=AT_ONCE) for way in ("participants", "all")},
        }
        made: dict[str, list[Timed]] = {way: [] for way in ways}
        for _ in range(ROUNDS):
            shutil.rmtree(project.folder / "raw", ignore_errors=True)
            for way, command in ways.items():
                restore(project)
                made[way].append(timed(command, project.folder, PATH=PATH))
            check_all_done(project, count, masks=tool["name"] == "bet")
    return made


def of_raw(made: Mapping[str, list[Timed]], way: str, figure: str) -> str:
    """How many times as much a way took as the raw commands, of two that followed each other."""
    pairs = zip(made[way], made["raw"], strict=True)
    return spread([getattr(ours, figure) / getattr(theirs, figure) for ours, theirs in pairs])


def job_command(results: Path) -> list[str]:
    """The participant job, as the rule starts it."""
    options = ["--results", str(results), "--log", str(results / "logs" / "job.log")]
    return ["python3", "-m", "neurotier", "analyze-participants", "--only", f"sub-{LABEL}", *options]


def repeated(folder: Path, results: Path, ways: Mapping[str, list[str]]) -> dict[str, list[Timed]]:
    """Cost of some commands, each started several times, in turn and once before; what jobs leave is removed."""
    costs: dict[str, list[Timed]] = {name: [] for name in ways}
    for repetition in range(REPETITIONS + 1):
        for name, command in ways.items():
            for left in ("derivatives", "profile"):
                shutil.rmtree(results / left, ignore_errors=True)
            cost = timed(command, folder, **JOB_ENVIRONMENT)
            costs[name] += [cost] * (repetition > 0)
    return costs


def job(folder: Path) -> Iterator[Goal]:
    """A participant job, beside the same copies without it."""
    results, image = prepared_results(folder, [LABEL]), str(folder / "bids" / t1w(LABEL))
    by_shell = ["sh", "-c", BY_SHELL, "sh", image]
    ways = {
        "participant job of `noop`": job_command(results),
        "`neurotier meter -q` and sh": ["python3", "-m", "neurotier", "meter", "-q", "--", *by_shell],
        "the same copies and `true` by Python": ["python3", "-c", BY_PYTHON, image],
        "the same copies and `true` by sh": by_shell,
        "Python alone": ["python3", "-c", "pass"],
    }
    for name, costs in repeated(folder, results, ways).items():
        wall = f"wall: {spread_of(costs, 'wall_s', 1, 1000)}"
        yield f"{name}, CPU, ms", spread_of(costs, "cpu_s", 1, 1000), wall, "120" if "job" in name else ""


def short(_: Path) -> Iterator[Goal]:
    """Short participants, by the whole command beside raw commands."""
    for case, wall, cpu in (("sleep 2", "1.17", ""), ("stand-in bet", "1.4", "1.4")):
        made, count = beside_raw(case), CASES[case][0]
        for figure, goal in (("wall_s", wall), ("cpu_s", cpu)):
            for way in ("participants", "all"):
                what = f"{count} x {case}, 25 at once, `{way}`, of raw's {figure.partition('_')[0]}"
                yield what, of_raw(made, way, figure), f"raw: {spread_of(made['raw'], figure)} s", goal


def slow(_: Path) -> Iterator[Goal]:
    """Participants whose images lie on a slow tier, cold: by us, and by a script that does the same by hand."""
    ours: dict[str, list[Timed]] = {"participants": [], "all": []}
    theirs = []
    with loop_device(400, SLOW_BYTES_PER_S) as tier, scratch_project() as project:
        bound_s = make_noise(tier / "bids", SLOW_PARTICIPANTS, [150], np.int16, ".nii.gz") / SLOW_BYTES_PER_S
        os.sync()
        (project.folder / "names").write_text("\n".join(f"sub-{n:02d}" for n in range(SLOW_PARTICIPANTS)))
        (project.folder / "hand.sh").write_text(BY_HAND.format(bids=tier / "bids"))
        project.configure(
            dataset=tier / "bids",
            tool="noop",
            tiers={"slow": tier},
            placement={"dataset": "slow", "work": "tmpfs"},
        )
        prepare(project)
        for _round in range(ROUNDS):
            for way, made in ours.items():
                restore(project)
                drop_caches()
                made.append(timed(project.command(way, "--quiet", cores=25), project.folder))
            drop_caches()
            theirs.append(timed([*PARALLEL, "sh", "hand.sh", "{}"], project.folder))
    for way, made in ours.items():
        what = f"{SLOW_PARTICIPANTS} x 6 MB over 8 MB/s, cold, flushed, `{way}`"
        wall = spread([cost.wall_s / bound_s for cost in made])
        yield f"{what}, wall of the bound's {bound_s:.1f} s", wall, f"by hand: {spread_of(theirs, 'wall_s')} s", "1.15"
        yield f"{what}, CPU, s", spread_of(made, "cpu_s"), f"by hand: {spread_of(theirs, 'cpu_s')}", "8"


def start(_: Path) -> Iterator[Goal]:
    """The start of a command that has nothing to do but look."""
    with scratch_project() as project:
        looked = size.start(project)
    memory = f"{looked.max_rss_bytes / 2**20:.0f} MiB"
    yield f"start of a command, {size.START} participants, CPU, s", f"{looked.cpu_s:.2f}, {memory}", "", "2.5"


def index(folder: Path) -> Iterator[Goal]:
    """A job with a very long index, beside one with a short one."""
    figures = []
    for count in (FEW, MANY):
        results = prepared_results(folder / str(count), [LABEL], others=count - 1)
        (costs,) = repeated(folder, results, {"job": job_command(results)}).values()
        figures.append(spread_of(costs, "cpu_s", 1, 1000))
    yield f"CPU of a job, {MANY:,} rows in the index, ms", figures[1], f"{FEW} rows: {figures[0]}", "as with 200"


def meter(folder: Path) -> Iterator[Goal]:
    """The meter, beside nothing."""
    own = [str(Path(sys.executable).with_name("neurotier")), "meter", "--quiet", "--", "true"]  # as installed
    made = repeated(folder, folder, {"true": ["true"], "time": ["/usr/bin/time", "true"], "meter": own})
    extra, by_time = (
        spread([1000 * (one.cpu_s - bare.cpu_s) for one, bare in zip(made[name], made["true"], strict=True)], 1)
        for name in ("meter", "time")
    )
    yield "`neurotier meter -q` over nothing, CPU, ms", extra, f"/usr/bin/time: {by_time}", "25"


def increment(_: Path) -> Iterator[Goal]:
    """The engine of GNU parallel, beside the published way."""
    row = bigbrain.measure(Path("/dev/shm"), 0.412, 12)
    yield f"{row[0]} on {row[1]}, times as fast as published", row[2], f"start of a block: {row[3]} s", "3; 0.03 s"


def report(_: Path) -> Iterator[Goal]:
    """The page of many participants."""
    with scratch_project() as project:
        files = size.measure(project, 6_850)[1]
    yield "report.html of 6,850 participants, MB", f"{files['report.html'] / 1e6:.1f}", "", "4"


GOALS: dict[str, Callable[[Path], Iterator[Goal]]] = {
    goal.__name__: goal for goal in (job, short, slow, start, index, meter, increment, report)
}


def main(*names: str) -> None:
    compile_library()
    rows: list[Goal] = []
    for name in names or GOALS:
        with tempfile.TemporaryDirectory(prefix="neurotier-benchmark-", dir="/var/tmp") as folder:
            rows += GOALS[name](Path(folder))
    load = f"load {os.getloadavg()[2]:.1f} over the last 15 min"
    print_table(f"Goals, median (range), {load}", ["what", "is", "beside it", "goal"], rows)
