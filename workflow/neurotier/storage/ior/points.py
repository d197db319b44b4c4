"""Which points an IOR run has: so many processes, each with a file of its own, pinned or not."""

from __future__ import annotations

from dataclasses import dataclass

from neurotier.core.errors import SettingsError
from neurotier.core.settings import IorSettings
from neurotier.core.tiers import parse_size
from neurotier.storage.workload.points import in_order, minutes, point_name

START_S = 1.0
"""What fio takes to start, write and read."""

FASTEST_BYTES_PER_S = 5e9
"""No node is thought to be faster when it is said what a run takes at least."""


@dataclass(frozen=True)
class Point:
    """One measurement.

    Attributes
    ----------
    set_name
        How processes are pinned: ``none`` or ``pin``.
    processes
        Processes at once.
    file_bytes
        Size of the file of each.
    block_bytes
        Size of a request.
    direct
        Whether the page cache is bypassed where that can be.
    repetition
        Which repetition, from 1.
    """

    set_name: str
    processes: int
    file_bytes: int
    block_bytes: int
    direct: bool
    repetition: int

    @property
    def bytes(self) -> int:
        """Bytes that are written, and as many that are read."""
        return self.processes * self.file_bytes

    @property
    def seconds(self) -> float:
        """Time that it takes at least, s."""
        return START_S + 2 * self.bytes / FASTEST_BYTES_PER_S

    def name(self, where: str) -> str:
        """A file's name that tells measurements apart (:func:`neurotier.storage.workload.points.point_name`)."""
        return point_name(self, where, self.set_name, self.processes, self.repetition)


def ior_plan(settings: IorSettings) -> dict[str, dict[str, list[Point]]]:
    """The points on every tier, pinned or not, in the order in which they are measured.

    Raises
    ------
    SettingsError
        If there is nothing to measure, or a size is none.
    """
    if not settings.tiers:
        fix = "take config/examples/ior.yaml, or see config/README.md"
        raise SettingsError("there is nothing to measure", where="config key ior.tiers", fix=fix)
    file_bytes = parse_size(settings.file_size, "config key ior.file_size")
    block_bytes = parse_size(settings.block_size, "config key ior.block_size")
    if not 1 <= block_bytes <= file_bytes or file_bytes % block_bytes:
        fix = "choose an ior.file_size that is a multiple of it"
        raise SettingsError("blocks do not fill a file", where="config key ior.block_size", fix=fix)
    sets = {
        numa: in_order(
            [
                Point(numa, processes, file_bytes, block_bytes, settings.direct, repetition)
                for repetition in range(1, settings.repetitions + 1)
                for processes in settings.processes
            ],
            settings.seed,
        )
        for numa in settings.numa
    }
    return dict.fromkeys(settings.tiers, sets)


def ior_minutes(settings: IorSettings) -> int:
    """Time that an IOR run asks a cluster for, min (:func:`neurotier.storage.workload.points.minutes`)."""
    try:
        return minutes(ior_plan(settings))
    except SettingsError:  # the run itself says why
        return minutes({})
