"""The registry of the advice's figures."""

from __future__ import annotations

from neurotier.pages.kit.registry import Entry

FIGURES = (
    Entry(
        "advised",
        "Predicted makespans",
        "A bar for each placement. Where intervals overlap, the difference does not matter.",
    ),
)
