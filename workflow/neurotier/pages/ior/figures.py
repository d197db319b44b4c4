"""The registry of the figures on files written and read back."""

from __future__ import annotations

from neurotier.pages.kit.registry import Entry

FIGURES = (
    Entry(
        "bandwidth",
        "All processes together",
        "All bytes over the time from the first start to the last end, as IOR counts, by the number of processes, and"
        " what is published of a node. As Figures 3 and 4 of the page on the NEXTGenIO prototype, for one node.",
    ),
    Entry(
        "nodes",
        "All nodes together",
        "The same of several nodes, which begin at one instant, by their number; a line for each number of processes"
        " per node. As Figures 3 and 4 of the page on the NEXTGenIO prototype.",
    ),
)
