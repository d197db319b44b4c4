"""Metering: what it costs, over the same thing unmetered in the same run.

The library call per phase, in a process like that of a participant job and in one with nibabel besides; the command
``neurotier meter``; a load of 1,000 short children; and what meters that run at the same time cost each other, since
each hears of every process that ends on the machine.
"""

from __future__ import annotations

import ctypes
import json
import os
import signal
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path

from bench import print_table, spread
from support import ENVIRONMENT, NOBODY, ROOT
from truth import Bench, bench

CALLS = 100
STARTS = 40
START_MS = 25.0
"""What the command may take over what it runs."""

CHILDREN, CHILD_S = 1000, 0.01
ROUNDS = 7
ENDS = 3000
METERS = (0, 1, 25, 96)
TRUE = ["true"]
PR_SET_DUMPABLE = 4


def milliseconds(action: Callable[[], object]) -> float:
    begin = time.perf_counter()
    action()
    return 1000 * (time.perf_counter() - begin)


def bare_fork(command: list[str] | None) -> None:
    """Fork, run a command if there is one, wait."""
    pid = os.fork()
    if pid == 0:
        try:
            if command:
                os.execvp(command[0], command)  # noqa: S606  # the barest way there is
        finally:
            os._exit(0)
    os.wait4(pid, 0)


def call_costs(imports: str, ordinary: bool) -> dict[str, list[float]]:
    """Milliseconds of each way to run a phase, in turn; in this process, which is made like another."""
    from neurotier.meter.function import measure_function
    from neurotier.meter.measure import measure_command
    from neurotier.run import jobs  # noqa: F401  # what a participant job has loaded when its first phase begins

    if imports == "nibabel":
        import nibabel  # noqa: F401
    if ordinary:
        os.setgroups([])
        os.setgid(NOBODY)
        os.setuid(NOBODY)
        ctypes.CDLL(None).prctl(PR_SET_DUMPABLE, 1)  # as if it had been started by this user
    ways: dict[str, Callable[[], object]] = {
        "bare fork": partial(bare_fork, None),
        "measure_function": partial(measure_function, bool),
        "bare fork + exec": partial(bare_fork, TRUE),
        "measure_command": partial(measure_command, TRUE),
    }
    times: dict[str, list[float]] = {name: [] for name in ways}
    for _ in range(CALLS):
        for name, action in ways.items():
            times[name].append(milliseconds(action))
    return times


def print_calls() -> None:
    """The library call per phase."""
    rows = []
    for imports in ("participant job", "nibabel"):
        for user in ["root", "ordinary user"] if os.geteuid() == 0 else ["ordinary user"]:
            drop = str(int(user != "root" and os.geteuid() == 0))
            command = [sys.executable, __file__, imports, drop]
            done = subprocess.run(command, env=ENVIRONMENT, check=True, stdout=subprocess.PIPE)
            times = json.loads(done.stdout)
            for bare, metered in (("bare fork", "measure_function"), ("bare fork + exec", "measure_command")):
                extra = [more - less for more, less in zip(times[metered], times[bare], strict=True)]
                figures = [spread(times[bare]), spread(times[metered]), spread(extra)]
                rows.append([imports, user, metered, *figures, verdict(statistics.median(extra), 5.0)])
    header = ["process", "user", "call", "bare, ms", "metered, ms", "more, ms", "at most 5 ms"]
    print_table(f"Library call per phase, median (range) of {CALLS}", header, rows)


def meter_command() -> list[str]:
    """The installed command."""
    return [str(Path(sys.executable).with_name("neurotier")), "meter", "--quiet"]


def start_times() -> dict[str, list[float]]:
    """Wall time of the command, ms, of what it runs, and of an interpreter that does nothing, in turn."""
    python = str(Path(sys.executable))
    # an installed package is compiled; a checkout that has just been edited would be at every start
    subprocess.run([python, "-m", "compileall", "-q", str(ROOT / "workflow" / "neurotier")], check=True)
    environment = os.environ | {"PYTHONPATH": str(ROOT / "workflow")}  # this checkout, whatever is installed
    with tempfile.TemporaryDirectory(prefix="neurotier-metering-") as folder:
        ways = {
            "true": TRUE,
            "/usr/bin/time true": ["/usr/bin/time", *TRUE],
            "python -c pass": [python, "-c", "pass"],
            "neurotier meter --quiet -- true": [*meter_command(), "--", *TRUE],
            "neurotier meter --record FILE -- true": [*meter_command()[:-1], "--record", f"{folder}/r", "--", *TRUE],
            "neurotier meter -- true": [*meter_command()[:-1], "--", *TRUE],
        }
        times: dict[str, list[float]] = {name: [] for name in ways}
        for _ in range(STARTS):
            for name, command in ways.items():
                quietly = partial(
                    subprocess.run, command, check=True, stderr=subprocess.DEVNULL, cwd=folder, env=environment
                )
                times[name].append(milliseconds(quietly))
    return times


def print_starts() -> None:
    """The command against what it runs, and against an interpreter that does nothing."""
    rows, times = [], start_times()
    for name, values in times.items():
        extra = [value - bare for value, bare in zip(values, times["true"], strict=True)]
        judgement = verdict(statistics.median(extra), START_MS) if "meter" in name else ""
        rows.append([name, spread(values, 1), "" if name == "true" else spread(extra, 1), judgement])
    header = ["command", "wall, ms", "over true, ms", f"at most {START_MS:g} ms"]
    print_table(f"Start of the command, median (range) of {STARTS}", header, rows)


def print_many_children(where: Bench) -> None:
    """A load of many short children, bare and metered in turn; and the CPU time of the command itself."""
    from neurotier.meter.measure import measure_command

    load = where.load("children", CHILDREN, CHILD_S)
    own: list[float] = []

    def by_command() -> None:
        with tempfile.NamedTemporaryFile(prefix="neurotier-metering-") as record:
            process = subprocess.Popen([*meter_command(), "--record", record.name, "--", *load])
            _, status, usage = os.wait4(process.pid, 0)
            process.returncode = os.waitstatus_to_exitcode(status)
            if process.returncode:
                sys.exit(f"the load ended with {process.returncode}")
            said = json.loads(record.read())
            own.append(100 * (usage.ru_utime + usage.ru_stime - said["cpu_s"]) / said["wall_s"])

    ways: list[tuple[str, Callable[[], object]]] = [
        ("bare", partial(bare_fork, load)),
        ("library call", partial(measure_command, load)),
        ("neurotier meter", by_command),
    ]
    wall_s: dict[str, list[float]] = {name: [] for name, _ in ways}
    for _ in range(ROUNDS):
        ways.append(ways.pop(0))  # so that a drift of the machine cancels
        for name, action in ways:
            wall_s[name].append(milliseconds(action) / 1000)
    rows = []
    for name, values in wall_s.items():
        more = [100 * (value / bare - 1) for value, bare in zip(values, wall_s["bare"], strict=True)]
        least = f"{100 * (min(values) / min(wall_s['bare']) - 1):.2f}"  # the runs that were disturbed least
        metered = [] if name == "bare" else [spread(more), least, verdict(statistics.median(more), 0.5)]
        rows.append([name, spread(values), *metered, *([spread(own)] if name == "neurotier meter" else [])])
    header = ["how", "wall, s", "more, %", "least against least, %", "at most 0.5 %", "own CPU, % of wall"]
    title = f"{CHILDREN:,} children of {1000 * CHILD_S:g} ms, one by one, median (range) of {ROUNDS} rounds"
    print_table(title, header, [[*row, *[""] * (len(header) - len(row))] for row in rows])


@contextmanager
def meters(count: int) -> Iterator[list[int]]:
    """So many meters, each of a command that only waits; their process numbers."""
    from neurotier.meter.measure import measure_command

    pids = []
    for _ in range(count):
        pid = os.fork()
        if pid == 0:
            try:
                measure_command(["sleep", "1000"])
            finally:
                os._exit(0)
        pids.append(pid)
    try:
        time.sleep(1.0)
        yield pids
    finally:
        for pid in pids:
            os.kill(pid, signal.SIGTERM)
        for pid in pids:
            os.waitpid(pid, 0)


def cpu_of(pids: list[int]) -> float:
    """CPU time of processes so far, s."""
    return sum(int(Path(f"/proc/{pid}/schedstat").read_text().split()[0]) for pid in pids) / 1e9


def print_meters(where: Bench) -> None:
    """What a process that ends costs where many meters listen."""
    wall_s: dict[int, list[float]] = {count: [] for count in METERS}
    cpu_s: dict[int, list[float]] = {count: [] for count in METERS}
    idle: dict[int, list[float]] = {count: [] for count in METERS}
    for _ in range(3):
        for count in METERS:
            with meters(count) as pids:
                before = cpu_of(pids)
                time.sleep(1.0)
                after = cpu_of(pids)
                idle[count].append(100 * (after - before) / max(count, 1))
                wall_s[count].append(milliseconds(lambda: subprocess.run(where.load("forks", ENDS), check=True)) / 1000)
                cpu_s[count].append(cpu_of(pids) - after)
    rows = []
    for count in METERS:
        more = [1e6 * (value - bare) / ENDS for value, bare in zip(wall_s[count], wall_s[0], strict=True)]
        each = [1e6 * value / ENDS / max(count, 1) for value in cpu_s[count]]
        costs = [spread(more, 0), spread(each, 1), spread(idle[count])] if count else ["", "", ""]
        rows.append([count, spread(wall_s[count]), *costs])
    header = [
        *("meters", f"{ENDS:,} true, s", "more wall per end, microseconds"),
        *("CPU of each meter per end, microseconds", "CPU of each idle meter, % of wall"),
    ]
    print_table("Meters at the same time, median (range) of 3", header, rows)


def verdict(value: float, limit: float) -> str:
    return "reached" if value <= limit else "MISSED"


def main() -> None:
    print_calls()
    print_starts()
    with bench() as where:
        print_many_children(where)
        print_meters(where)


if __name__ == "__main__":
    if len(sys.argv) == 3:
        print(json.dumps(call_costs(sys.argv[1], ordinary=sys.argv[2] == "1")))
    else:
        main()
