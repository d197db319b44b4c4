"""Small logs as the published experiment wrote them, with numbers that are easy to check by hand."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from pathlib import Path

from support import ROOT

REFERENCE = ROOT.parent / "shared" / "reference" / "published-runs"
"""Logs of the 2020 paper, where they are at hand."""

START_S = 1572374320.0
DRAM_25 = "1572373516-tmpfsAD_1it_25cpus_40bb-0.out"
SPARK_25 = "spark-1572519685-optaneAD_1it_25cpus_20bb-0.out"
DISK_BENCH = "Device,Write,Read,CacheRead\n"


def block_name(number: int, resolution_um: int = 40) -> str:
    """The name of a block of an image."""
    first, second, third = {40: (769, 603, 694), 20: (770, 604, 695)}[resolution_um]
    x, y, z = number // 25 % 5, number // 5 % 5, number % 5
    return f"bigbrain_{first * x}_{second * y}_{third * z}.nii"


def task(number: int, start_s: float, times_s: Sequence[float] = (0.25, 1.0, 0.5)) -> str:
    """The rows of one task of GNU Parallel, which starts 0.25 s before its first phase and ends with its last."""
    clock, rows, block = START_S + start_s + 0.25, [], block_name(number)
    for phase, time_s in zip(("read_file", "increment_file", "write_file"), times_s, strict=False):
        name = f"inc-{block}" if phase == "write_file" else block
        rows.append(f"{phase} {clock!r} {clock + time_s!r} {name} {14000 + number}\n")
        clock += time_s
    if len(times_s) == 3:
        rows.append(f"task_duration {START_S + start_s!r} {clock!r} condition-0 {14000 + number}\n")
    return "".join(rows)


def whole_log(wave_s: float, at_once: int = 25, blocks: int = 125, failing: Iterable[int] = ()) -> str:
    """A log of 125 tasks in waves; those that fail have no write."""
    times = (0.25, wave_s / 2 - 0.5, wave_s / 2)
    return "".join(
        task(number, number // at_once * wave_s, times[:2] if number in failing else times) for number in range(blocks)
    )


def spark_log(blocks: int = 8, at_once: int = 4, driver_s: float = 20.0) -> str:
    """A log of Spark, in waves of 1 + 2 + 1 s from 5 s on."""
    rows = [f"driver_program,0,{driver_s!r},/out/spark-run-0,allfiles\n"]
    for number in range(blocks):
        clock, name = 5.0 + 4.0 * (number // at_once), block_name(number, 20)
        for phase, time_s in (("load_img", 1.0), ("increment_data", 2.0), ("save_incremented", 1.0)):
            rows.append(f"{phase},{clock!r},{clock + time_s!r},{name},{140000 + number % at_once}\n")
            clock += time_s
    return "".join(rows)


def write_log(folder: Path, name: str, text: str) -> Path:
    """A log in a folder, which is made."""
    folder.mkdir(parents=True, exist_ok=True)
    file = folder / name
    file.write_text(text)
    return file
