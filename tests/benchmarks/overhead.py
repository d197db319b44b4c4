"""Overhead: what short participants cost by Snakemake, beside GNU parallel on raw commands: copy, tool and copy alone.

25 at once, in turn, over the same dataset; ours starts from an index that is there, and checks, meters, publishes and
records, with the run report ("all") and without ("participants"). Ratios are of runs one after the other.
"""

from __future__ import annotations

import shutil
import statistics
from collections.abc import Mapping
from typing import Any

from bench import Timed, prepare, print_table, restore, scratch_project, spread, spread_of, timed
from support import ENVIRONMENT, STAND_INS, Project

CORES = 25
REPETITIONS = 3
PATH = f"{STAND_INS}:{ENVIRONMENT['PATH']}"
PARALLEL = ["parallel", "--will-cite", "-j", str(CORES), "-a", "names"]
"""Runs a command for each line of the file ``names``."""

CASES: dict[str, tuple[int, Mapping[str, Any], str]] = {
    "noop": (200, {"name": "noop"}, "true"),
    "sleep 2": (200, {"name": "noop", "noop": {"sleep_s": 2}}, "sleep 2"),
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


def check(project: Project, count: int, masks: bool) -> None:
    """Both ways have done all."""
    raw = project.folder / "raw" / "results"
    assert len(project.records()) == len(list(raw.iterdir())) == count
    if masks:
        assert len(list(project.derivatives.glob("*/anat/*_mask.nii.gz"))) == count
        assert len(list(raw.rglob("brain_mask.nii.gz"))) == count


def measure(name: str) -> dict[str, list[Timed]]:
    """Cost of each way, in turn, of one case."""
    count, tool, raw = CASES[name]
    with scratch_project() as project:
        labels = [f"{number:03d}" for number in range(count)]
        project.heads(*labels)
        (project.folder / "raw.sh").write_text(RAW.replace("TOOL", raw))
        (project.folder / "names").write_text("\n".join(f"sub-{label}" for label in labels))
        arguments = project.configure(tool=tool)
        prepare(project, arguments, PATH=PATH)
        ways = {
            "raw": [*PARALLEL, "sh", "raw.sh", "{}"],
            **{way: project.command(way, *arguments, "--quiet", cores=CORES) for way in ("participants", "all")},
        }
        made: dict[str, list[Timed]] = {way: [] for way in ways}
        for _ in range(REPETITIONS):
            shutil.rmtree(project.folder / "raw", ignore_errors=True)
            for way, command in ways.items():
                restore(project)
                made[way].append(timed(command, project.folder, PATH=PATH))
            check(project, count, masks=tool["name"] == "bet")
    return made


def of_raw(made: Mapping[str, list[Timed]], way: str, figure: str) -> str:
    """How many times as much a way took as the raw commands, of two that followed each other."""
    pairs = zip(made[way], made["raw"], strict=True)
    return spread([getattr(ours, figure) / getattr(theirs, figure) for ours, theirs in pairs])


def main() -> None:
    rows = []
    for name, (count, _, _) in CASES.items():
        made = measure(name)
        for way, costs in made.items():
            figures = [spread_of(costs, figure) for figure in ("wall_s", "cpu_s")]
            ratios = [of_raw(made, way, figure) for figure in ("wall_s", "cpu_s")]
            each_ms = 1000 * statistics.median(cost.cpu_s for cost in costs) / count
            rows.append([f"{count} x {name}", way, *figures, *ratios, f"{each_ms:.0f}"])
    title = f"Short participants, {CORES} at once, beside GNU parallel on raw commands: median (range) of {REPETITIONS}"
    header = ["what", "by", "wall, s", "CPU, s", "of raw's wall", "of raw's CPU", "CPU a participant, ms"]
    print_table(title, header, rows)
