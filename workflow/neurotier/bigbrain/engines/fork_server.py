"""A process that has loaded what an increment needs, and forks one process for each block.

Starting Python and NumPy takes longer than incrementing a block of 100 MB in memory; a fork takes a millisecond.
``python3 -m neurotier.bigbrain.engines.fork_server PLAN LOGS DESCRIPTOR`` listens on a socket that it was handed, and
whoever connects (:mod:`neurotier.bigbrain.engines.fork_client`) names a block. The process that is forked for it lives
as long as its client waits, and no longer than this one.
"""

from __future__ import annotations

import contextlib
import os
import signal
import socket
import socketserver
import struct
import sys
import threading
from collections.abc import Sequence
from pathlib import Path
from typing import Any, NoReturn

from neurotier.bigbrain.engines.worker import process_start_s, told, work_on
from neurotier.bigbrain.tasks import PUBLISHED, Task
from neurotier.core.processes import end_with_parent

CREDENTIALS = struct.Struct("3i")
"""Of the process at the other end of a socket: its number, user and group. Source: unix(7), ``SO_PEERCRED``."""


class ForkServer(socketserver.ForkingMixIn, socketserver.UnixStreamServer):
    """Forks a process for each connection.

    Parameters
    ----------
    descriptor
        The socket on which it listens.
    task
        The run.
    logs
        Where logs go, one per block.
    """

    def __init__(self, descriptor: int, task: Task, logs: Path) -> None:
        super().__init__("", Incrementing, bind_and_activate=False)
        self.socket.close()
        self.socket = socket.socket(fileno=descriptor)
        self.task, self.logs, self.pid = task, logs, os.getpid()
        self.max_children = 2 * task.parallelism  # those that have just answered may still be ending

    def verify_request(self, request: Any, client_address: Any) -> bool:
        """Whether the client is this user's: the socket has no file whose permissions would say so."""
        return credentials(request)[1] == os.getuid()


class Incrementing(socketserver.StreamRequestHandler):
    """The process of one block, from its client's request to the answer."""

    server: ForkServer

    def handle(self) -> None:
        """Do all iterations of a block that are left; answer with an exit code and what is to be said."""
        end_with_parent()
        signal.signal(signal.SIGTERM, unwind)
        if os.getppid() != self.server.pid:
            unwind()
        self.server.socket.close()  # once the server is gone, nobody shall be kept waiting
        name = self.rfile.readline().decode(errors="surrogateescape").removesuffix("\n")
        threading.Thread(target=self.end_with_client, daemon=True).start()
        log = self.server.logs / f"{name}.log"
        exit_code, line = told(name, log, lambda: work_on(self.server.task, name, None, self.client_start_s()))
        self.wfile.write(f"{exit_code} {line}".encode(errors="surrogateescape"))

    def client_start_s(self) -> float:
        """When the client was started, s since 1970: the start of a block's process begins with that."""
        return process_start_s(credentials(self.connection)[0])

    def end_with_client(self) -> None:
        """End this process once its client is gone."""
        with contextlib.suppress(OSError):
            self.connection.recv(1)  # the client says nothing more, so this waits for its end
        os.kill(os.getpid(), signal.SIGTERM)


def unwind(*_: object) -> NoReturn:
    """End this process, and have it remove what it has half written."""
    signal.signal(signal.SIGTERM, signal.SIG_IGN)  # the server, the client and the engine may all say it
    raise SystemExit


def credentials(connection: socket.socket) -> tuple[int, int, int]:
    """Number, user and group of the process at the other end."""
    pid, user, group = CREDENTIALS.unpack(
        connection.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, CREDENTIALS.size)
    )
    return pid, user, group


def main(arguments: Sequence[str]) -> NoReturn:
    """Serve until it is told to end."""
    plan, logs, descriptor = arguments
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C reaches the engine, too, which ends this one
    task = Task.load(Path(plan))
    if task.pairing == PUBLISHED:
        import nibabel  # noqa: F401  # what is loaded here is loaded once
    ForkServer(int(descriptor), task, Path(logs)).serve_forever()
    raise AssertionError("a server ends by a signal")


if __name__ == "__main__":
    main(sys.argv[1:])
