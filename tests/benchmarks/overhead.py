"""Overhead: what short participants cost by Snakemake, beside GNU parallel on raw commands: copy, tool and copy alone.

25 at once, in turn, over the same dataset; ours starts from an index that is there, and checks, meters, publishes and
records, with the run report ("all") and without ("participants"). Ratios are of runs one after the other.
"""

from __future__ import annotations

import shutil
import statistics
from collections.abc import Callable, Mapping
from typing import Any

from bench import Timed, prepare, print_table, restore, scratch_project, spread, timed
from support import ENVIRONMENT, STAND_INS, Project, plain_dataset, small_head, t1w

CORES = 25
REPETITIONS = 3
PATH = f"{STAND_INS}:{ENVIRONMENT['PATH']}"

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


def by_snakemake(project: Project, arguments: list[str], target: str) -> Timed:
    """Our command, from the index on."""
    restore(project)
    return timed(project.command(target, *arguments, "--quiet", cores=CORES), project.folder, PATH=PATH)


def by_parallel(project: Project, count: int, tool: str) -> Timed:
    """GNU parallel on raw commands."""
    shutil.rmtree(project.folder / "raw", ignore_errors=True)
    (project.folder / "raw.sh").write_text(RAW.replace("TOOL", tool))
    (project.folder / "names").write_text("\n".join(f"sub-{number:03d}" for number in range(count)))
    command = ["parallel", "--will-cite", "-j", str(CORES), "-a", "names", "sh", "raw.sh", "{}"]
    return timed(command, project.folder, PATH=PATH)


def check(project: Project, count: int, tool: str) -> None:
    """Both ways have done all."""
    assert len(list(project.results.glob("profile/records/**/*.json"))) == count
    assert len(list((project.folder / "raw" / "results").iterdir())) == count
    if tool == "bet":
        assert len(list(project.results.glob("derivatives/*/anat/*_mask.nii.gz"))) == count
        assert len(list((project.folder / "raw" / "results").rglob("brain_mask.nii.gz"))) == count


def measure(name: str) -> dict[str, list[Timed]]:
    """Cost of each way, in turn, of one case."""
    count, tool, raw = CASES[name]
    with scratch_project() as project:
        plain_dataset(project.folder / "bids", {t1w(f"{n:03d}"): small_head(n) for n in range(count)})
        arguments = project.configure(dataset={"source": "bids"}, tool=tool)
        prepare(project, arguments, PATH=PATH)
        ways: dict[str, Callable[[], Timed]] = {
            "raw": lambda: by_parallel(project, count, raw),
            "participants": lambda: by_snakemake(project, arguments, "participants"),
            "all": lambda: by_snakemake(project, arguments, "all"),
        }
        made: dict[str, list[Timed]] = {way: [] for way in ways}
        for _ in range(REPETITIONS):
            for way, run in ways.items():
                made[way].append(run())
            check(project, count, str(tool["name"]))
    return made


def of_raw(made: Mapping[str, list[Timed]], way: str, figure: str) -> str:
    """How many times as much a way took as the raw commands, of two that followed each other."""
    pairs = zip(made[way], made["raw"], strict=True)
    return spread([getattr(ours, figure) / getattr(theirs, figure) for ours, theirs in pairs])


def main() -> None:
    rows: list[list[object]] = []
    for name, (count, _, _) in CASES.items():
        made = measure(name)
        for way, costs in made.items():
            figures = [spread([getattr(cost, figure) for cost in costs]) for figure in ("wall_s", "cpu_s")]
            ratios = [of_raw(made, way, figure) for figure in ("wall_s", "cpu_s")]
            each_ms = 1000 * statistics.median(cost.cpu_s for cost in costs) / count
            rows.append([f"{count} x {name}", way, *figures, *ratios, f"{each_ms:.0f}"])
    print_table(
        f"Short participants, {CORES} at once, beside GNU parallel on raw commands: median (range) of {REPETITIONS}",
        ["what", "by", "wall, s", "CPU, s", "of raw's wall", "of raw's CPU", "CPU a participant, ms"],
        rows,
    )


if __name__ == "__main__":
    main()
