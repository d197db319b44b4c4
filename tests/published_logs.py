"""Small logs as the published experiment wrote them, with numbers that are easy to check by hand."""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from pathlib import Path

START_S = 1572374320.0
DRAM_25 = "1572373516-tmpfsAD_1it_25cpus_40bb-0.out"
SPARK_25 = "spark-1572519685-optaneAD_1it_25cpus_20bb-0.out"
DISK_BENCH = "Device,Write,Read,CacheRead\n"


def block_name(number: int, resolution_um: int = 40) -> str:
    """The name of a block of an image."""
    first, second, third = {40: (769, 603, 694), 20: (770, 604, 695)}[resolution_um]
    side = {40: 5, 20: 10}[resolution_um]
    x, y, z = number // side**2, number // side % side, number % side
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


def whole_log(wave_s: float, at_once: int = 25, failing: Iterable[int] = ()) -> str:
    """A log of all blocks in waves; half of the time is writing, and those that fail have no write."""
    times = (0.25, wave_s / 2 - 0.5, wave_s / 2)
    return "".join(
        task(number, number // at_once * wave_s, times[:2] if number in failing else times) for number in range(125)
    )


def spark_task(number: int, clock: float, at_once: int, times_s: Sequence[float] = (1.0, 2.0, 1.0)) -> str:
    """The rows of one task of Spark, from a moment on."""
    rows = ""
    for phase, time_s in zip(("load_img", "increment_data", "save_incremented"), times_s, strict=True):
        rows += f"{phase},{clock!r},{clock + time_s!r},{block_name(number, 20)},{140000 + number % at_once}\n"
        clock += time_s
    return rows


def spark_log(blocks: int = 8, at_once: int = 4, driver_s: float = 20.0) -> str:
    """A log of Spark, in waves of 1 + 2 + 1 s from 5 s on."""
    tasks = [spark_task(number, 5.0 + 4.0 * (number // at_once), at_once) for number in range(blocks)]
    return f"driver_program,0,{driver_s!r},/out/spark-run-0,allfiles\n{''.join(tasks)}"


def write_log(folder: Path, name: str, text: str) -> Path:
    """A log in a folder, which is made."""
    file = folder / name
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(text)
    return file


def bids_task(name: str, start: str, end: str, **changes: str) -> dict[str, str]:
    """What the log of a run of the BIDS App example says of a participant."""
    times = {"user time": "0m30.500s", "real time": "1m0.250s", "system time": "0m4.500s"}
    days = {"Start": f"Tue Sep  3 {start} EDT 2019", "Finish": f"Tue Sep  3 {end} EDT 2019"}
    return {**days, "Name": name, "Exit code": "0", **times, **changes}


def bids_tasks(minutes: int) -> str:
    """The log of a run of one participant."""
    only = bids_task("NYU_1_0025427", "17:20:00", f"17:{20 + minutes}:00", **{"real time": f"{minutes}m0.000s"})
    return json.dumps({"tasks": [only]})


def write_checkout(root: Path) -> Path:
    """A small checkout: four conditions at 40 um, one of them twice, storage benchmark, one BIDS App run."""
    bench = [f"{label},2 GB/s,4 GB/s,4 GB/s\n" for label in ("tmpfsAD", "optaneAD")]
    bench += [f"{label},100 MB/s,200 MB/s,4 GB/s\n" for label in ("localAD", "isilonAD")]
    blocks = {
        "40bb_redo/10-tmpfsAD_1it_25cpus_40bb-0.out": whole_log(2.0),
        "40bb_redo/11-tmpfsAD_1it_25cpus_40bb-1.out": whole_log(4.0),
        "40bb_redo/12-tmpfs_1it_25cpus_40bb-0.out": whole_log(6.0),
        "40bb_redo/13-localAD_1it_25cpus_40bb-0.out": whole_log(60.0, failing=(100, 124)),
        "40bb_redo/14-isilonAD_1it_96cpus_40bb-0.out": whole_log(300.0, at_once=96),
        "9-tmpfs_1it_25cpus_60delay_withpc-0.out": whole_log(70.0),
        "9-tmpfs_1it_25cpus_40bb-0.out": whole_log(8.0),
        "8-isilon_1it_25cpus_40bb-0.out": task(0, 0.0),
        "notes.out": "nothing\n",
    }
    others = {
        "system_conf/ad_diskbench.out": DISK_BENCH + "".join(bench),
        "bids-app-example/disk-4/tasks.json": bids_tasks(2),
        "bids-app-example/disk-4/makespan_seconds": "113\n",
    }
    for name, text in blocks.items():
        write_log(root / "experiments" / "bigbrain-incrementation" / "results", name, text)
    for name, text in others.items():
        write_log(root / "experiments", name, text)
    return root
