"""A workspace: a target's own folder on a tier, removed afterwards, and the fio jobs that run in it, one at a time."""

from __future__ import annotations

import socket
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import NamedTuple

from neurotier.core.errors import TierError, ToolError
from neurotier.core.files import remove_whatever
from neurotier.core.places import Places, short_hash
from neurotier.core.private import OWNER, remove_abandoned, remove_empty, remove_leftover, work_folder
from neurotier.core.quantities import size
from neurotier.core.tables import Row
from neurotier.core.tiers import Tier, says_full
from neurotier.storage.fio import FioJob, FioResult, run_fio

STUCK_S, SLOWEST_BYTES_PER_S = 600.0, 1e6
"""How much longer than on the slowest device something may take, s, since written data must still reach the device; and
a device slower than that is taken to hang."""


def patience_s(moved_bytes: int) -> float:
    """How long moving bytes may take, s."""
    return STUCK_S + moved_bytes / SLOWEST_BYTES_PER_S


class Workspace(NamedTuple):
    """A folder of a target's own on one tier.

    Attributes
    ----------
    target
        Such as ``probe`` or ``sweep``; also the section of the configuration that limits it.
    tier
        The tier on this node.
    folder
        Where the files lie.
    """

    target: str
    tier: Tier
    folder: Path

    @contextmanager
    def working(self, identity: str) -> Iterator[None]:
        """Hold the folder for a while; afterwards nothing of it stays on the tier.

        Parameters
        ----------
        identity
            Identity of the results folder that the work is for.
        """
        try:
            with work_folder(self.folder, identity):
                yield
        finally:
            remove_empty(self.folder.parent)

    def run(self, job: FioJob, limit_s: float) -> FioResult:
        """Run a job of fio; its files stay.

        Parameters
        ----------
        job
            What to do.
        limit_s
            End it after this time, s.

        Raises
        ------
        ToolError
            If fio fails, or does not end.
        TierError
            If the tier fills up meanwhile.
        """
        with self.noting_full((len(job.each) or job.streams) * job.file_bytes):
            return run_fio(job, self.folder, limit_s)

    @contextmanager
    def noting_full(self, needed_bytes: int) -> Iterator[None]:
        """Turn a program's "no space left" into the error that the tier filled up: it had room at the start.

        Raises
        ------
        TierError
            In place of the program's :class:`ToolError`.
        """
        try:
            yield
        except ToolError as error:
            if not says_full(str(error)):
                raise
            needed, free = size(needed_bytes), size(self.tier.usable_bytes())
            raise TierError(
                f"filled up during the {self.target}, which needed {needed}; {free} are free",
                f"tier {self.tier.name!r}",
                f"make room, or lower {self.target}.share",
            ) from None

    def remove_files(self) -> None:
        """Remove what the jobs have written. If the tier is gone, their own error says so."""
        with suppress(OSError):
            for file in self.folder.iterdir():
                if file.name != OWNER:
                    remove_whatever(file)


def claim(tier: Tier, target: str, places: Places) -> Workspace:
    """A workspace on a tier that is as declared, cleared of what killed runs left there.

    Raises
    ------
    TierError
        If the tier is not as declared, does not answer, or is read-only.
    """
    tier.require_answer()
    require_written(tier, target)
    tier.claim()
    folder = tier.folder(target) / short_hash(str(places.results.absolute()))
    remove_abandoned(folder.parent)
    remove_leftover(folder, places.identity)
    remove_empty(folder.parent)
    return Workspace(target, tier, folder)


def require_written(tier: Tier, target: str) -> None:
    """Raise :class:`TierError` if a tier is read-only: to measure it, a target must write there first."""
    if tier.read_only:
        raise TierError(
            f"is only read, and the {target} has to write there to measure it",
            f"tier {tier.name!r}",
            f"declare a tier on {tier.mount().mount_point} in a folder of yours, and set placement.dataset to it",
        )


def facts_of(tier: Tier) -> Row:
    """The tier and where it was measured, as cells of a table."""
    return {"tier": tier.name, "kind": tier.kind, "fs_type": tier.mount().fs_type, "host": socket.gethostname()}
