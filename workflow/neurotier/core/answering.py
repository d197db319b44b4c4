"""Whether storage answers: a network file system whose server is gone holds whoever looks at it, deaf even to Ctrl-C.

Another process looks, which may stay there for ever.
"""

from __future__ import annotations

import subprocess
from collections.abc import Sequence

from neurotier.core.errors import TierError
from neurotier.core.tiers import Tier

NOTHING = subprocess.DEVNULL
ANSWERS_WITHIN_S = 20.0
"""Time that a file system has to say what lies at a path, s: one that a server mounts only now takes a few."""


def require_answers(tiers: Sequence[Tier], within_s: float = ANSWERS_WITHIN_S) -> None:
    """Raise :class:`TierError` for the first tier whose path nobody can look at, there or not, within a time, s.

    Tiers of the nodes are not looked at.
    """
    for tier in tiers:
        if tier.node:
            continue
        looking = subprocess.Popen(["stat", "--", str(tier.path)], stdin=NOTHING, stdout=NOTHING, stderr=NOTHING)
        try:
            looking.wait(within_s)
        except subprocess.TimeoutExpired:
            looking.kill()  # nobody waits for its end, which may never come
            raise TierError(
                f"{tier.path} does not answer within {within_s:g} s",
                where=f"tier {tier.name!r}",
                fix="see whether its server is there and mount it again, or place nothing on this tier",
            ) from None
