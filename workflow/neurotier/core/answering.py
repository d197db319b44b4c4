"""Whether storage answers: a network file system whose server is gone holds whoever looks at it, deaf even to Ctrl-C.

Another process looks, which may stay there for ever.
"""

from __future__ import annotations

import subprocess
from collections.abc import Sequence
from pathlib import Path

from neurotier.core.errors import TierError
from neurotier.core.tiers import Tier

NOTHING = subprocess.DEVNULL
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
    for place, path in enumerate(paths):
        looking = subprocess.Popen(["stat", "--", str(path)], stdin=NOTHING, stdout=NOTHING, stderr=NOTHING)
        try:
            looking.wait(within_s)
        except subprocess.TimeoutExpired:
            looking.kill()  # nobody waits for its end, which may never come
            return place
    return None
