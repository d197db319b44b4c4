"""The registry of the figures of the incrementation; the page of the published experiment shows some of them, too."""

from __future__ import annotations

from neurotier.pages.kit.registry import Entry

SPARK = Entry(
    "bigbrain_spark",
    "Spark by its parts",
    "Where Spark's time goes, and how many times GNU parallel's makespan it takes.",
    "bigbrain.spark",
)

FIGURES = (
    Entry(
        "bigbrain_makespans",
        "Makespans",
        "Every valid repetition, the median, and what Eq. (1) and the fluid model predict."
        " As the published Figures 1a, 3a and 5a to 8a.",
        "bigbrain.makespans",
    ),
    Entry(
        "bigbrain_phases",
        "Time by phase",
        "Time that all blocks together spent in each phase. As the published Figures 1b, 3b and 5b to 8b.",
        "bigbrain.phases",
    ),
    Entry(
        "bigbrain_gantts",
        "Who did what when",
        "The phases of every block, a small chart for each condition. As the published Figures 2 and 4.",
        "bigbrain.gantts",
    ),
    Entry(
        "bigbrain_parallelism",
        "Parallelism",
        "How many blocks were in a phase at once, of as many as were asked for.",
        "bigbrain.parallelism",
    ),
    SPARK,
)
