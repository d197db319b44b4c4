"""Supervise an exchange: run it in separate processes, and leave none of them behind, whatever happens.

Ray's servers lead sessions of their own, so that no process group contains them all; the mark of the call finds them
(:mod:`neurotier.storage.calls`). The exchange ends with a one-line error if a step does not end in time, a server or
client is gone, or the tier fills up.
"""

from __future__ import annotations

import json
import os
import select
import shutil
import subprocess
import sys
import time
from collections.abc import Callable
from contextlib import suppress
from dataclasses import asdict, dataclass, field
from importlib.metadata import version
from importlib.util import find_spec
from pathlib import Path

import psutil

from neurotier.core.errors import NeurotierError, TierError, ToolError
from neurotier.core.files import write_json
from neurotier.core.installed import search_path
from neurotier.core.processes import PATIENCE_S, is_alive, wait_for
from neurotier.core.quantities import size
from neurotier.core.tables import Rows
from neurotier.storage.calls import enter_own_network, require_own_network, started
from neurotier.storage.staging.exchange import Exchange

ENGINES = {"ray": "ray", "adios2-sst": "adios2", "adios2-bp5": "adios2"}
"""The Python package that each engine needs."""

RAY_WITH_TOKEN = (2, 52)
"""The first version of Ray that can require a token from every client."""

OWN_NETWORK = ("adios2-sst",)
"""Engines that listen on all addresses and run whatever anyone who connects sends them."""

START_S, START_PER_PROCESS_S = 90.0, 4.0
"""How long servers, writers and readers may take to start, s: a fixed part, and a part for each process."""

LAST_BYTES = 1 << 20
"""A tier with no more free bytes than this counts as full."""


@dataclass
class Outcome:
    """The progress of an exchange, and its times.

    Attributes
    ----------
    steps
        Finished steps, in order (:func:`neurotier.storage.staging.program.timed_step`).
    start_s
        Time until all servers, writers and readers were ready, s.
    servers
        Process numbers of the servers.
    """

    steps: Rows = field(default_factory=list)
    start_s: float | None = None
    servers: list[int] = field(default_factory=list)


def require_engine(engine: str, where: str) -> None:
    """Raise :class:`ToolError` if an engine is not installed, or cannot be protected from others.

    ``where`` says what needs the engine.
    """
    package = ENGINES[engine]
    if find_spec(package) is None:
        fix = f"pip install 'neurotier[{package}]', or take another engine"
        raise ToolError(f"engine {engine} needs the Python package {package}, which is not installed", where, fix)
    if package == "ray" and tuple(map(int, version(package).split(".")[:2])) < RAY_WITH_TOKEN:
        problem = f"Ray {version(package)} lets every user of this machine run programs as you"
        raise ToolError(problem, where, f"pip install --upgrade 'neurotier[{package}]', or take another engine")
    if engine in OWN_NETWORK:
        require_own_network(f"engine {engine}", where, "another engine")


def run_exchange(
    exchange: Exchange, log: Path, timeout_s: float, heard: Callable[[Outcome], None] = lambda _: None
) -> Outcome:
    """Run an exchange; when this function returns or raises, none of its processes is left.

    Parameters
    ----------
    exchange
        The exchange, whose folders must exist.
    log
        File for everything that libraries print.
    timeout_s
        Longest time that a step may take, s.
    heard
        Called with the outcome so far whenever it has grown.

    Raises
    ------
    ToolError
        If a step or the start takes too long, or a server, writer or reader fails or is gone.
    TierError
        If the tier fills up.
    """
    outcome, plan = Outcome(), Path(exchange.scratch, "plan.json")
    write_json(plan, asdict(exchange), durable=False)
    command = [sys.executable, "-m", "neurotier.storage.staging.program", str(plan)]
    environment = {"PYTHONPATH": search_path(), "OPENBLAS_NUM_THREADS": "1"}
    before = enter_own_network if exchange.engine in OWN_NETWORK else lambda: None
    # unbuffered, so that `select` sees every line that has arrived
    streams = {"bufsize": 0, "start_new_session": True}
    try:
        with (
            log.open("ab") as errors,
            started(
                command, Path(exchange.folder), exchange.engine, environment, before, stderr=errors, **streams
            ) as process,
        ):
            try:
                listen(process, exchange, outcome, timeout_s, heard)
            except ToolError as error:
                raise reason(error, exchange, outcome) from None
        return outcome
    finally:
        end_unmarked(exchange.folder)


def listen(
    process: subprocess.Popen[bytes],
    exchange: Exchange,
    outcome: Outcome,
    timeout_s: float,
    heard: Callable[[Outcome], None],
) -> None:
    """Read what the program reports into the outcome until it has ended."""
    assert process.stdout  # noqa: S101  # for the type checker
    begun_s, clients = time.monotonic(), exchange.writers + exchange.readers + exchange.servers
    limit_s = START_S + clients * START_PER_PROCESS_S
    while select.select([process.stdout], [], [], limit_s)[0]:
        text = process.stdout.readline()
        if not text:
            what = f"the service ended by itself (exit code {process.wait(PATIENCE_S)})"
            raise ToolError(what, exchange.engine, "see the log")
        line = json.loads(text)
        if line.get("exit_code") == TierError.exit_code:
            raise TierError(line["error"])
        if "error" in line:
            raise ToolError(line["error"], exchange.engine)
        if "ended" in line:
            return
        if "ready" in line:
            outcome.start_s, outcome.servers, limit_s = time.monotonic() - begun_s, line["servers"], timeout_s
        else:
            outcome.steps.append(line)
        heard(outcome)
    what = f"did not start within {limit_s:.0f} s"
    if outcome.start_s is not None:
        done = f"{len(outcome.steps)} of {exchange.steps} steps were done"
        what = f"stalled: {done}, and the next did not end within {limit_s:.0f} s"
    raise ToolError(what, exchange.engine, "see the log, or raise staging.timeout_s")


def reason(error: ToolError, exchange: Exchange, outcome: Outcome) -> NeurotierError:
    """Why an exchange failed: a full tier or a dead server explains any other error.

    This is called before the processes of the exchange are ended.
    """
    if shutil.disk_usage(exchange.folder).free <= LAST_BYTES:
        needed = exchange.writers * exchange.bytes_per_writer
        return TierError(
            f"filled up in step {len(outcome.steps) + 1}, of {size(needed)}",
            f"tier of {exchange.folder}",
            "make room, or lower staging.share",
        )
    gone = [place for place, pid in enumerate(outcome.servers) if not is_running(pid)]
    if gone:
        what = f"server {', '.join(map(str, gone))} of {exchange.servers} is gone"
        what += f"; {len(outcome.steps)} of {exchange.steps} steps were done"
        return ToolError(what, exchange.engine, "start the same command again")
    return error


def is_running(pid: int) -> bool:
    """Whether a process exists and is not a zombie."""
    try:
        return is_alive(psutil.Process(pid))
    except psutil.NoSuchProcess:
        return False


def end_unmarked(folder: str) -> None:
    """Kill processes that have lost their mark, which are recognised by their working folder.

    Ray's agents overwrite their environment with their process title.
    """
    unmarked = [one for one in psutil.process_iter() if one.pid != os.getpid() and works_in(one.pid, folder)]
    for one in unmarked:
        with suppress(psutil.Error):
            one.kill()
    wait_for(unmarked)


def works_in(pid: int, folder: str) -> bool:
    """Whether a process works in this very folder, not in one with the same path in another mount namespace."""
    with suppress(OSError):
        return os.path.samefile(f"/proc/{pid}/cwd", folder)
    return False
