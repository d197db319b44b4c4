"""Pressure: the time during which some thread was stalled, in the tree's own control group or on the whole machine.

Pressure is wall time, independent of the number of threads: the time during which at least one of them waited. An
existing control group (version 2) is read; none is created, since moving a process into a new one takes 4 to 25 ms (for
the kernel's grace period), which is more than metering may cost. Batch systems and containers give each job a group of
its own; if the group is shared with other processes, only the machine's pressure is known, and is labelled as such.
Source: Linux ``Documentation/accounting/psi.rst`` and ``admin-guide/cgroup-v2.rst``.
"""

from __future__ import annotations

import os

from neurotier.meter.tree import read_proc, stat_fields

RESOURCES = ("cpu", "io", "memory")


class Pressure:
    """Stall times since this object was made.

    Attributes
    ----------
    source
        ``cgroup`` for the tree's own control group; ``machine`` for all processes.
    """

    def __init__(self) -> None:
        group = own_control_group()
        self.files, self.source = {name: f"{group}/{name}.pressure" for name in RESOURCES}, "cgroup"
        if not os.path.exists(self.files["cpu"]):
            self.files, self.source = {name: f"/proc/pressure/{name}" for name in RESOURCES}, "machine"
        self.before = self.read()

    def read(self) -> dict[str, float]:
        """Total time with some thread stalled, s, for each resource that the kernel reports."""
        totals = {}
        for name, path in self.files.items():
            try:
                some, _, _ = read_proc(path).partition(b"\n")
                totals[name] = int(some.rpartition(b"total=")[2]) / 1e6
            except (OSError, ValueError):  # switched off (psi=0, cgroup.pressure=0)
                continue
        return totals


def own_control_group() -> str | None:
    """The folder of this process's control group; ``None`` if processes other than its ancestors are in the group."""
    try:
        with open("/proc/self/cgroup") as file:
            path = next(line[3:].strip() for line in file if line.startswith("0::"))
        with open("/proc/self/mounts") as file:
            mount = next(words[1] for words in map(str.split, file) if words[2] == "cgroup2")
        if path == "/":
            return None
        members = set(map(int, read_proc(f"{mount}{path}/cgroup.procs").split()))
    except (OSError, StopIteration):
        return None
    return f"{mount}{path}" if members <= ancestors() else None


def ancestors() -> set[int]:
    """This process and its ancestors."""
    pids, pid = set(), os.getpid()
    while pid > 0:
        pids.add(pid)
        try:
            pid = int(stat_fields(f"/proc/{pid}/stat")[1])
        except OSError:
            break
    return pids
