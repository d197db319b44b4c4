"""The rows of the incrementation's tables, the same for all engines."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable

from neurotier.bigbrain.tasks import HEADER, INCREMENT, READ, START_UP, WORK_PHASES, WRITE, Task
from neurotier.core.files import read_json
from neurotier.core.parallelism import Span, extent, peak
from neurotier.core.tables import Row, Rows

TICK_S = 0.01
"""How precisely the kernel tells when a process was started, s."""


def records_of(task: Task) -> Rows:
    """What all iterations of all blocks left, as far as they are done."""
    places = [task.record(block, k) for block in task.blocks for k in range(1, task.iterations + 1)]
    return [read_json(place) for place in places if place.exists()]


def condition(task: Task) -> Row:
    """What tells a run from others."""
    return {name: getattr(task, name) for name in ("engine", "tier", "parallelism", "repetition")}


def phase_rows(task: Task, records: Iterable[Row]) -> Rows:
    """One row per phase, iteration and block."""
    return [
        condition(task) | {"iteration": record["iteration"], "block": record["block"]} | phase
        for record in records
        for phase in record["phases"]
    ]


def run_row(task: Task, records: Rows, checked: Row, finished: Row, starts: int = 1) -> Row:
    """One run: makespan, phase sums, parallelism, and whether it is valid.

    Parameters
    ----------
    task, records
        The run, and what its iterations left.
    checked, finished
        What its check and its engine left; empty without.
    starts
        How often Spark was started for it.
    """
    driver, seconds, moved = finished.get("driver"), Counter[str](), Counter[str]()
    for phase in (phase for record in records for phase in record["phases"]):
        seconds[phase["phase"]] += phase["duration_s"]
        moved[phase["phase"]] += phase["bytes"]
    whole = [span(record) for record in records] + ([(driver["start_s"], driver["end_s"])] if driver else [])
    ends = extent(whole)
    makespan_s = ends and ends[1] - ends[0]
    most = peak([busy(record) for record in records])
    reasons = invalid_because(task, records, checked, most, starts)
    return condition(task) | {
        "valid": f"invalid: {'; '.join(reasons)}" if reasons else "valid",
        "host": task.host or None,
        "pairing": task.pairing,
        "cache": task.cache,
        "pinned": task.pinned,
        "iterations": task.iterations,
        "blocks": len(task.blocks),
        "block_bytes": sum(block.bytes for block in task.blocks),
        "incomplete_blocks": len(task.incomplete()),
        "makespan_s": makespan_s,
        "start_up_s": seconds[START_UP] + (driver["session_s"] if driver else 0),
        "load_header_s": seconds[HEADER],
        "read_s": seconds.get(READ),
        "increment_s": seconds[INCREMENT],
        "write_s": seconds[WRITE],
        "mean_parallelism": sum(seconds[name] for name in WORK_PHASES) / makespan_s if makespan_s else None,
        "peak_parallelism": most,
        "read_bytes": moved[READ if READ in seconds else INCREMENT],
        "written_bytes": moved[WRITE],
        "wrapped_voxels": sum(record["wrapped_voxels"] for record in records),
        "max_rss_bytes": max((record["max_rss_bytes"] for record in records), default=None),
        "garbage_s": math.fsum(driver["garbage_s"]) if driver else None,
        "sha256": checked.get("sha256"),
    }


def span(record: Row) -> Span:
    """When an iteration of a block began and ended, s since 1970."""
    return min(phase["start_s"] for phase in record["phases"]), max(phase["end_s"] for phase in record["phases"])


def busy(record: Row) -> Span:
    """When it ran beside others: the start of a process is known to 10 ms only, and may seem to precede it."""
    start_s, end_s = span(record)
    return start_s + TICK_S * any(phase["phase"] == START_UP for phase in record["phases"]), end_s


def invalid_because(task: Task, records: Rows, checked: Row, most: int, starts: int) -> list[str]:
    """Why a run's makespan cannot be compared with others; empty if it can.

    Every incomplete block is named: the published runs lost some in silence.
    """
    reasons, incomplete = [], task.incomplete()
    if incomplete:
        names = ", ".join(incomplete)
        reasons.append(f"{len(incomplete)} of {len(task.blocks)} blocks are incomplete: {names}")
    elif not checked:
        reasons.append("its output was not checked")
    wrong = [one["block"] for one in checked.get("blocks", []) if not one["equal"]]
    if wrong:
        reasons.append(f"{len(wrong)} blocks are not what was read + {task.iterations}: {', '.join(wrong)}")
    if starts > 1 or any(record["attempt"] != task.attempt for record in records):
        reasons.append("it was interrupted and taken up again")
    if task.cache_problem:
        reasons.append(task.cache_problem)
    asked = min(task.parallelism, len(task.blocks))
    if not incomplete and most < asked:
        reasons.append(f"at most {most} blocks ran at once, not {asked}")
    return reasons


def outputs_text(rows: Iterable[Row]) -> str:
    """Whether the outputs of the runs that were checked are the same; empty of fewer than two."""
    checksums = [row["sha256"] for row in rows if row["sha256"]]
    same = "byte-identical" if len(set(checksums)) == 1 else "NOT the same"
    return f"outputs of {len(checksums)} runs are {same}" if len(checksums) > 1 else ""
