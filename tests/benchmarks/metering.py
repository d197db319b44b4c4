"""Metering: what it costs, over the same thing unmetered in the same run.

The library call per phase, in a process like that of a participant job and in one with nibabel besides; and the command
``neurotier meter``.
"""

from __future__ import annotations

import ctypes
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path

from bench import print_table, spread
from support import ENVIRONMENT, NOBODY, ROOT

CALLS = 100
STARTS = 40
START_MS = 25.0
"""What the command may take over what it runs."""

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


def verdict(value: float, limit: float) -> str:
    return "reached" if value <= limit else "MISSED"


def main() -> None:
    print_calls()
    print_starts()


if __name__ == "__main__":
    if len(sys.argv) == 3:
        print(json.dumps(call_costs(sys.argv[1], ordinary=sys.argv[2] == "1")))
    else:
        main()
