"""A process that has imported Snakemake, and forks for each start of it: imports are two thirds of a start's CPU time.

Each line of its input asks for one, as JSON: ``arguments``, ``folder``, ``environment``, and ``said``, the file that
what it says is written to. It answers with the exit code.
"""

from __future__ import annotations

import importlib
import json
import os
import random
import runpy
import sys

from snakemake.cli import get_argument_parser


def fork_for_each() -> None:
    """Serve; returns in each process that was forked, which is to be Snakemake."""
    for line in sys.stdin:
        asked = json.loads(line)
        if (pid := os.fork()) == 0:
            return become(**asked)
        _, status = os.waitpid(pid, 0)
        print(os.waitstatus_to_exitcode(status), flush=True)
    sys.exit()


def become(arguments: list[str], folder: str, environment: dict[str, str], said: str) -> None:
    """Have what a process has that is started with ``python -m``."""
    os.chdir(folder)
    os.environ.clear()
    os.environ.update(environment)
    os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
    os.dup2(os.open(said, os.O_WRONLY), 1)
    os.dup2(1, 2)
    sys.argv[1:] = arguments
    sys.path[0] = folder
    random.seed()


if __name__ == "__main__":
    sys.path[0] = ""  # not this folder
    get_argument_parser()  # which imports all plugins
    for late in ("smart_open", "jsonschema"):
        importlib.import_module(late)
    fork_for_each()
    runpy.run_module("snakemake", run_name="__main__", alter_sys=True)
