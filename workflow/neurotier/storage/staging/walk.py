"""Staging as a workload: run every exchange of the grid with its engine, and with its store on the tier."""

from __future__ import annotations

import itertools
import math
import secrets
import statistics
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from importlib.metadata import version
from pathlib import Path

from neurotier.core.errors import SettingsError, ToolError
from neurotier.core.private import private_folder, remove_abandoned, remove_empty, work_folder
from neurotier.core.quantities import counted, size
from neurotier.core.settings import StagingSettings
from neurotier.core.tables import Row
from neurotier.core.tiers import parse_size
from neurotier.storage.staging.exchange import IN_MEMORY, SERVED, STEP, WORD_BYTES, Exchange, Point
from neurotier.storage.staging.ray import store_bytes
from neurotier.storage.staging.supervise import ENGINES, Outcome, require_engine, run_exchange
from neurotier.storage.workload import Workload
from neurotier.storage.workspace import Workspace

MOST_PATH = 44
"""Longest path of the scratch folder: Ray makes sockets in it, whose paths may have 107 characters."""

TIMES = ("write_s", "write_client_s", "read_s", "read_client_s")
METADATA_SHARE = 1.05
"""ADIOS2's files are larger than their data by this factor."""


class Staging(Workload[Point]):
    """Staging: exchanges of a grid, each with a store of its own."""

    target = "staging"
    doing = "Staging"
    smaller = "staging.scale, staging.sets.{set}.bytes or staging.steps"

    @staticmethod
    def points(section: StagingSettings, tier: str) -> Iterator[Point]:
        """Every set in the order of its grid; engines that keep nothing on a tier are measured on the first only."""
        for name, given in section.sets.items():
            where = f"config key staging.sets.{name}.bytes"
            whole = parse_size(given.bytes, where)
            engines = [one for one in section.engines if tier == section.tiers[0] or one not in IN_MEMORY]
            axes = range(1, given.repetitions + 1), engines, given.writers, given.readers, given.servers
            for repetition, engine, *counts, asked_servers in itertools.product(*axes):
                writers, readers = (max(1, round(int(count) * section.scale)) for count in counts)
                servers = min(int(asked_servers), max(writers, readers)) if engine in SERVED else 0
                own = other = whole // WORD_BYTES * WORD_BYTES
                if given.per == STEP:
                    together = math.lcm(writers, readers)
                    words = int(whole * section.scale) // WORD_BYTES // together * together
                    own, other = (words // count * WORD_BYTES for count in (writers, readers))
                if not own or not other:
                    raise SettingsError(
                        f"{given.bytes} cannot be divided among {writers} writers and {readers} readers", where
                    )
                processes = str(engine), writers, readers, servers
                yield Point(name, *processes, given.per, own, other, section.steps, section.flush, repetition)

    def require(self) -> None:
        """Raise :class:`ToolError` if an engine's package is missing, or an engine cannot be protected from others."""
        for engine in self.settings.staging.engines:
            require_engine(engine, "target staging")

    def room(self, points: list[Point]) -> tuple[int, str]:
        """The largest store of the set, and the point that needs it."""
        most = max(points, key=room_of)
        return room_of(
            most
        ), f"{counted(most.writers, 'writer')} of {size(most.bytes_per_writer)} a step, {most.engine}"

    def measure(self, workspace: Workspace, point: Point) -> Row:
        """Measure one exchange."""
        log = self.places.logs / "run_staging" / "engines.log"
        log.parent.mkdir(parents=True, exist_ok=True)
        settings = self.settings.staging
        try:
            with scratch() as folder:
                exchange = Exchange(
                    **vars(point), seed=settings.seed, folder=str(workspace.folder), scratch=str(folder)
                )
                outcome = run_exchange(exchange, log, settings.timeout_s)
            return cells(exchange, outcome)
        finally:
            workspace.remove_files()


def room_of(point: Point) -> int:
    """Bytes that a point occupies on the tier."""
    if point.engine in SERVED:
        return point.servers * store_bytes(point)
    return 0 if point.engine in IN_MEMORY else int(METADATA_SHARE * point.written_bytes)


@contextmanager
def scratch() -> Iterator[Path]:
    """A private folder with a short path, removed on exit; leftovers of killed processes are removed first.

    Raises
    ------
    ToolError
        If the path of the machine's folder for temporary files is too long.
    """
    parent = private_folder(Path(tempfile.gettempdir())) / "s"
    remove_abandoned(parent)
    folder = parent / secrets.token_hex(3)  # containers that share the parent may have equal process numbers
    if len(str(folder)) > MOST_PATH:
        raise ToolError("its path is too long for sockets", folder, "set TMPDIR=/tmp")
    try:
        with work_folder(folder, identity=""):
            yield folder
    finally:
        remove_empty(parent)


def cells(exchange: Exchange, outcome: Outcome) -> Row:
    """The times of an exchange as cells of the table: means over its steps, as in the published experiment.

    Raises
    ------
    ToolError
        If a reader got bytes that differ from those written.
    """
    for number, step in enumerate(outcome.steps, start=1):
        if step["wrong"]:
            readers = {one.split("/")[0] for one in step["wrong"]}
            what = f"other bytes than were written came to {counted(len(readers), 'reader')} in step {number}"
            raise ToolError(f"{what} (reader/piece {step['wrong'][0]})", exchange.engine)
    read_from_device = [step["device_read_bytes"] for step in outcome.steps]
    return {
        "piece_bytes": exchange.piece_bytes,
        "start_s": outcome.start_s,
        **{name: statistics.mean(step[name] for step in outcome.steps) for name in TIMES},
        "write_bytes": exchange.written_bytes,
        "read_bytes": exchange.steps * exchange.readers * exchange.bytes_per_reader,
        "device_read_bytes": None if None in read_from_device else sum(read_from_device),
        "engine_version": f"{ENGINES[exchange.engine]} {version(ENGINES[exchange.engine])}",
    }
