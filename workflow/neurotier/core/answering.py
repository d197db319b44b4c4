"""Whether storage answers: a network file system whose server is gone holds whoever looks at it, deaf even to Ctrl-C.

It is a copy of this process that looks. ``subprocess`` with a time limit would do as well, did it not wait for what it
has killed, which such a file system does not let go either.
"""

from __future__ import annotations

import os
import select
import signal
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path

from neurotier.core.errors import TierError
from neurotier.core.tiers import Tier

ANSWERS_WITHIN_S = 20.0
"""Time that a file system has to say what lies at a path, s: one that a server mounts only now takes a few."""


def require_answers(tiers: Sequence[Tier], within_s: float = ANSWERS_WITHIN_S) -> None:
    """Raise :class:`TierError` for the first tier whose path nobody can look at, there or not, within a time, s.

    Tiers of the nodes are not looked at.
    """
    here = [tier for tier in tiers if not tier.node]
    silent = first_silent([tier.path for tier in here], within_s)
    if silent is not None:
        raise TierError(
            f"{here[silent].path} does not answer within {within_s:g} s",
            where=f"tier {here[silent].name!r}",
            fix="see whether its server is there and mount it again, or place nothing on this tier",
        )


def first_silent(paths: Sequence[Path], within_s: float) -> int | None:
    """Place of the first path that does not answer; ``None`` if all do."""
    reader, writer = os.pipe()
    pid = os.fork()
    if not pid:
        try:
            nothing = os.open(os.devnull, os.O_RDWR)
            for number in range(3):  # it may stay for ever, and who reads what we print would wait for its end
                os.dup2(nothing, number)
            for path in paths:
                with suppress(OSError):
                    os.stat(path)
                os.write(writer, b".")
        finally:
            os._exit(0)
    os.close(writer)
    answered = 0
    try:
        while answered < len(paths) and select.select([reader], [], [], within_s)[0]:
            os.read(reader, 1)
            answered += 1
    finally:
        os.close(reader)
        os.kill(pid, signal.SIGKILL)  # it has ended, or never will by itself
        with suppress(ChildProcessError):
            os.waitpid(pid, 0 if answered == len(paths) else os.WNOHANG)
    return answered if answered < len(paths) else None
