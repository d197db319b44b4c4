"""Accuracy: what the meter says of loads whose cost is known, beside what other tools say of the same loads.

All runs are of one go, tool after tool and load after load, each with its own truth (see ``tests/loads.py``).
As root the meter hears of every process that ends (exact); as an ordinary user it looks at those that live
(sampled). A figure that a tool does not give is shown as ``-``.
"""

from __future__ import annotations

import math
import os
import statistics
import subprocess
import tempfile
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

from bench import print_table
from devices import loop_device
from loads import MIB
from other_tools import OTHERS
from truth import Bench, bench, error_percent

REPETITIONS = 3
CPUS = len(os.sched_getaffinity(0))
SLOW_BYTES_PER_S = 8 * MIB
SLOW_MIB = 6

CPU = ("cpu_s", "run_queue_s")
BYTES = ("logical_read_bytes", "logical_written_bytes", "device_read_bytes", "device_written_bytes")
UNITS: dict[str, tuple[str, float, int]] = {"s": ("s", 1, 3), "bytes": ("MiB", MIB, 2), "processes": ("", 1, 0)}

ROUGHLY = "block_io_s, bytes / rate"
"""The wait that the device's speed makes: the file system's own writes come on top, and small bursts pass at once."""

EXACT, SAMPLED = "neurotier", "neurotier, ordinary user"

Record = dict[str, Any]
Run = Callable[["Load"], tuple[Record, Record]]


@dataclass(frozen=True)
class Load:
    """A load, the figures it knows the truth of, and whether one thread at a time is active in it."""

    title: str
    words: Sequence[object]
    figures: Sequence[str]
    single: bool = False


@dataclass
class Runs:
    """All runs of one load by one tool: what was true, and what the tool said."""

    truths: list[Record]
    said: list[Record]

    def truth(self, figure: str) -> float:
        """Median of what was true; not a number if no run knew."""
        known = [truth[figure] for truth in self.truths if figure in truth]
        return statistics.median(known) if known else math.nan

    def values(self, figure: str) -> list[float]:
        """What the tool said, where it said anything."""
        return [said[figure] for said in self.said if said.get(figure) is not None]

    def errors(self, figure: str) -> list[float]:
        """Each run's error against its own truth, %, where there is one."""
        pairs = zip(self.truths, self.said, strict=True)
        found = (error_percent(said.get(figure), truth[figure]) for truth, said in pairs if figure in truth)
        return [error for error in found if error is not None]


def all_loads(fast: Path | None, slow: Path | None) -> list[Load]:
    """The loads; those on devices only where there is one."""
    others = ("account_other_s",)
    loads = [
        Load("one process computes 2 s", ["burn", 2], CPU, single=True),
        Load("60 children of 20 ms, one by one", ["children", 60, 0.02], (*CPU, "processes"), single=True),
        Load("5,000 true, one by one", ["forks", 5000], (*CPU, "processes")),
        Load("daemon, forked twice, 1 s", ["daemon", 1], ("cpu_s", "processes")),
        Load("4 children unheard (SIGCHLD ignored), 0.4 s", ["unheard", 4, 0.4], (*CPU, "processes")),
        Load(f"{4 * CPUS} processes on {CPUS} CPUs, 0.4 s", ["children", 4 * CPUS, 0.4, 4 * CPUS], CPU),
        Load(f"{CPUS} threads, 1 s", ["threads", CPUS, 1], CPU),
        Load("sleep 1 s", ["sleep", 1], others, single=True),
        Load("network: 20 messages 50 ms apart", ["network", 20, 0.05], others, single=True),
        Load("tmpfs, 256 MiB", ["buffered", "/dev/shm", 256], (*BYTES, "cpu_s"), single=True),
    ]
    if fast:
        loads += [
            Load("ext4 through the page cache, 256 MiB", ["buffered", fast, 256], (*BYTES, "cpu_s"), single=True),
            Load("ext4, O_DIRECT, 256 MiB", ["direct", fast, 256], BYTES, single=True),
            Load("ext4, mapped, 256 MiB", ["mapped", fast, 256], BYTES, single=True),
        ]
    if slow:
        wait = (*BYTES[2:], "block_io_s", ROUGHLY)
        loads += [
            Load(f"slow device, O_DIRECT, {SLOW_MIB} MiB", ["direct", slow, SLOW_MIB, 256], wait, single=True),
            Load(f"slow device, page cache, {SLOW_MIB} MiB", ["buffered", slow, SLOW_MIB, 256], wait, single=True),
        ]
    return loads


@contextmanager
def devices() -> Iterator[tuple[Path | None, Path | None]]:
    """Folders on a fast and a slow device of our own, as far as this machine lets us."""
    with ExitStack() as stack:
        folders: list[Path | None] = []
        for mib, bytes_per_s in ((400, None), (100, SLOW_BYTES_PER_S)):
            try:
                folders.append(stack.enter_context(loop_device(mib, bytes_per_s)))
            except (OSError, subprocess.CalledProcessError) as error:
                print(f"no {'slow' if bytes_per_s else 'fast'} device of our own, its loads are left out: {error}")
                folders.append(None)
        yield folders[0], folders[1]


def tools(where: Bench) -> dict[str, Run]:
    """By name: how to run a load under a tool; what was true, and what it said."""

    def other(name: str, load: Load) -> tuple[Record, Record]:
        with tempfile.TemporaryDirectory(prefix="neurotier-tool-") as folder, where.truth() as truth:
            said = OTHERS[name](where.load(*load.words), Path(folder))
        return truth, dict(said)

    ours: dict[str, Run] = {
        EXACT: lambda load: where.metered(*load.words),
        SAMPLED: lambda load: where.metered(*load.words, ordinary=True),
    }
    if os.geteuid() != 0:
        print("not root: the exact path, which listens to exit records, is left out")
        del ours[EXACT]
    return ours | {name: partial(other, name) for name in OTHERS}


def with_rough_wait(load: Load, truth: Record, said: Record) -> tuple[Record, Record]:
    """The same, with the wait that a slow device makes by its speed."""
    if ROUGHLY not in load.figures or "block_io_s" not in said:
        return truth, said
    rough_s = 2 * SLOW_MIB * MIB / SLOW_BYTES_PER_S
    return truth | {ROUGHLY: rough_s}, said | {ROUGHLY: said["block_io_s"]}


def unit_of(figure: str) -> tuple[str, float, int]:
    """Unit, its size, and digits to show."""
    return UNITS.get(figure.partition(",")[0].rpartition("_")[2], UNITS["processes"])


def show(value: float, figure: str) -> str:
    _, size, digits = unit_of(figure)
    return f"{value / size:.{digits}f}"


def error_cell(runs: Runs, figure: str) -> str:
    """Median and range of the errors, %; where the truth is 0, what was said instead of 0."""
    errors, values = runs.errors(figure), runs.values(figure)
    if errors:
        return f"{statistics.median(errors):+.2f} ({min(errors):+.2f} to {max(errors):+.2f})"
    return f"said {show(max(values), figure)} {unit_of(figure)[0]}" if values else "-"


def main() -> None:
    measured: dict[str, dict[str, Runs]] = {}
    with bench() as where, devices() as (fast, slow):
        loads, ways = all_loads(fast, slow), tools(where)
        for _ in range(REPETITIONS):
            for load in loads:
                for name, run in ways.items():
                    os.sync()  # what an earlier load left to write is not of this one
                    truth, said = with_rough_wait(load, *run(load))
                    runs = measured.setdefault(load.title, {}).setdefault(name, Runs([], []))
                    runs.truths.append(truth)
                    runs.said.append(said)
    print_measured(loads, measured)
    print_accounts(loads, measured)
    print_criteria(loads, measured)


def print_measured(loads: list[Load], measured: dict[str, dict[str, Runs]]) -> None:
    """What was true and said, and how far that is off."""
    values, errors = [], []
    for load in loads:
        by_tool = measured[load.title]
        for figure in load.figures:
            names = [load.title, f"{figure.removeprefix('account_')}"]
            said = {name: runs.values(figure) for name, runs in by_tool.items()}
            medians = [
                f"{show(statistics.median(all_said), figure)}" if all_said else "-" for all_said in said.values()
            ]
            true = [show(runs.truth(figure), figure) for runs in by_tool.values()]
            shown = [one if one == "-" else f"{one} of {whole}" for one, whole in zip(medians, true, strict=True)]
            values.append([*names, unit_of(figure)[0], *shown])
            errors.append([*names, *(error_cell(runs, figure) for runs in by_tool.values())])
    names = list(next(iter(measured.values())))
    title = f"Measured, of what was true in those runs, medians of {REPETITIONS}"
    print_table(title, ["load", "figure", "unit", *names], values)
    print_table(
        f"Error against each run's own truth, %, median (range) of {REPETITIONS}", ["load", "figure", *names], errors
    )


def residuals(runs: Runs) -> list[float]:
    """Share of the wall time that the account does not explain, %."""
    return [100 * said["residual_s"] / said["wall_s"] for said in runs.said if said["residual_s"] is not None]


def ours(by_tool: dict[str, Runs]) -> dict[str, Runs]:
    """Only the meter's."""
    return {name: runs for name, runs in by_tool.items() if name in (EXACT, SAMPLED)}


def print_accounts(loads: list[Load], measured: dict[str, dict[str, Runs]]) -> None:
    """How the wall time was divided."""
    rows = []
    for load in loads:
        row = [load.title, "one" if load.single else "several"]
        for runs in ours(measured[load.title]).values():
            rest = residuals(runs)
            shown = f"{statistics.median(rest):+.2f} ({min(rest):+.2f} to {max(rest):+.2f})" if rest else "-"
            row += ["/".join(sorted({str(said["account"]) for said in runs.said})), shown]
        rows.append(row)
    header = ["load", "threads of action"]
    for name in ours(measured[loads[0].title]):
        header += [f"account, {name}", "residual, % of wall"]
    print_table(f"Account of wall time, median (range) of {REPETITIONS}", header, rows)


def print_criteria(loads: list[Load], measured: dict[str, dict[str, Runs]]) -> None:
    """Whether each criterion is reached by every single run, and how far off the worst is."""
    criteria: list[tuple[str, Sequence[str], float, float]] = [
        ("CPU time (of 0.5 s and more)", ["cpu_s"], 1.0, 0.5),
        ("logical bytes", BYTES[:2], 1.0, MIB),
        ("device bytes", BYTES[2:], 2.0, MIB),
        ("run-queue delay (of 50 ms and more)", ["run_queue_s"], 5.0, 0.05),
    ]
    rows = []
    for name in ours(measured[loads[0].title]):
        for title, figures, limit, least in criteria:
            errors_of_loads = [
                (load.title, runs.errors(figure))
                for load, runs in ((load, measured[load.title][name]) for load in loads)
                for figure in load.figures
                if figure in figures and runs.truth(figure) >= least
            ]
            rows.append([title, f"{limit:g} %", name, *verdict(errors_of_loads, limit)])
        errors_of_loads = [(load.title, residuals(measured[load.title][name])) for load in loads if load.single]
        rows.append(
            ["residual of the account, one thread of action", "2 % of wall", name, *verdict(errors_of_loads, 2.0)]
        )
    header = ["criterion", "limit", "by", "verdict", "worst single run", "load of the worst"]
    print_table(f"Criteria, over every single run of {REPETITIONS} per load", header, rows)


def verdict(errors_of_loads: list[tuple[str, list[float]]], limit: float) -> list[str]:
    """Reached or not, the worst error and its load."""
    lacking = [title for title, errors in errors_of_loads if len(errors) < REPETITIONS]
    worst = max(((abs(error), error, title) for title, errors in errors_of_loads for error in errors), default=None)
    if worst is None:
        return ["not measured", "-", "-"]
    reached = worst[0] <= limit and not lacking
    without = f"; no figure in some runs of: {', '.join(lacking)}" if lacking else ""
    return ["reached" if reached else "MISSED", f"{worst[1]:+.2f} %", worst[2] + without]


if __name__ == "__main__":
    main()
