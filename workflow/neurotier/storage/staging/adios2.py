"""The engines of ADIOS2: ``adios2-sst`` from memory to memory, ``adios2-bp5`` by files that are read while they grow.

The package on PyPI is built without MPI, so each writer has a stream of its own, and each reader opens the streams that
it needs. There are no servers in between. Writers and readers are separate processes, which start each step together
when the parent asks them to.
"""

from __future__ import annotations

import contextlib
import multiprocessing
import os
import time
from collections.abc import Iterator, Sequence
from functools import partial
from itertools import zip_longest
from multiprocessing.connection import Connection, wait
from multiprocessing.process import BaseProcess
from pathlib import Path
from typing import Any

from neurotier.core.errors import ToolError, one_line
from neurotier.core.files import opened
from neurotier.core.processes import end_with_parent
from neurotier.core.tables import grouped
from neurotier.storage.staging.exchange import WORD_BYTES, Exchange, Sink, Source
from neurotier.storage.staging.program import Service

SST = "adios2-sst"
OPEN_S = 60
"""How long a reader waits for a stream to appear, s."""

POLL_S = 0.001
"""How often a reader of files looks for the next step, and the parent for a stream that is being opened, s."""


def parameters(exchange: Exchange, readers: int) -> dict[str, str]:
    """The engine's parameters for one stream that this many readers will open."""
    if exchange.engine != SST:
        return {"OpenTimeoutSecs": str(OPEN_S), "BeginStepPollingFrequencySecs": str(POLL_S), "StatsLevel": "0"}
    # a stream without readers must not wait for one
    queue = {"QueueLimit": "2" if readers else "1", "QueueFullPolicy": "Block" if readers else "Discard"}
    return {"DataTransport": "WAN", "RendezvousReaderCount": str(readers), "OpenTimeoutSecs": str(OPEN_S), **queue}


def stream(exchange: Exchange, writer: int, mode: str) -> Any:
    """Open the stream of a writer."""
    import adios2

    readers = sum(writer in streams_of(exchange, reader) for reader in range(exchange.readers))
    io = adios2.Adios().declare_io(f"writer-{writer}")
    io.set_engine("SST" if exchange.engine == SST else "BP5")
    io.set_parameters(parameters(exchange, readers))
    return adios2.Stream(io, str(Path(exchange.folder, f"writer-{writer}.bp")), mode)


def streams_of(exchange: Exchange, reader: int) -> dict[int, list[tuple[int, int]]]:
    """The writers whose streams a reader needs, and for each piece its position in the reader's copy and the stream."""
    pieces = [divmod(number, exchange.pieces_per_writer) for number in exchange.pieces_of_reader(reader)]
    return dict(sorted(grouped((writer, (place, piece)) for place, (writer, piece) in enumerate(pieces)).items()))


def write(exchange: Exchange, writer: int, asked: Connection) -> None:
    """Run a writer: in each step, it makes the contents, and writes them when the parent sends another message."""
    source = Source(exchange, writer)
    with stream(exchange, writer, "w") as out:
        asked.send(os.getpid())
        for _ in range(exchange.steps):
            asked.recv()
            asked.send(source.next_step())
            asked.recv()
            begin_s = time.monotonic()
            out.begin_step()
            out.write("data", source.words, [len(source.words)], [0], [len(source.words)])
            out.end_step()
            if exchange.flush and exchange.engine != SST:
                flush(Path(exchange.folder, f"writer-{writer}.bp"))
            asked.send((begin_s, time.monotonic()))
        asked.recv()


def flush(folder: Path) -> None:
    """Flush only the files of a stream to their device, since this is timed."""
    for file in folder.iterdir():
        if file.is_file():
            with opened(file, os.O_RDONLY) as handle:
                os.fsync(handle)


def read(exchange: Exchange, reader: int, asked: Connection) -> None:
    """Run a reader: in each step, it reads, and then compares with the checksums that the parent sends."""
    sink, wanted = Sink(exchange, reader), streams_of(exchange, reader)
    words = exchange.piece_bytes // WORD_BYTES
    sources = {writer: stream(exchange, writer, "r") for writer in wanted}
    asked.send(os.getpid())
    for _ in range(exchange.steps):
        asked.recv()
        begin_s = time.monotonic()
        for writer, pieces in wanted.items():
            source = sources[writer]
            status = source.begin_step(timeout=1e9)  # no timeout
            if status.name != "OK":
                raise ToolError(f"the stream of writer {writer} ended ({status.name})", f"reader {reader}")
            variable = source.inquire_variable("data")
            for place, piece in pieces:
                variable.set_selection([[piece * words], [words]])
                source.engine.get(variable, sink.pieces[place])
            source.end_step()
        asked.send((begin_s, time.monotonic()))
        asked.send(sink.wrong(asked.recv()))
    asked.recv()
    for source in sources.values():
        source.close()


Clients = dict[Connection, BaseProcess]
"""The process of each writer or reader, named for it, by the connection to it."""


def start_clients(kind: str, work: Any, exchange: Exchange, count: int) -> Clients:
    """Start writers or readers, each in a process of its own.

    With SST, one after the other: EVPath, its transport, names a process by the sum of its number and the time in
    seconds, and a reader takes two writers of one name for one, and waits for ever.
    """
    clients = Clients()
    context = multiprocessing.get_context("fork")  # safe: this process has one thread, and has not loaded ADIOS2
    for number in range(count):
        ours, theirs = multiprocessing.Pipe()
        given = work, exchange, number, theirs
        clients[ours] = context.Process(target=client, name=f"{kind} {number}", args=given, daemon=True)
        clients[ours].start()
        theirs.close()
        listening = Path(exchange.folder, f"{kind}-{number}.bp.sst")
        while exchange.engine == SST and not (ours.poll(POLL_S) or listening.exists()):
            continue
    return clients


def client(work: Any, exchange: Exchange, number: int, asked: Connection) -> None:
    """Run a client in its process; if it fails, its last message is the error."""
    end_with_parent()
    try:
        work(exchange, number, asked)
    except Exception as error:
        import traceback

        traceback.print_exc()
        asked.send(one_line(str(error).strip().partition("\n")[0]) or type(error).__name__)
        os._exit(ToolError.exit_code)


def answers(clients: Clients) -> list[Any]:
    """Wait for the answers of all clients, and return them in order.

    Raises
    ------
    ToolError
        As soon as one of them fails or is gone.
    """
    found, left = dict[Any, Any](), dict[Any, BaseProcess](clients)
    while left:
        ready: list[Any] = wait(list(left))
        for connection in ready:
            process = left.pop(connection)
            try:
                found[connection] = connection.recv()
            except (EOFError, ConnectionError):
                process.join(1)
                raise ToolError(f"{process.name} is gone (exit code {process.exitcode})") from None
            if isinstance(found[connection], str):
                raise ToolError(found[connection], process.name)
    return [found[one] for one in clients]


@contextlib.contextmanager
def serving(exchange: Exchange) -> Iterator[Service]:
    """Start the writers and readers of an exchange, and end them after its last step."""
    writers = start_clients("writer", write, exchange, exchange.writers)
    readers = start_clients("reader", read, exchange, exchange.readers)
    clients = readers | writers
    go_on = partial(ask, writers)
    yield Service(answers(clients), [], go_on, go_on, lambda _: ask(readers), partial(ask, readers))
    for one in clients:
        one.send(None)
    for process in clients.values():
        process.join()


def ask(clients: Clients, given: Sequence[Any] = ()) -> list[Any]:
    """Send each client its message, or ``None``; return their answers in order."""
    for one, word in zip_longest(clients, given):
        with contextlib.suppress(ConnectionError):  # the client is gone, which `answers` reports
            one.send(word)
    return answers(clients)
