"""Exit records: what the kernel says of every thread as it ends (taskstats over generic netlink).

Exact for a whole tree, children of microseconds included. A listener hears of every thread of the machine, and
keeps those that descend from this process. It needs CAP_NET_ADMIN in the machine's own name spaces; waits for
storage and memory need ``kernel.task_delayacct=1`` besides.
Source: Linux ``Documentation/accounting/taskstats.rst`` and ``delay-accounting.rst``.
"""

from __future__ import annotations

import _thread
import errno
import os
import socket
import sys

from neurotier.meter.netlink import attributes, find_family, generic_socket, request, send
from neurotier.meter.records import Branch, Family

TASKSTATS = b"TASKSTATS"
GET, ATTR_PID, ATTR_REGISTER_CPUMASK, ATTR_DEREGISTER_CPUMASK = 1, 1, 3, 4
TYPE_TGID, TYPE_STATS, TYPE_AGGR_PID, TYPE_AGGR_TGID = 2, 3, 4, 5
SO_RCVBUFFORCE = 33
BUFFER_BYTES = 16 << 20
"""Room for more than 10,000 records between two looks."""

LONGEST_SILENCE_S = 0.2
DELAY_SWITCH = "/proc/sys/kernel/task_delayacct"

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator


class ExitRecords:
    """Listens to the exit records of the machine; make it with :meth:`listen`.

    Attributes
    ----------
    lost
        True if the kernel dropped records because they were not read in time, or sent some in another layout.
    """

    def __init__(self, sock: socket.socket, family_number: int, cpus: bytes) -> None:
        self.sock, self.family_number, self.cpus = sock, family_number, cpus
        self.family = Family(os.getpid())
        self.lost = False

    @classmethod
    def listen(cls) -> ExitRecords | None:
        """A listener for all CPUs, or ``None`` where the kernel does not allow one, or would not send to it."""
        sock = generic_socket()
        try:
            sock.setsockopt(socket.SOL_SOCKET, SO_RCVBUFFORCE, BUFFER_BYTES)
            number = find_family(sock, TASKSTATS)
            with open("/sys/devices/system/cpu/possible", "rb") as file:
                cpus = file.read().strip() + b"\0"
            request(sock, number, GET, ATTR_REGISTER_CPUMASK, cpus)
            if not heard(sock):
                raise TimeoutError
        except (OSError, KeyError):
            sock.close()
            return None
        sock.setblocking(False)
        return cls(sock, number, cpus)

    def drain(self) -> None:
        """Take in what has come; never waits."""
        while True:
            try:
                message = self.sock.recv(65536)
            except BlockingIOError:
                return
            except OSError as error:
                if error.errno != errno.ENOBUFS:
                    raise
                self.lost = True
                continue
            for record in stats_of_threads(message):
                self.take(record)
            for group in ended_groups(message):
                self.family.close_group(group)

    def take(self, record: bytes) -> None:
        """One record; an unknown layout makes the whole useless."""
        try:
            self.family.add(record)
        except OSError:
            self.lost = True

    def descendants(self) -> Branch | None:
        """Sums over the ended descendants of this process; ``None`` if any may be missing."""
        self.drain()
        return None if self.lost else self.family.pending.get(self.family.root)

    def close(self) -> None:
        """Stop listening."""
        self.sock.setblocking(True)
        try:
            send(self.sock, self.family_number, GET, ATTR_DEREGISTER_CPUMASK, self.cpus)
        finally:
            self.sock.close()


def own_record() -> Branch | None:
    """What the kernel says of this process's first thread, which lives; ``None`` where it does not."""
    family = Family(root=0)
    try:
        with generic_socket() as sock:
            pid = os.getpid().to_bytes(4, sys.byteorder)
            answer = request(sock, find_family(sock, TASKSTATS), GET, ATTR_PID, pid)
        for record in stats_of_threads(answer):
            family.add(record)
    except (OSError, KeyError):
        return None
    return next(iter(family.pending.values()), None)


def stats_of_threads(message: bytes) -> Iterator[bytes]:
    """The records of single threads in a message."""
    for kind, aggregate in attributes(message):
        if kind == TYPE_AGGR_PID:
            for inner, value in attributes(aggregate, 0):
                if inner == TYPE_STATS:
                    yield value


def ended_groups(message: bytes) -> Iterator[int]:
    """The processes of which a message says that the last of several threads has ended."""
    for kind, aggregate in attributes(message):
        if kind == TYPE_AGGR_TGID:
            for inner, value in attributes(aggregate, 0):
                if inner == TYPE_TGID:
                    yield int.from_bytes(value[:4], sys.byteorder)


def heard(sock: socket.socket) -> bool:
    """Whether records arrive at all: in another network name space than the machine's own, none do."""
    _thread.start_new_thread(int, ())  # the end of a thread is the least that the kernel reports
    sock.settimeout(LONGEST_SILENCE_S)
    try:
        return bool(sock.recv(65536))
    except TimeoutError:
        return False


def delays_accounted() -> bool:
    """Whether the kernel accounts waits for storage and memory of processes started now."""
    try:
        with open(DELAY_SWITCH, "rb") as file:
            return file.read().strip() == b"1"
    except FileNotFoundError:  # before Linux 5.14 it was on unless switched off at boot
        return True


def run_queue_accounted() -> bool:
    """Whether the kernel accounts waits for a CPU (it may without the other delays)."""
    try:
        with open(f"/proc/{os.getpid()}/schedstat", "rb") as file:
            return int(file.read().split()[2]) > 0
    except OSError:
        return False
