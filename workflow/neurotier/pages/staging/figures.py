"""The registry of the figures of data staging."""

from __future__ import annotations

from neurotier.pages.kit.registry import Entry

LINES = "a line per engine and tier, with the numbers of the others in the TSV; medians, bars from least to greatest."
FIGURES = (
    Entry(
        "servers",
        "Servers",
        f"Response time of a time step against the number of servers, writing and reading; {LINES} As Figure 6 of the"
        " Optane report.",
    ),
    Entry(
        "strong_scaling",
        "Strong scaling",
        "The data of a step stay the same: response time of reads against readers, and of writes against writers;"
        f" {LINES} As Figure 7 of the Optane report, whose best numbers are shaded.",
    ),
    Entry(
        "weak_scaling",
        "Weak scaling",
        f"Each reader and writer has as many bytes, however many there are; {LINES} As Figure 8 of the Optane report,"
        " of which the text states no times.",
    ),
)
