"""The engine ``ray``: servers are the nodes of a Ray cluster on this machine, each with its own store in a mapped file.

Ray creates this file in the folder that it is given and unlinks it at once, so that it disappears with the server.
Writers and readers are actors, assigned to servers in turn. A writer's data go to the store of its own server; if a
reader on another server needs them, that server gets a copy. Data are never spilled: a full store is an error.
Everything listens on the loopback only, and answers only clients with a token, which is kept in the private scratch
folder.
"""

from __future__ import annotations

import ctypes
import mmap
import os
import secrets
import shutil
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from neurotier.core.errors import TierError, ToolError
from neurotier.core.files import Record
from neurotier.core.libc import LIBC
from neurotier.core.quantities import size
from neurotier.meter.tree import check
from neurotier.storage.staging.exchange import Exchange, Point, Sink, Source
from neurotier.storage.staging.program import Service

LEAST_STORE_BYTES = 96 << 20
"""Ray refuses stores of less than 75 MiB."""

STORE_FACTOR = 2.2
"""Stores are larger than their data by this factor: data are freed only after the next step has begun, and stores have
gaps."""

MS_SYNC = 4
LIBC.msync.argtypes = [ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int]

ENVIRONMENT = {
    "RAY_AUTH_MODE": "token",  # otherwise every user who reaches one of its ports could run code as this user
    "RAY_ENABLE_WINDOWS_OR_OSX_CLUSTER": "0",  # otherwise it listens on all addresses
    "RAY_USAGE_STATS_ENABLED": "0",
    "RAY_memory_monitor_refresh_ms": "0",  # it kills actors when the machine's memory is used
    "RAY_DEDUP_LOGS": "0",
    "RAY_ACCEL_ENV_VAR_OVERRIDE_ON_ZERO": "0",
}


def store_bytes(point: Point) -> int:
    """Size of each server's store, bytes: for what its writers write in a step, and copies that its readers need."""
    writers, readers = (-(-count // point.servers) for count in (point.writers, point.readers))
    step = writers * point.bytes_per_writer + readers * point.bytes_per_reader * (point.servers > 1)
    return max(LEAST_STORE_BYTES, int(STORE_FACTOR * step))


class Client:
    """An actor that answers once it is running."""

    def ready(self) -> int:
        """The number of this process."""
        return os.getpid()


class Writer(Client):
    """An actor that puts pieces into the store of its server."""

    def __init__(self, exchange: Exchange, number: int) -> None:
        self.exchange, self.source = exchange, Source(exchange, number)

    def make(self) -> list[int]:
        """Make the contents of a step; return the checksum of each piece."""
        return self.source.next_step()

    def write(self) -> tuple[float, float, list[Any]]:
        """Write a step; return its begin and end, s, and references to the pieces."""
        import ray

        begin_s = time.monotonic()
        references = [ray.put(piece) for piece in self.source.pieces]
        if self.exchange.flush:
            for piece in ray.get(references):
                flush(piece)
        return begin_s, time.monotonic(), references


class Reader(Client):
    """An actor that copies pieces out of the store."""

    def __init__(self, exchange: Exchange, number: int) -> None:
        self.sink = Sink(exchange, number)

    def read(self, references: list[Any]) -> tuple[float, float]:
        """Read a step; return its begin and end, s."""
        import ray

        begin_s = time.monotonic()
        for place, piece in enumerate(ray.get(references)):
            np.copyto(self.sink.pieces[place], piece)
        return begin_s, time.monotonic()

    def wrong(self, checksums: dict[int, int]) -> list[int]:
        """The numbers of the pieces that differ from what was written."""
        return self.sink.wrong(checksums)


def flush(piece: np.ndarray) -> None:
    """Flush a piece of the mapped store to its device, in whole pages."""
    begin = piece.ctypes.data // mmap.PAGESIZE * mmap.PAGESIZE
    check(LIBC.msync(begin, piece.ctypes.data + piece.nbytes - begin, MS_SYNC))


@contextmanager
def serving(exchange: Exchange) -> Iterator[Service]:
    """Start the servers, writers and readers of an exchange, and end them after its last step."""
    token = Path(exchange.scratch, "token")
    token.touch(0o600)
    token.write_text(secrets.token_hex(32))
    os.environ.update(ENVIRONMENT, RAY_TMPDIR=exchange.scratch, RAY_AUTH_TOKEN_PATH=str(token))
    os.environ.pop("RAY_AUTH_TOKEN", None)  # it would take precedence
    Path(exchange.scratch, "ray").mkdir()
    import ray
    from ray.cluster_utils import Cluster

    given: Record = {
        "num_cpus": 0,
        "object_store_memory": store_bytes(exchange),
        "plasma_directory": exchange.folder,
        "include_log_monitor": False,
    }
    settings = {"automatic_object_spilling_enabled": False}
    cluster = Cluster()
    for number in range(exchange.servers):
        first: Record = {"include_dashboard": False, "no_monitor": True, "_system_config": settings}
        cluster.add_node(**given, resources={server(number): 1 << 16}, **(first if number == 0 else {}))
    ray.init(address=cluster.address, log_to_driver=False, configure_logging=False)
    actors = [
        (
            f"{kind.__name__.lower()} {number}",
            ray.remote(kind)
            .options(num_cpus=0, max_restarts=0, resources={server(number % exchange.servers): 1})
            .remote(exchange, number),
        )
        for kind, count in ((Writer, exchange.writers), (Reader, exchange.readers))
        for number in range(count)
    ]
    writers, readers = actors[: exchange.writers], actors[exchange.writers :]
    servers = [info.process.pid for node in cluster.list_all_nodes() for info in node.all_processes.get("raylet", [])]

    ask = partial(answers, exchange)

    def read(written: Sequence[Any]) -> list[Any]:
        references = [reference for *_, own in written for reference in own]
        numbers = map(exchange.pieces_of_reader, range(exchange.readers))
        return ask(readers, "read", [[references[one] for one in own] for own in numbers])

    yield Service(
        [*ask(actors, "ready"), *servers],
        servers,
        partial(ask, writers, "make"),
        partial(ask, writers, "write"),
        read,
        partial(ask, readers, "wrong"),
        lambda: require_on_tier(exchange, servers),
    )
    ray.shutdown()
    cluster.shutdown()


def server(number: int) -> str:
    """The name of a server, which is also the resource that binds actors to it."""
    return f"server-{number}"


def require_on_tier(exchange: Exchange, servers: Sequence[int]) -> None:
    """Raise :class:`TierError` if a server keeps its data outside the tier, as Ray silently does if the tier is full.

    The point would then measure another tier.
    """
    for pid in servers:
        mapped = {line.split(maxsplit=5)[-1] for line in Path(f"/proc/{pid}/maps").read_text().splitlines()}
        if any("/plasma" in name and not name.startswith(f"{exchange.folder}/") for name in mapped):
            needed, free = size(store_bytes(exchange)), size(shutil.disk_usage(exchange.folder).free)
            where = f"tier of {exchange.folder}"
            what = f"filled up: a server needs {needed}, and {free} are free"
            raise TierError(what, where, "make room, or lower staging.share")


def answers(exchange: Exchange, actors: Sequence[tuple[str, Any]], what: str, *given: Sequence[Any]) -> list[Any]:
    """Call the method ``what`` of all actors, each with its own arguments; return their answers in order.

    Raises
    ------
    ToolError
        As soon as one of them fails or is gone.
    TierError
        If neither the tier nor the disk of temporary files, to which Ray then turns, has room.
    """
    import ray
    from ray.exceptions import OutOfDiskError, RayActorError, RayTaskError

    names = {getattr(actor, what).remote(*own): name for (name, actor), *own in zip(actors, *given, strict=True)}
    left = list(names)
    while left:
        done, left = ray.wait(left, num_returns=1)
        for reference in done:
            try:
                ray.get(reference)
            except RayActorError:
                raise ToolError(f"{names[reference]} is gone") from None
            except RayTaskError as error:
                if isinstance(error.cause, OutOfDiskError):
                    what = "filled up, and the disk of temporary files is nearly full, too"
                    raise TierError(what, f"tier of {exchange.folder}", "make room, or lower staging.share") from None
                raise ToolError(str(error.cause).partition("\n")[0], names[reference]) from None
    return [*ray.get(list(names))]
