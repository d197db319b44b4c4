"""Scratch folders: what a tool has left in one is counted before it is removed, as part of the phase that computes."""

from __future__ import annotations

import time
from contextlib import suppress
from pathlib import Path

from neurotier.core.files import remove_whatever
from neurotier.meter.folders import Removal, held_in


def remove_counted(scratch: Path, removal: Removal) -> None:
    """Remove a scratch folder, and add what it held, and how long that took, to what was removed."""
    begin_s, begin_cpu_s = time.monotonic(), time.process_time()
    held = held_in(scratch)
    with suppress(OSError):  # what is left is removed with the work folder
        remove_whatever(scratch)
    removal.take(held, time.monotonic() - begin_s, time.process_time() - begin_cpu_s)
