"""The makespans of the BIDS App example, as the comparison draws them (Figure 9)."""

from __future__ import annotations

from neurotier.pages.comparison import makespan
from neurotier.pages.published.tables import Replayed
from neurotier.run.compared import Compared

finding, draw = makespan.finding, makespan.draw


def parts(tables: Replayed) -> dict[str, Compared]:
    """The runs of the example, if there are any."""
    runs = tables.replay.bids_app
    return {"": runs} if finding(runs).shown else {}
