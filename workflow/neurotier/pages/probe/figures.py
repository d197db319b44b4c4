"""The registry of the probe's figures."""

from __future__ import annotations

from neurotier.pages.kit.registry import Entry

FIGURES = (
    Entry(
        "one_stream",
        "One stream",
        "A bar for each tier; in grey the devices of the published Table I. What one participant job sees.",
    ),
    Entry(
        "concurrency",
        "Streams at once",
        "A panel for each tier, all on the same scales, both logarithmic. What many participant jobs share.",
    ),
)
