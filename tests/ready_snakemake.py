"""A process that has imported Snakemake, and forks for each start of it: imports are two thirds of a start's CPU time.

Each message of the socket that is its input asks for one: ``arguments``, ``folder`` and ``environment``, as JSON, and
with them the pipe that takes what it says. It answers with the exit code. The command line, umask and processors that
``/proc`` shows are those of this process.
"""

from __future__ import annotations

import importlib
import json
import os
import random
import runpy
import socket
import sys
import time

from snakemake.cli import get_argument_parser

LONGEST_BYTES = 1 << 20


def fork_for_each() -> None:
    """Serve; returns in each process that was forked, which is to be Snakemake."""
    with socket.socket(fileno=os.dup(0)) as asking:
        while True:
            asked, (*said,), _, _ = socket.recv_fds(asking, LONGEST_BYTES, 1)
            if not asked:
                sys.exit()
            if (pid := os.fork()) == 0:
                return become(**json.loads(asked), said=said[0])
            os.close(said[0])
            _, status = os.waitpid(pid, 0)
            asking.send(str(os.waitstatus_to_exitcode(status)).encode())


def become(arguments: list[str], folder: str, environment: dict[str, str], said: int) -> None:
    """Have what a process has that is started with ``python -m``."""
    os.chdir(folder)
    os.environ.clear()
    os.environ.update(environment)
    time.tzset()
    os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
    os.dup2(said, 1)
    os.dup2(said, 2)
    os.close(said)
    sys.argv[1:] = arguments
    sys.path[0] = folder
    random.seed()
    if numpy := sys.modules.get("numpy"):
        numpy.random.seed()


if __name__ == "__main__":
    sys.path[0] = ""  # not this folder
    get_argument_parser()  # which imports all plugins
    for late in ("smart_open", "jsonschema"):
        importlib.import_module(late)
    fork_for_each()
    runpy.run_module("snakemake", run_name="__main__", alter_sys=True)
