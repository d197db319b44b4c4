"""The registry of the figures of the published experiment: each is drawn if the logs at hand have something to show."""

from __future__ import annotations

from neurotier.pages.kit.registry import Entry

FIGURES = (
    Entry(
        "predicted",
        "Predicted against measured",
        "Every condition, predicted without having seen its runs (left), or any run on its device (right).",
    ),
    Entry(
        "table_one",
        "Table I: bandwidth of one stream",
        "Read and write bandwidth of each device by the published storage benchmark.",
    ),
    Entry(
        "makespan",
        "Makespans",
        "Measured makespans of each device beside the paper's estimate and, where there are any, the model's.",
        "bigbrain.makespans",
    ),
    Entry(
        "phases",
        "Time by phase",
        "Time that all blocks together spent in each phase.",
        "bigbrain.phases",
    ),
    Entry(
        "gantt",
        "Who did what when",
        "The phases of every block; grey lines: between two phases of a block.",
        "bigbrain.gantts",
    ),
    Entry(
        "mean_parallelism",
        "Mean parallelism",
        "How many blocks were in a phase at once, of the processes that were asked for.",
        "bigbrain.parallelism",
    ),
    Entry(
        "bids_makespan",
        "Makespan of the BIDS App example (Figure 9)",
        "A bar per condition (median), a dot per repetition.",
    ),
    Entry(
        "bids_cpu_io",
        "CPU time, and I/O as the paper counts it, of the BIDS App example (Figure 10)",
        "Sums over all tasks of a run, medians over repetitions.",
    ),
)

OTHERS = "conditions that are in no figure of the paper"
READINGS = {
    "makespan_others": "Runs with a delay, of several iterations, and those that were made again later.",
    "gantt_40um_25": "The phases of every block (as Figure 2 of the paper); grey lines: between two phases of a block.",
    "gantt_40um_96": "The phases of every block (as Figure 4 of the paper); grey lines: between two phases of a block.",
}
"""How to read figures of which it is not said with the others of their kind."""


def heading_of(entry: Entry, name: str) -> str:
    """What a figure is, with the part that it shows.

    >>> heading_of(FIGURES[4], "gantt_20um_25"), heading_of(FIGURES[2], "makespan_40um")
    ('Who did what when, 20 µm, 25 processes', 'Makespans, 40 µm')
    """
    part = name.removeprefix(entry.name).strip("_")
    resolution, several, processes = part.partition("um_")
    words = (
        f"{resolution} µm, {processes} processes" if several else part.replace("um", " µm").replace("others", OTHERS)
    )
    return ", ".join(filter(None, (entry.heading, words)))
