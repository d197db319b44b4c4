"""CPU time and the paper's I/O of the BIDS App example, as the comparison draws them (Figure 10)."""

from __future__ import annotations

from neurotier.pages.comparison import cpu_io_sums
from neurotier.pages.published.tables import Replayed
from neurotier.run.compared import Compared

finding, draw = cpu_io_sums.finding, cpu_io_sums.draw


def parts(tables: Replayed) -> dict[str, Compared]:
    """The runs of the example, if there are any."""
    runs = tables.replay.bids_app
    return {"": runs} if finding(runs).shown else {}
