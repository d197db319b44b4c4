"""Exit records: the kernel's account of every thread when it ends (taskstats over generic netlink).

They are exact for a whole tree, including children that live for microseconds only. A listener receives the records of
all threads of the machine, and sums those of this process's descendants. It needs CAP_NET_ADMIN in the machine's
initial namespaces; waits for storage and memory also need ``kernel.task_delayacct=1``. Source: Linux
``Documentation/accounting/taskstats.rst`` and ``delay-accounting.rst``.
"""

from __future__ import annotations

import _socket
import _thread
import errno
import os
import struct
import sys
from collections.abc import Iterator

from neurotier.meter.records import Branch, Branches
from neurotier.meter.tree import read_proc

# Generic netlink: requests with one attribute, their answers, and messages that the kernel sends. Implemented here
# because the netlink library on the package index takes 0.12 s to import, three times what `neurotier meter` may cost,
# and supports neither listening for exits nor the current layout of the records. `socket` is built on `_socket`, but
# importing it takes another 4 ms, a sixth of the start-up of `neurotier meter`. Source: netlink(7) and Linux
# Documentation/userspace-api/netlink/intro.rst.
NETLINK_GENERIC, GENL_ID_CTRL, CTRL_CMD_GETFAMILY = 16, 16, 3
CTRL_ATTR_FAMILY_ID, CTRL_ATTR_FAMILY_NAME = 1, 2
NLM_F_REQUEST, NLM_F_ACK, NLMSG_ERROR = 1, 4, 2
HEADER = struct.Struct("=IHHIIBBH")
ATTRIBUTE = struct.Struct("=HH")


def generic_socket() -> _socket.socket:
    """A bound socket for generic netlink."""
    sock = _socket.socket(_socket.AF_NETLINK, _socket.SOCK_RAW, NETLINK_GENERIC)
    sock.bind((0, 0))
    return sock


def find_family(sock: _socket.socket) -> int:
    """The number of taskstats among the generic-netlink families; :class:`OSError` if the kernel does not have it."""
    reply = request(sock, GENL_ID_CTRL, CTRL_CMD_GETFAMILY, CTRL_ATTR_FAMILY_NAME, TASKSTATS)
    return int.from_bytes(dict(attributes(reply))[CTRL_ATTR_FAMILY_ID], sys.byteorder)


def send(sock: _socket.socket, family: int, command: int, kind: int, value: bytes) -> None:
    """Send a generic-netlink request with one attribute."""
    length = ATTRIBUTE.size + len(value)
    attribute = ATTRIBUTE.pack(length, kind) + value + bytes(-length % 4)
    header = HEADER.pack(HEADER.size + len(attribute), family, NLM_F_REQUEST | NLM_F_ACK, 0, 0, command, 1, 0)
    sock.send(header + attribute)


def request(sock: _socket.socket, family: int, command: int, kind: int, value: bytes) -> bytes:
    """Send a request and wait for its acknowledgement; returns the answer that precedes it, empty if there is none."""
    send(sock, family, command, kind, value)
    answer = b""
    while True:
        message = sock.recv(65536)
        if int.from_bytes(message[4:6], sys.byteorder) != NLMSG_ERROR:
            answer = message
            continue
        code = int.from_bytes(message[16:20], sys.byteorder, signed=True)
        if code:
            raise OSError(-code, os.strerror(-code))
        return answer


def attributes(data: bytes, offset: int = HEADER.size) -> Iterator[tuple[int, bytes]]:
    """The kind and value of each attribute of a message, from an offset on."""
    while offset + ATTRIBUTE.size <= len(data):
        length, kind = ATTRIBUTE.unpack_from(data, offset)
        if length < ATTRIBUTE.size:
            return
        yield kind & 0x3FFF, data[offset + ATTRIBUTE.size : offset + length]
        offset += (length + 3) & ~3


TASKSTATS = b"TASKSTATS\0"
GET, ATTR_PID, ATTR_REGISTER_CPUMASK, ATTR_DEREGISTER_CPUMASK = 1, 1, 3, 4
TYPE_TGID, TYPE_STATS, TYPE_AGGR_PID, TYPE_AGGR_TGID = 2, 3, 4, 5
SO_RCVBUFFORCE = 33
BUFFER_BYTES = 16 << 20
"""Room for more than 10,000 records between two reads."""

LONGEST_SILENCE_S = 0.2
DELAY_SWITCH = "/proc/sys/kernel/task_delayacct"

records_arrive: bool | None = None
"""Whether the kernel sends records to the namespaces of this process; ``None`` until this has been tried."""


class ExitRecords:
    """Listens for the exit records of the machine; created by :meth:`listen`.

    Attributes
    ----------
    lost
        True if the kernel dropped records because they were not read in time, or sent some in another layout.
    """

    lost = False

    def __init__(self, sock: _socket.socket, family_number: int, cpus: bytes) -> None:
        self.sock, self.family_number, self.cpus = sock, family_number, cpus
        self.branches = Branches(os.getpid())

    @classmethod
    def listen(cls) -> ExitRecords | None:
        """Create a listener for all CPUs; ``None`` if the kernel does not allow one, or sends it no records."""
        global records_arrive
        if records_arrive is False:
            return None
        sock = generic_socket()
        try:
            sock.setsockopt(_socket.SOL_SOCKET, SO_RCVBUFFORCE, BUFFER_BYTES)
            number = find_family(sock)
            cpus = read_proc("/sys/devices/system/cpu/possible").strip() + b"\0"
            request(sock, number, GET, ATTR_REGISTER_CPUMASK, cpus)
            if records_arrive is None:  # tried once: waiting for a record may take longer than a short phase
                records_arrive = receives_records(sock)
            if not records_arrive:
                raise TimeoutError
        except (OSError, KeyError):
            sock.close()
            return None
        sock.setblocking(False)
        return cls(sock, number, cpus)

    def drain(self) -> None:
        """Read the records that have arrived, without waiting."""
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
            for record in aggregated(message, TYPE_AGGR_PID, TYPE_STATS):
                try:
                    self.branches.add(record)
                except OSError:  # the record's layout is unknown
                    self.lost = True
            for group in aggregated(message, TYPE_AGGR_TGID, TYPE_TGID):  # the last of several threads has ended
                self.branches.close_group(int.from_bytes(group[:4], sys.byteorder))

    def descendants(self) -> Branch | None:
        """Sums over the descendants that have ended; ``None`` if any may be missing."""
        self.drain()
        return None if self.lost else self.branches.pending.get(self.branches.root)

    def close(self) -> None:
        """Stop listening."""
        self.sock.setblocking(True)
        try:
            send(self.sock, self.family_number, GET, ATTR_DEREGISTER_CPUMASK, self.cpus)
        finally:
            self.sock.close()


def record_of(pid: int = 0) -> Branch | None:
    """The kernel's account of a process's main thread so far, by default that of this process; ``None`` if the kernel
    gives none."""
    branches = Branches(root=0)
    try:
        sock = generic_socket()
        try:
            number = (pid or os.getpid()).to_bytes(4, sys.byteorder)
            answer = request(sock, find_family(sock), GET, ATTR_PID, number)
        finally:
            sock.close()
        for record in aggregated(answer, TYPE_AGGR_PID, TYPE_STATS):
            branches.add(record)
    except (OSError, KeyError):
        return None
    return next(iter(branches.pending.values()), None)


def aggregated(message: bytes, aggregate: int, kind: int) -> Iterator[bytes]:
    """The values of the kind ``kind`` in a message's aggregates of the kind ``aggregate``."""
    for found, value in attributes(message):
        if found == aggregate:
            yield from (inner for of_kind, inner in attributes(value, 0) if of_kind == kind)


def receives_records(sock: _socket.socket) -> bool:
    """Whether any records arrive: none do in a network namespace other than the machine's initial one."""
    _thread.start_new_thread(int, ())  # a thread that ends at once, for the kernel to report
    sock.settimeout(LONGEST_SILENCE_S)
    try:
        return bool(sock.recv(65536))
    except TimeoutError:
        return False


def delays_accounted() -> bool:
    """Whether the kernel accounts for waits for storage and memory, for processes that start now."""
    try:
        return read_proc(DELAY_SWITCH).strip() == b"1"
    except FileNotFoundError:  # before Linux 5.14 it was on unless switched off at boot
        return True


def run_queue_accounted() -> bool:
    """Whether the kernel accounts for waits for a CPU, which it may do without the other waits."""
    try:
        return int(read_proc(f"/proc/{os.getpid()}/schedstat").split()[2]) > 0
    except OSError:
        return False
