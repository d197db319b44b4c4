"""The process that runs a service with its writers and readers: ``python -m neurotier.storage.staging.program PLAN``.

It prints a line of JSON when all are ready, one for each time step, and one at the end, or one that says what went
wrong. :mod:`neurotier.storage.staging.supervise` reads these lines, and ends everything if one does not come in time.
What libraries print goes to standard error, which is a log file.
"""

from __future__ import annotations

import json
import os
import statistics
import sys
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from neurotier.core.errors import NeurotierError, ToolError, one_line
from neurotier.core.files import Record, read_json
from neurotier.core.parallelism import span_s
from neurotier.meter.tree import read_io
from neurotier.meter.usage import BYTES
from neurotier.storage.staging.exchange import Exchange


class Service(NamedTuple):
    """A service that is ready, with its writers and readers.

    Attributes
    ----------
    pids, servers
        Process numbers of all its processes, and of its servers.
    make
        Has all writers make the contents of a step; returns the checksums of each writer's pieces.
    write
        Has all writers write; what it returns for each writer begins with its begin and end, s.
    read
        Has all readers read, given what ``write`` returned; returns begin and end of each, s.
    compare
        Has all readers compare, given each reader's checksums by number of the piece; returns each reader's pieces
        that differ from what was written.
    check
        Raises an error if something is wrong with the service after a step.
    """

    pids: list[int]
    servers: list[int]
    make: Callable[[], Sequence[Any]]
    write: Callable[[], Sequence[Any]]
    read: Callable[[Sequence[Any]], Sequence[Any]]
    compare: Callable[[Sequence[Mapping[int, int]]], Sequence[Any]]
    check: Callable[[], None] = lambda: None


def main() -> None:
    """Run the exchange of a plan; the process that reads the lines ends this one if something goes wrong."""
    lines = os.fdopen(os.dup(1), "w", buffering=1)
    os.dup2(2, 1)

    def say(**fields: Any) -> None:
        print(json.dumps(fields), file=lines, flush=True)

    try:
        run(Exchange(**read_json(Path(sys.argv[1]))), say)
        say(ended=True)
    except NeurotierError as error:
        say(error=str(error), exit_code=error.exit_code)
    except Exception as error:  # whatever a library raises becomes one line for the user; the rest is in the log
        import traceback

        traceback.print_exc()
        said = one_line(f"{type(error).__name__}: {str(error).strip().partition(chr(10))[0]}")
        say(error=said, exit_code=ToolError.exit_code)


def run(exchange: Exchange, say: Callable[..., None]) -> None:
    """Run all steps of an exchange with its engine."""
    if exchange.engine == "ray":
        from neurotier.storage.staging.ray import serving
    else:
        from neurotier.storage.staging.adios2 import serving
    with serving(exchange) as service:
        say(ready=True, servers=service.servers)
        for _ in range(exchange.steps):
            step = timed_step(exchange, service)
            service.check()
            say(**step)


def timed_step(exchange: Exchange, service: Service) -> Record:
    """Run and time one step: all write, and once all have written, all read. Contents are made and compared untimed.

    Returns
    -------
    dict
        ``write_s``, ``read_s``: response time of all writers' and all readers' requests together, s;
        ``write_client_s``, ``read_client_s``: that of one client on average; ``device_read_bytes``: bytes that
        processes read from devices during the reads, ``None`` if the kernel does not report it; ``wrong``: pieces that
        differ from what was written, as ``reader/piece``.
    """
    checksums = [value for own in service.make() for value in own]
    written = service.write()
    wanted = [{one: checksums[one] for one in exchange.pieces_of_reader(reader)} for reader in range(exchange.readers)]
    before = device_read_bytes(service.pids)
    was_read = service.read(written)
    after = device_read_bytes(service.pids)
    answers = {"write": written, "read": was_read}
    spans = {way: [(begin_s, end_s) for begin_s, end_s, *_ in all_of] for way, all_of in answers.items()}
    return {
        **{f"{way}_s": span_s(each) for way, each in spans.items()},
        **{f"{way}_client_s": statistics.fmean(end - begin for begin, end in each) for way, each in spans.items()},
        "device_read_bytes": None if before is None or after is None else after - before,
        "wrong": [f"{reader}/{piece}" for reader, wrong in enumerate(service.compare(wanted)) for piece in wrong],
    }


def device_read_bytes(pids: list[int]) -> int | None:
    """Bytes that processes have read from devices; ``None`` if the kernel does not report it or a process has ended."""
    try:
        return sum(read_io(f"/proc/{pid}/io")[BYTES.index("device_read_bytes")] for pid in pids)
    except OSError:
        return None


if __name__ == "__main__":
    main()
