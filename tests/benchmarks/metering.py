"""Metering: what a phase costs over the bare command, for a command and for a Python function."""

from __future__ import annotations

import subprocess
import time
from collections.abc import Callable
from functools import partial

from bench import print_table, spread
from neurotier.meter import measure_command, measure_function, run_in_phase

REPETITIONS = 200


def milliseconds(action: Callable[[], object]) -> float:
    begin = time.perf_counter()
    action()
    return 1000 * (time.perf_counter() - begin)


def main() -> None:
    import nibabel  # noqa: F401  # as large a process as a participant job may be

    rows = []
    for command in (["true"], ["sh", "-c", "sleep 0.02 & sleep 0.02; wait"]):
        actions: dict[str, Callable[[], object]] = {
            "bare": partial(subprocess.run, command, check=True),
            "metered command": partial(measure_command, command),
            "metered function": partial(measure_function, partial(run_in_phase, command)),
        }
        times: dict[str, list[float]] = {name: [] for name in actions}
        for _ in range(REPETITIONS):
            for name, action in actions.items():
                times[name].append(milliseconds(action))
        for name, values in times.items():
            extra = [value - bare for value, bare in zip(values, times["bare"], strict=True)]
            rows.append([" ".join(command), name, spread(values), "" if name == "bare" else spread(extra)])
    header = ["command", "how", "wall, ms", "over the bare command, ms"]
    print_table(f"Metering, median (range) of {REPETITIONS}", header, rows)


if __name__ == "__main__":
    main()
