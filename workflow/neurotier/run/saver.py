"""The process that saves derivatives while jobs go on, as a run starts and ends it.

What it does is in :mod:`neurotier.provenance.rounds`.
"""

from __future__ import annotations

import subprocess
import sys
from typing import Any

from neurotier.core.places import Places
from neurotier.core.processes import start_process

PATIENCE_S = 600.0
"""How long its last round may take at the end of a run."""


class Saver:
    """That process; it ends with this one, too.

    Parameters
    ----------
    places
        Of the run.
    """

    def __init__(self, places: Places) -> None:
        log = places.logs / "save_derivatives" / "while_jobs_go_on.log"
        log.parent.mkdir(parents=True, exist_ok=True)
        options: dict[str, Any] = {"stdin": subprocess.PIPE, "stdout": subprocess.DEVNULL}
        words = [sys.executable, "-m", "neurotier", "save-rounds", "--results", places.results.absolute()]
        self.process = start_process([*map(str, words), "--log", str(log.absolute())], **options)

    def stop(self, at_once: bool) -> None:
        """Have it do a last round, or none, and end.

        Parameters
        ----------
        at_once
            Whether the run was stopped: then what it has begun is left to the next start.
        """
        if self.process.stdin is not None:
            self.process.stdin.close()
        if at_once:
            self.process.terminate()
        try:
            self.process.wait(PATIENCE_S)
        except subprocess.TimeoutExpired:
            self.process.terminate()
            self.process.wait()
