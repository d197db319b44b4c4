"""What other processes took of the processors while a process tree ran: the busy time minus the time of the tree.

Source: proc(5), ``/proc/stat`` and ``/proc/PID/stat``. Both count in ticks of 10 ms. Busy time is user and system time,
which in Linux includes that of guests, and the time that a hypervisor gave to other machines (steal). Idle time and
waiting for I/O do not count as busy. The time of interrupts and of kernel threads is attributed to no process: kernel
threads mostly write back what processes have written.
"""

from __future__ import annotations

import os
import time
from collections.abc import Collection, Iterable, Sequence
from itertools import pairwise
from typing import NamedTuple

from neurotier.meter.tree import TICKS_PER_S, children, descendants, read_proc, stat_fields

KTHREADD = 2
"""Process ID of the parent of all kernel threads; in a container's PID namespace it is that of another process, or of
none."""

SHORTEST_S = 2.0
"""Shortest span that is judged, s: in a shorter one, the result would depend on ticks and on the time between
readings."""


class Reading(NamedTuple):
    """Processor time used up to a moment, s.

    Attributes
    ----------
    time_s
        The moment, s since 1970.
    booted_s
        When the machine started, s since 1970, by its present clock: the value changes when the clock is set.
    busy_s
        Time in which the processors were busy or stolen.
    tree_s
        CPU time of the tree: of all live processes, and of the ended ones that they have waited for.
    kernel_s
        CPU time of the kernel threads.
    open_s
        Uncertainty because of ticks: live processes may have used up to this much more.
    """

    time_s: float
    booted_s: float
    busy_s: float
    tree_s: float
    kernel_s: float
    open_s: float


def read_processors(root: int) -> Reading:
    """Read how busy the processors available to this process were, and how much the tree below ``root`` has used.

    Raises
    ------
    OSError
        If ``root`` has ended.
    """
    stat_fields(f"/proc/{root}/stat")
    allowed = os.sched_getaffinity(0)
    family = [root, *descendants(root)]
    # Children first: a child that ends meanwhile may be counted twice. In the other order it might be left out, and its
    # time would count as that of other processes.
    tree_s = sum(used_s(pid, 4) for pid in reversed(family))
    whole = len(allowed) == os.cpu_count()
    kernel_s = sum(used_s(pid, 2) for pid in children(KTHREADD)) if whole and is_kernel() else 0.0
    with open("/proc/stat", "rb") as file:
        busy_s = busy_ticks(file, allowed) / TICKS_PER_S
    now_s = time.time()
    booted_s = now_s - time.clock_gettime(time.CLOCK_BOOTTIME)
    return Reading(now_s, booted_s, busy_s, tree_s, kernel_s, 2 * len(family) / TICKS_PER_S)


def used_s(pid: int, times: int) -> float:
    """User and system time of a process, s; with ``times`` 4, also of the children that it has waited for."""
    try:
        return sum(map(int, stat_fields(f"/proc/{pid}/stat")[11 : 11 + times])) / TICKS_PER_S
    except OSError:  # the process has ended
        return 0.0


def is_kernel() -> bool:
    """Whether process 2 is the parent of kernel threads."""
    try:
        return read_proc(f"/proc/{KTHREADD}/comm") == b"kthreadd\n"
    except OSError:
        return False


def busy_ticks(lines: Iterable[bytes], allowed: Collection[int]) -> int:
    """Ticks in which the allowed processors were busy or stolen since the machine started.

    Of 7 + 2 + 3 busy ticks, 5 are a guest's and are counted once; 4 ticks were stolen; 40 idle ones, 9 of waiting for
    I/O, and 1 + 1 of interrupts do not count:

    >>> busy_ticks([b"cpu 14 4 6 80 18 2 2 8 10 0", b"cpu0 7 2 3 40 9 1 1 4 5 0", b"intr 1"], {0, 1})
    16
    """
    ticks = 0
    for line in lines:
        name, *counts = line.split()
        if name[:3] == b"cpu" and name[3:] and int(name[3:]) in allowed:
            user, nice, system, _, _, _, _, stolen = map(int, counts[:8])
            ticks += user + nice + system + stolen
    return ticks


def others_share(readings: Sequence[Reading], start_s: float, end_s: float, processors: int) -> float | str:
    """The least share of the processors' time that other processes can have taken in a span; or why that is unknown.

    Time that is uncertain because of ticks is attributed to the tree.

    Parameters
    ----------
    readings
        In order of time.
    start_s, end_s
        The span, s since 1970.
    processors
        Number of processors that the tree could use.

    Examples
    --------
    Two processors are busy for 10 s, of which the tree used 15 s:

    >>> readings = [Reading(0.0, 0.0, 100.0, 3.0, 0.0, 0.0), Reading(10.0, 0.0, 120.0, 18.0, 0.0, 0.0)]
    >>> others_share(readings, 0.0, 10.0, 2), others_share(readings, 2.0, 6.0, 2)
    (0.25, 0.25)
    >>> others_share(readings, 2.0, 3.0, 2), others_share(readings, 2.0, 11.0, 2)
    ('shorter than 2 s', 'not watched from its start to its end')
    """
    if end_s - start_s < SHORTEST_S:
        return f"shorter than {SHORTEST_S:g} s"
    if not readings or not readings[0].time_s <= start_s or not end_s <= readings[-1].time_s:
        return "not watched from its start to its end"
    others_s = open_s = 0.0
    for before, after in pairwise(readings):
        lasted_s = after.time_s - before.time_s
        within_s = min(end_s, after.time_s) - max(start_s, before.time_s)
        if within_s <= 0 or lasted_s <= 0:
            continue
        # Both sums drop when a process leaves the tree or a kernel thread ends: its earlier time must not count as
        # others'.
        own_s = max(0.0, after.tree_s - before.tree_s) + max(0.0, after.kernel_s - before.kernel_s)
        others_s += (after.busy_s - before.busy_s - own_s) * within_s / lasted_s
        open_s = after.open_s  # only that of the last reading: earlier uncertain time has been booked by then
    return min(1.0, max(0.0, others_s - open_s) / (processors * (end_s - start_s)))  # ticks may give more than 1
