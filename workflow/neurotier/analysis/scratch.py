"""Scratch folders: what a tool has left in one is counted before it is removed, as part of the phase that computes."""

from __future__ import annotations

import time
from collections.abc import Callable
from pathlib import Path

from neurotier.core.private import remove_private
from neurotier.meter.folders import Removal, held_in


def remove_counted(scratch: Path, removal: Removal, remove: Callable[[Path], None] = remove_private) -> None:
    """Remove a scratch folder, and add what it held, and how long that took, to what was removed."""
    begin_s, begin_cpu_s = time.monotonic(), time.process_time()
    held = held_in(scratch)
    remove(scratch)
    removal.take(held, time.monotonic() - begin_s, time.process_time() - begin_cpu_s)
