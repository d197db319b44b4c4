"""``neurotier watch RESULTS``: a screen that follows a run, or a line every so often where there is no terminal."""

from __future__ import annotations

import shutil
import sys
import time
from pathlib import Path

from neurotier.core.errors import SettingsError
from neurotier.watch.looking import Look, Watcher
from neurotier.watch.screen import line, printable, screen

UP, CLEAR = "\x1b[{}A", "\x1b[J"
"""What has a terminal's cursor go up by so many lines, and clear what is below it."""

PAUSE = 4.0
"""Least pause between two looks, by how long the last one took: 0.2 s for 2,000 participants, 8 s for 68,500."""


def watch(results: Path, every_s: float, once: bool) -> int:
    """Show the latest run of a results folder until it has ended; the exit code of the process.

    Parameters
    ----------
    results
        The results folder.
    every_s
        How often it is looked at, s; less often where a look takes more than a fifth of that.
    once
        Look once.

    Returns
    -------
    int
        0 if the run has done all that it was asked for, or one look was; else 1.

    Raises
    ------
    SettingsError
        If no run has begun there, or the time is none.
    """
    if not every_s > 0:
        raise SettingsError("is no time", where=f"--every {every_s:g}", fix="give 1, for example")
    watcher, shown = Watcher(results), 0
    try:
        while True:
            began_s = time.monotonic()
            look = watcher.look()
            shown = show(look, str(results), shown)
            if once:
                return 0
            if look.alive is False:
                return 0 if look.succeeded else 1
            time.sleep(max(every_s, PAUSE * (time.monotonic() - began_s)))
    except (KeyboardInterrupt, BrokenPipeError):
        return 0


def show(look: Look, results: str, above: int) -> int:
    """Show a look, on a terminal in place of the one before it, which has so many lines; how many this one has."""
    if not sys.stdout.isatty():
        print(printable(line(look)), flush=True)
        return 0
    columns, rows = shutil.get_terminal_size()
    lines = screen(look, results, columns - 1)[: max(1, rows - 1)]
    print((UP.format(above) + "\r" if above else "") + CLEAR + "\n".join(lines), flush=True)
    return len(lines)
