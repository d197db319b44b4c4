"""What this very process has cost since it was born: the start-up of a job, before its first phase.

Every figure is the process's own and exact; all but stalls for memory are had without privileges. The kernel tells
the moment of birth to a clock tick (10 ms): the wall time may be that much too long, which is then called asleep.
"""

from __future__ import annotations

import os
import resource
import time

from neurotier.meter.exits import delays_accounted, own_record, run_queue_accounted
from neurotier.meter.tree import read_io
from neurotier.meter.usage import Usage

TICKS_PER_S = os.sysconf("SC_CLK_TCK")


def own_fields() -> list[bytes]:
    """What the kernel says of this process, from field 3 of proc(5) on."""
    with open("/proc/self/stat", "rb") as file:
        return file.read().rpartition(b")")[2].split()


def age_s() -> float:
    """How long this process has been there, s."""
    return time.clock_gettime(time.CLOCK_BOOTTIME) - int(own_fields()[19]) / TICKS_PER_S


def times_so_far() -> dict[str, float]:
    """Wall time, CPU time with that of children, and waiting for a core, s; of a process that may have threads."""
    spent = os.times()
    queued_s = 0.0
    if run_queue_accounted():
        with open("/proc/self/schedstat", "rb") as file:
            queued_s = int(file.read().split()[1]) / 1e9
    cpu_s = spent.user + spent.system + spent.children_user + spent.children_system
    return {"wall_s": age_s(), "cpu_s": cpu_s, "run_queue_s": queued_s}


def usage_since_birth() -> Usage:
    """What this process and its children have cost so far. It must have one thread."""
    fields, wall_s = own_fields(), age_s()
    now_s = time.time()
    usage = Usage(now_s - wall_s)
    usage.end_s, usage.wall_s = now_s, wall_s
    for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN):
        spent = resource.getrusage(who)
        usage.user_s += spent.ru_utime
        usage.system_s += spent.ru_stime
        usage.minor_faults += spent.ru_minflt
        usage.major_faults += spent.ru_majflt
        usage.voluntary_switches += spent.ru_nvcsw
        usage.involuntary_switches += spent.ru_nivcsw
    usage.cpu_source = "getrusage"
    usage.max_rss_bytes, usage.memory_source = largest_resident_set(), "procfs"
    read_logical, written_logical, read_device, written_device, cancelled = read_io("/proc/self/io")
    usage.logical_read_bytes, usage.logical_written_bytes = read_logical, written_logical
    usage.device_read_bytes, usage.device_written_bytes = read_device, max(0, written_device - cancelled)
    usage.bytes_source = "procfs"
    record = own_record()
    if record is not None and delays_accounted():
        usage.run_queue_s = record.run_queue_ns / 1e9
        usage.block_io_s = None if record.misbooked_ns else record.block_io_ns / 1e9
        usage.memory_stall_s = record.memory_ns / 1e9
        usage.wait_source, usage.seen_share = "taskstats", 1.0
    elif run_queue_accounted() and delays_accounted():
        with open("/proc/self/schedstat", "rb") as file:
            usage.run_queue_s = int(file.read().split()[1]) / 1e9
        usage.block_io_s = min(int(fields[39]) / TICKS_PER_S, max(0.0, wall_s - usage.cpu_s - usage.run_queue_s))
        usage.wait_source, usage.seen_share = "procfs", 1.0
    usage.divide(None, None)
    return usage


def largest_resident_set() -> int:
    """Of this program, bytes; ``getrusage`` would count the image it was forked with as well."""
    with open("/proc/self/status", "rb") as file:
        return next(1024 * int(line.split()[1]) for line in file if line.startswith(b"VmHWM:"))
