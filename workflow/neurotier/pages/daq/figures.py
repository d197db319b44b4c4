"""The registry of the figures on writers at a fixed rate."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from neurotier.core.settings import DaqSettings
from neurotier.core.tables import Row
from neurotier.pages.kit.registry import Entry

FIGURES = (
    Entry(
        "held",
        "What each writer holds",
        "The rate that a writer reached, in per cent of the rate at which it got its data, by the number of writers at"
        " once. As Figure 7 of the DUNE paper.",
    ),
    Entry(
        "buffer",
        "The buffer that is needed",
        "Data that have come and are not written yet, over time, a line per number of writers; dashed: up to the time"
        " for which the buffer must do. As Figure 6 of the DUNE paper.",
    ),
    Entry(
        "throughput",
        "All writers together",
        "What all writers wrote together, by their number, beside what came to them. As Figure 8 of the DUNE paper.",
    ),
)


class DaqTables(NamedTuple):
    """Rows of ``daq.tsv`` and of ``backlog.tsv``, and what they are judged by."""

    points: Sequence[Row]
    backlog: Sequence[Row]
    settings: DaqSettings
