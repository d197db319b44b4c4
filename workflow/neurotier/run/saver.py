"""The process that saves derivatives while jobs go on, as a run starts and ends it.

What it does is in :mod:`neurotier.provenance.rounds`.
"""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable
from contextlib import suppress
from typing import Any

from neurotier.core.places import Places
from neurotier.core.processes import start_process

PATIENCE_S = 600.0
"""How long its last round may take at the end of a run."""

CLEAR_UP_S = 20.0
"""How long it may take to end when it is told to: schedulers give a run some 30 s."""

TOLD_S = 5.0
"""After how long the user is told what is waited for."""


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

    def stop(self, at_once: bool, say: Callable[[str], None]) -> None:
        """Have it do a last round, or none, and end; it is killed if it does not. The next start saves what is left.

        Parameters
        ----------
        at_once
            Whether the run was stopped: then what it has begun is left to the next start.
        say
            Takes a line for the user.
        """
        if self.process.stdin is not None:
            self.process.stdin.close()
        if at_once:
            self.process.terminate()
        waits = CLEAR_UP_S if at_once else PATIENCE_S
        for within_s, harder in ((TOLD_S, None), (waits, self.process.terminate), (CLEAR_UP_S, self.process.kill)):
            with suppress(subprocess.TimeoutExpired):
                self.process.wait(within_s)
                return
            if harder is None:
                say("neurotier: waiting for the derivatives of the last batches to be saved")
            else:
                harder()
