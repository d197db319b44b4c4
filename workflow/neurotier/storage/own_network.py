"""A network of its own for programs that listen on all addresses and do what anybody who connects tells them.

It has a loopback and nothing else, and no other user can enter it.
"""

from __future__ import annotations

import ctypes
import fcntl
import os
import socket
import struct
import subprocess
import sys
from pathlib import Path

from neurotier.core.errors import ToolError
from neurotier.core.libc import LIBC
from neurotier.core.processes import start_process

CLONE_NEWUSER, CLONE_NEWNET = 0x10000000, 0x40000000
"""Arguments of ``unshare``."""

SIOCSIFFLAGS, IFF_UP = 0x8914, 1
"""Source: netdevice(7)."""


def enter_own_network() -> None:
    """Move this process, of a single thread, to a network of its own; what it starts is in it, too.

    Raises
    ------
    OSError
        If the system does not allow it: it takes root, or user namespaces.
    """
    user, group = os.geteuid(), os.getegid()
    if LIBC.unshare(CLONE_NEWNET) != 0:
        if LIBC.unshare(CLONE_NEWUSER | CLONE_NEWNET) != 0:
            raise OSError(ctypes.get_errno(), "unshare")
        for name, text in (("setgroups", "deny"), ("uid_map", f"{user} {user} 1"), ("gid_map", f"{group} {group} 1")):
            Path("/proc/self", name).write_text(text)
    with socket.socket() as any_socket:
        fcntl.ioctl(any_socket, SIOCSIFFLAGS, struct.pack("16sh22x", b"lo", IFF_UP))


def require_own_network(what: str, where: str, instead: str) -> None:
    """Raise :class:`ToolError` where ``what`` cannot be kept from other users; ``instead`` is what to take."""
    try:
        start_process([sys.executable, "-S", "-c", ""], before=enter_own_network).wait()
    except subprocess.SubprocessError:
        problem = f"{what} listens on all addresses and obeys everybody, and this system gives it no network of its own"
        raise ToolError(problem, where, f"have user namespaces allowed, or take {instead}") from None
