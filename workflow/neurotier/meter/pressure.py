"""Pressure: the time in which some thread was stalled, in the tree's own control group or on the whole machine.

Pressure is wall time, however many threads there are: the time in which at least one of them waited. An existing
control group (version 2) is read and none is made, since moving a process into a new one takes 4 to 25 ms (for the
kernel's grace period), more than metering may cost. Batch systems and containers give each job a group of its own;
where the group is shared with other processes, only the pressure of the machine is known, and is labelled as such.
Source: Linux ``Documentation/accounting/psi.rst`` and ``admin-guide/cgroup-v2.rst``.
"""

from __future__ import annotations

import os

RESOURCES = ("cpu", "io", "memory")


class Pressure:
    """Stall times since a moment; make it with :meth:`start`.

    Attributes
    ----------
    source
        ``cgroup``: the tree's own control group; ``machine``: all processes.
    """

    def __init__(self, files: dict[str, str], source: str) -> None:
        self.files, self.source = files, source
        self.before = self.read()

    @classmethod
    def start(cls) -> Pressure | None:
        """Start counting; ``None`` where the kernel has no pressure information."""
        folder = own_control_group()
        if folder is not None:
            files, source = {name: f"{folder}/{name}.pressure" for name in RESOURCES}, "cgroup"
            if os.path.exists(files["cpu"]):
                return cls(files, source)
        files = {name: f"/proc/pressure/{name}" for name in RESOURCES}
        return cls(files, "machine") if os.path.exists(files["cpu"]) else None

    def read(self) -> dict[str, float]:
        """Total time with some thread stalled, s, per resource."""
        totals = {}
        for name, path in self.files.items():
            try:
                with open(path, "rb") as file:
                    totals[name] = int(file.readline().rpartition(b"total=")[2]) / 1e6
            except (OSError, ValueError):  # switched off (psi=0, cgroup.pressure=0)
                continue
        return totals

    def since_start(self) -> dict[str, float | None]:
        """Stall time since the start, s, per resource; ``None`` where it could not be read."""
        now = self.read()
        return {
            name: now[name] - self.before[name] if name in now and name in self.before else None for name in RESOURCES
        }


def own_control_group() -> str | None:
    """The folder of this process's control group, if no process but its ancestors shares it."""
    try:
        with open("/proc/self/cgroup") as file:
            path = next(line[3:].strip() for line in file if line.startswith("0::"))
        with open("/proc/self/mounts") as file:
            mount = next(words[1] for words in map(str.split, file) if words[2] == "cgroup2")
        if path == "/":
            return None
        with open(f"{mount}{path}/cgroup.procs") as file:
            members = set(map(int, file.read().split()))
    except (OSError, StopIteration):
        return None
    return f"{mount}{path}" if members <= ancestors() else None


def ancestors() -> set[int]:
    """This process and those it descends from."""
    pids, pid = set(), os.getpid()
    while pid > 0:
        pids.add(pid)
        try:
            with open(f"/proc/{pid}/stat", "rb") as file:
                pid = int(file.read().rpartition(b")")[2].split()[1])
        except OSError:
            break
    return pids
