"""A lap: the cost of a running child and its descendants from its start until now.

A lap divides a phase at a moment at which no process ends: when the container has started, but its command has not. The
lap's figures are subtracted from those of the phase, so that the two parts add up to what was measured for the whole
phase. All figures come from procfs; a descendant that has ended is included if its parent has waited for it.
"""

from __future__ import annotations

import os
import time
from collections.abc import Sequence

from neurotier.meter.exits import delays_accounted, run_queue_accounted
from neurotier.meter.tree import TICKS_PER_S, descendants, read_io, read_proc, stat_fields, status
from neurotier.meter.usage import ACCOUNT, BYTES, COUNTS, SWITCHED_OFF, Usage

SECONDS = ("user_s", "system_s", "run_queue_s", "block_io_s")
TOLERANCE_S = 2 / TICKS_PER_S


def lap_of(pid: int, start_s: float, began_s: float) -> Usage:
    """The cost of a child of this process and its descendants until now.

    Parameters
    ----------
    pid
        The child.
    start_s
        When it was started, s since 1970.
    began_s
        The same by the monotonic clock, s.
    """
    usage = Usage(start_s)
    usage.wall_s = time.monotonic() - began_s
    usage.end_s = start_s + usage.wall_s
    usage.cpu_source = usage.memory_source = usage.wait_source = "procfs"
    usage.run_queue_s = usage.block_io_s = 0.0
    moved: list[int] | None = [0, 0, 0, 0]
    for process in (pid, *descendants(pid)):
        try:
            take_process(usage, process)
            moved = moved and [a + b for a, b in zip(moved, read_io(f"/proc/{process}/io"), strict=True)]
        except PermissionError:  # of a setuid container engine
            moved = None
        except OSError:  # the process has ended
            continue
    usage.take_bytes(moved)
    if not run_queue_accounted():
        usage.run_queue_s = usage.block_io_s = usage.wait_source = None
    elif not delays_accounted():
        usage.block_io_s, usage.account_reason = None, SWITCHED_OFF
    usage.divide(None, None)
    usage.account = usage.account and "scaled"  # several threads may have been active at once
    return usage


def take_process(usage: Usage, pid: int) -> None:
    """Add one process, its threads, and its children that have ended."""
    fields = stat_fields(f"/proc/{pid}/stat")
    usage.user_s += int(fields[13]) / TICKS_PER_S  # time of children that were waited for; proc(5), field 16
    usage.system_s += int(fields[14]) / TICKS_PER_S
    usage.minor_faults += int(fields[8])
    usage.major_faults += int(fields[10])
    for thread in os.listdir(f"/proc/{pid}/task"):
        folder = f"/proc/{pid}/task/{thread}"
        fields = stat_fields(f"{folder}/stat")
        runtime_ns, run_queue_ns, _ = map(int, read_proc(f"{folder}/schedstat").split())
        user, system = int(fields[11]), int(fields[12])  # ticks are used only to divide the scheduler's exact time
        share = user / (user + system) if user + system else 0.5
        usage.user_s += share * runtime_ns / 1e9
        usage.system_s += (1 - share) * runtime_ns / 1e9
        usage.run_queue_s = (usage.run_queue_s or 0.0) + run_queue_ns / 1e9
        waited_s = int(fields[39]) / TICKS_PER_S
        if usage.block_io_s is not None:  # unknown if misbooked (see records.Branch)
            usage.block_io_s = usage.block_io_s + waited_s if waited_s <= usage.wall_s + TOLERANCE_S else None
        usage.minor_faults += int(fields[7])
        usage.major_faults += int(fields[9])
        numbers = status(folder)
        usage.max_rss_bytes = max(usage.max_rss_bytes, 1024 * numbers.get(b"VmHWM", 0))
        usage.voluntary_switches += numbers[b"voluntary_ctxt_switches"]
        usage.involuntary_switches += numbers[b"nonvoluntary_ctxt_switches"]


def subtract_lap(lap: Usage, whole: Usage) -> None:
    """Subtract a lap from the phase that it is the beginning of; what remains is the part of the phase after the lap.

    The two add up to the phase as measured. A figure of the lap may exceed that of the phase by the resolution of a
    clock; the remainder is then 0. The time before the lap (loading modules, about 0.1 s) stays in the remaining part,
    and the lap is moved to the beginning of the phase, so that the two do not overlap.

    A lap knows nothing about the phase's own process and, if the kernel does not account for waits for storage, cannot
    distinguish them from sleep. Time of the lap without a known cause is subtracted from the phase's sleep first, then
    from its waiting for a core, and last from its waiting for storage, which is therefore rather too long than too
    short in the rest of the phase.
    """
    lap.start_s = whole.start_s
    lap.end_s = whole.start_s = lap.start_s + lap.wall_s
    whole.wall_s = max(0.0, whole.wall_s - lap.wall_s)
    for name in (*SECONDS, *COUNTS, *BYTES):
        subtract(whole, name, getattr(lap, name))
    if whole.account is None:
        return
    for name in ACCOUNT:
        subtract(whole, name, getattr(lap, name))
    subtract(whole, "account_other_s", max(0.0, lap.residual_s or 0.0))
    for name in ("account_other_s", "account_run_queue_s", "account_block_io_s"):
        subtract(whole, name, max(0.0, -whole.unexplained_s))
    whole.residual_s = whole.unexplained_s


def subtract(usage: Usage, name: str, amount: float | None) -> None:
    """Subtract an amount from a figure, if both are known."""
    value = getattr(usage, name)
    if value is not None and amount is not None:
        setattr(usage, name, max(type(value)(0), value - amount))


def joined(laps: Sequence[Usage]) -> Usage:
    """The sum of the laps of one phase, as one lap at the time of the first; a figure that one of them lacks is
    unknown."""
    whole = laps[0]
    for lap in laps[1:]:
        whole.wall_s += lap.wall_s
        whole.end_s = whole.start_s + whole.wall_s
        for name in (*SECONDS, *COUNTS, *BYTES, *ACCOUNT):
            one, other = getattr(whole, name), getattr(lap, name)
            setattr(whole, name, None if one is None or other is None else one + other)
        whole.account = whole.account and lap.account
        whole.residual_s = whole.unexplained_s if whole.account else None
        whole.max_rss_bytes = max(whole.max_rss_bytes, lap.max_rss_bytes)
        whole.input_resident_after = lap.input_resident_after
    return whole
