"""The cost of this process itself since it was started: the start-up of a job, before its first phase.

The figures are exact, and none but stalls for memory need privileges. The kernel gives the start time in clock ticks
(10 ms), so the wall time of a process that was not started by ``fork_process`` may be one tick too long; the account
shows that as sleep.
"""

from __future__ import annotations

import os
import resource
import time

from neurotier.core import processes
from neurotier.meter.exits import delays_accounted, record_of, run_queue_accounted
from neurotier.meter.lap import TOLERANCE_S
from neurotier.meter.tree import TICKS_PER_S, queued_s, read_io, stat_fields, status
from neurotier.meter.usage import SWITCHED_OFF, Usage


def age_s() -> float:
    """Age of this process, s."""
    born_s = processes.forked_s or int(stat_fields("/proc/self/stat")[19]) / TICKS_PER_S
    return time.clock_gettime(time.CLOCK_BOOTTIME) - born_s


def times_so_far() -> dict[str, float]:
    """Wall time, CPU time including that of children, and the main thread's time waiting for a core, s; the process may
    have several threads."""
    spent = os.times()
    cpu_s = spent.user + spent.system + spent.children_user + spent.children_system
    return {"wall_s": age_s(), "cpu_s": cpu_s, "run_queue_s": queued_s()}


def usage_since_birth() -> Usage:
    """The cost of this process, which must have a single thread, and of its children so far."""
    fields, wall_s = stat_fields("/proc/self/stat"), age_s()
    now_s = time.time()
    usage = Usage(now_s - wall_s)
    usage.end_s, usage.wall_s = now_s, wall_s
    for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN):
        usage.add_spent(resource.getrusage(who))
    usage.cpu_source = "getrusage"
    # ``getrusage`` would include the image of the process that forked it
    usage.max_rss_bytes, usage.memory_source = 1024 * status("/proc/self")[b"VmHWM"], "procfs"
    usage.take_bytes(read_io("/proc/self/io"))
    record, delays = record_of(), delays_accounted()
    if record is not None and delays:
        usage.run_queue_s = record.run_queue_ns / 1e9
        usage.block_io_s = None if record.misbooked_ns else record.block_io_ns / 1e9
        usage.memory_stall_s = record.memory_ns / 1e9
        usage.wait_source, usage.seen_share = "taskstats", 1.0
    elif run_queue_accounted():
        usage.run_queue_s = queued_s()
        usage.wait_source, usage.seen_share = "procfs", 1.0
        if delays:
            waited_s, room_s = int(fields[39]) / TICKS_PER_S, max(0.0, wall_s - usage.cpu_s - usage.run_queue_s)
            usage.block_io_s = min(waited_s, room_s) if waited_s <= room_s + TOLERANCE_S else None
        else:
            usage.account_reason = SWITCHED_OFF
    usage.divide(None, None)
    return usage
