"""Metering: what the start of ``neurotier meter`` takes over what it runs, beside an interpreter that does nothing."""

from __future__ import annotations

import os
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from bench import print_table, spread
from support import ROOT

STARTS = 40
GOAL_MS = 25.0
"""What the command may take over what it runs."""

METER = [str(Path(sys.executable).with_name("neurotier")), "meter"]  # the installed command


def start_times_ms() -> dict[str, list[float]]:
    """Wall time of the command, ms, of what it runs, and of an interpreter that does nothing, in turn."""
    # an installed package is compiled; a checkout that has just been edited would be at every start
    subprocess.run([sys.executable, "-m", "compileall", "-q", str(ROOT / "workflow" / "neurotier")], check=True)
    environment = os.environ | {"PYTHONPATH": str(ROOT / "workflow")}  # this checkout, whatever is installed
    ways = {
        "true": ["true"],
        "/usr/bin/time true": ["/usr/bin/time", "true"],
        "python -c pass": [sys.executable, "-c", "pass"],
        "neurotier meter --quiet -- true": [*METER, "--quiet", "--", "true"],
        "neurotier meter --record FILE -- true": [*METER, "--record", "record", "--", "true"],
        "neurotier meter -- true": [*METER, "--", "true"],
    }
    times_ms: dict[str, list[float]] = {name: [] for name in ways}
    with tempfile.TemporaryDirectory(prefix="neurotier-metering-") as folder:
        for _ in range(STARTS):
            for name, command in ways.items():
                begin_s = time.perf_counter()
                subprocess.run(command, check=True, stderr=subprocess.DEVNULL, cwd=folder, env=environment)
                times_ms[name].append(1000 * (time.perf_counter() - begin_s))
    return times_ms


def main() -> None:
    rows, times_ms = [], start_times_ms()
    for name, values in times_ms.items():
        extra = [value - bare for value, bare in zip(values, times_ms["true"], strict=True)]
        reached = "reached" if statistics.median(extra) <= GOAL_MS else "MISSED"
        rows.append([name, spread(values, 1), spread(extra, 1), reached if "meter" in name else ""])
    header = ["command", "wall, ms", "over true, ms", f"at most {GOAL_MS:g} ms"]
    print_table(f"Start of the command, median (range) of {STARTS}", header, rows)
