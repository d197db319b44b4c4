"""A workspace: a target's own folder on a tier, removed after use, in which fio jobs run one at a time."""

from __future__ import annotations

import socket
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import NamedTuple

from neurotier.core.errors import TierError, ToolError
from neurotier.core.files import remove_path
from neurotier.core.places import Places, short_hash
from neurotier.core.private import OWNER, remove_abandoned, remove_empty, remove_leftover, work_folder
from neurotier.core.quantities import size
from neurotier.core.tables import Row
from neurotier.core.tiers import Tier, says_full
from neurotier.storage.fio import FioJob, FioResult, run_fio

STUCK_S, SLOWEST_BYTES_PER_S = 600.0, 1e6
"""Extra time on top of that of the slowest device, s, since written data must still reach the device; and the bandwidth
of the slowest device: one that is slower is taken to hang."""


def patience_s(moved_bytes: int) -> float:
    """How long moving this many bytes may take, s."""
    return STUCK_S + moved_bytes / SLOWEST_BYTES_PER_S


class Workspace(NamedTuple):
    """A target's own folder on one tier.

    Attributes
    ----------
    target
        A target such as ``probe`` or ``sweep``; also the configuration section that limits it.
    tier
        The tier as it is on this node.
    folder
        The folder of the files.
    """

    target: str
    tier: Tier
    folder: Path

    @contextmanager
    def working(self, identity: str) -> Iterator[None]:
        """Create the folder, and remove it completely from the tier on exit.

        Parameters
        ----------
        identity
            Identity of the results folder that the work belongs to.
        """
        try:
            with work_folder(self.folder, identity):
                yield
        finally:
            remove_empty(self.folder.parent)

    def run(self, job: FioJob, limit_s: float) -> FioResult:
        """Run a fio job; its files stay.

        Parameters
        ----------
        job
            The job.
        limit_s
            End it after this time, s.

        Raises
        ------
        ToolError
            If fio fails or does not end.
        TierError
            If the tier fills up while the job runs.
        """
        with self.noting_full((len(job.each) or job.streams) * job.file_bytes):
            return run_fio(job, self.folder, limit_s)

    @contextmanager
    def noting_full(self, needed_bytes: int) -> Iterator[None]:
        """Turn a program's "no space left" into an error that says that the tier, which had room before, filled up.

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
        """Remove the files that the jobs have written. If the tier is gone, the jobs' own error says so."""
        with suppress(OSError):
            for file in self.folder.iterdir():
                if file.name != OWNER:
                    remove_path(file)


def claim(tier: Tier, target: str, places: Places) -> Workspace:
    """A workspace on a tier that is as declared; what killed runs left there is removed.

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
    """Raise :class:`TierError` if a tier is read-only: a target must write there to measure it."""
    if tier.read_only:
        raise TierError(
            f"is only read, and the {target} has to write there to measure it",
            f"tier {tier.name!r}",
            f"declare a tier on {tier.mount().mount_point} in a folder of yours, and set placement.dataset to it",
        )


def tier_facts(tier: Tier) -> Row:
    """The tier and the host that measures it, as cells of a table."""
    return {"tier": tier.name, "kind": tier.kind, "fs_type": tier.mount().fs_type, "host": socket.gethostname()}
