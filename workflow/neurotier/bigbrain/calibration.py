"""What an engine costs besides the blocks' bytes, learned from a short run of it on small blocks."""

from __future__ import annotations

import statistics
from collections.abc import Sequence
from dataclasses import dataclass

from neurotier.bigbrain.tabulation import busy, span
from neurotier.bigbrain.tasks import INCREMENT, START_UP, Task
from neurotier.core.errors import InputError
from neurotier.core.files import Record
from neurotier.core.parallelism import peak
from neurotier.model.machine import Processors


@dataclass(frozen=True)
class Calibration:
    """What was learned of an engine at a parallelism; of what was seen several times, the median.

    Attributes
    ----------
    start_cpu_s
        CPU time of the start of a process, s; 0 of an engine whose processes outlive a block.
    gap_s
        What passed between the end of a block and the start of the one that took its place, s.
    increment_cpu_s_per_byte
        CPU time of adding one, s/byte; with the pairing ``published`` reading from memory is within it.
    around_s
        What passed before the first block and after the last one, s: the start and the end of Spark's session.
    """

    start_cpu_s: float
    gap_s: float
    increment_cpu_s_per_byte: float
    around_s: float


def learn(task: Task, records: Sequence[Record], finished: Record, processors: Processors) -> Calibration:
    """Learn from a calibration.

    Parameters
    ----------
    task, records, finished
        The run, what its blocks left, and what its engine did.
    processors
        On which it ran: with more processes than these, times were longer than CPU times.

    Raises
    ------
    InputError
        If it left nothing.
    """
    last = max(records, key=lambda record: span(record)[1], default={}).get("attempt")
    records = [record for record in records if record.get("attempt") == last]  # what lies between two is no gap
    phases = [phase for record in records for phase in record["phases"]]
    incremented = [phase for phase in phases if phase["phase"] == INCREMENT]
    if not incremented:
        raise InputError("a calibration left no record", f"run {task.run}", "start with --forcerun begin_increment")
    at_once = peak([busy(record) for record in records])
    starts, ends = (sorted(times) for times in zip(*map(span, records), strict=True))
    gaps = [max(0.0, start - end) for start, end in zip(starts[at_once:], ends, strict=False)]
    starting_s = [phase["duration_s"] for phase in phases if phase["phase"] == START_UP]
    speed, driver = processors.speed(at_once), finished.get("driver")
    increment_s, increment_bytes = (sum(phase[name] for phase in incremented) for name in ("duration_s", "bytes"))
    return Calibration(
        start_cpu_s=speed * statistics.median(starting_s or [0.0]),
        gap_s=statistics.median(gaps or [0.0]),
        increment_cpu_s_per_byte=speed * increment_s / increment_bytes,
        around_s=driver["end_s"] - driver["start_s"] - (ends[-1] - starts[0]) if driver else 0.0,
    )
