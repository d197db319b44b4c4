"""The registry of the run report's figures."""

from __future__ import annotations

from neurotier.pages.kit.registry import Entry

FIGURES = (
    Entry(
        "account",
        "Where the time went",
        "Wall time of each participant job by cause, slowest first, and below it the sums by phase.",
    ),
    Entry(
        "gantt",
        "Participant jobs of the last run",
        "How many participant jobs ran at each moment of the last run, and below it their phases on one clock.",
    ),
    Entry("nodes", "Nodes and jobs of the cluster", "How long participants of the last run took on each node."),
    Entry("brain_volume", "Brain volumes", "How brain volumes are distributed at each site; rings mark outliers."),
)
