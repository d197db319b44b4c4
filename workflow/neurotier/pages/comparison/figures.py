"""The registry of the comparison's figures."""

from __future__ import annotations

from neurotier.pages.kit.registry import Entry

FIGURES = (
    Entry(
        "makespan",
        "Makespan",
        "A bar per condition, a dot per repetition; speed-up beside it. As the published Figure 9.",
    ),
    Entry(
        "cpu_io_sums",
        "CPU time, and I/O as the paper counts it",
        "Sums over all participant jobs of a run, medians over repetitions. As the published Figure 10.",
    ),
    Entry(
        "accounts",
        "Where the wall time went",
        "The same sums divided by cause, where the runs have an account of their waits.",
    ),
    Entry(
        "differences",
        "Differences by participant",
        "The same participant with two placements: how much longer the slower one took.",
    ),
    Entry(
        "phases",
        "Time by phase",
        "Sums over all participant jobs of a run by phase, medians over repetitions.",
    ),
    Entry("gantts", "Who ran when", "One small Gantt per run: jobs by phase, one after the other on its lanes."),
    Entry("tier_bytes", "Bytes by tier", "What had to be read from and written to each tier: D of the model."),
)
