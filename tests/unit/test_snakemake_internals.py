"""What the workflow uses of Snakemake beyond its documentation, where no run shows it."""

from __future__ import annotations

import threading

from neurotier.run.snakemake_internals import end_timers
from support import PATIENCE_S


def test_a_run_that_is_over_does_not_wait_for_its_timers() -> None:
    timer, other = threading.Timer(86_400, print), threading.Thread(target=threading.Event().wait, daemon=True)
    timer.start()
    other.start()
    end_timers()
    timer.join(PATIENCE_S)
    assert not timer.is_alive()
    assert other.is_alive()
