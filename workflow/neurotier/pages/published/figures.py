"""The figures of the replay: those for which the logs at hand have something to show."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from neurotier.core.tables import Row
from neurotier.pages.comparison import cpu_io_sums
from neurotier.pages.comparison import makespan as bids_makespan
from neurotier.pages.published import block_gantts, makespans, parallelism, phase_sums, predictions, table_one_figure
from neurotier.published.bigbrain import BlockRun
from neurotier.published.conditions import Condition
from neurotier.published.replay import Replay


@dataclass(frozen=True)
class Figure:
    """A figure that can be drawn.

    Attributes
    ----------
    name
        Of its files.
    heading, reading
        What it is and how to read it.
    finding
        Its title, without a full stop.
    draw
        Draws it, given the path of its files without extension.
    """

    name: str
    heading: str
    reading: str
    finding: str
    draw: Callable[[Path], None]


def figures(replay: Replay, predicted: Sequence[Row]) -> list[Figure]:
    """All figures that the logs at hand allow, in order; ``predicted`` has rows of ``published_predictions.tsv``."""
    return [
        *storage(replay),
        *bigbrain(replay, predicted),
        *bids_app(replay),
        *model(predicted),
    ]


def draw_all(replay: Replay, predicted: Sequence[Row], folder: Path) -> None:
    """Draw every figure as ``<folder>/<name>.svg``, ``.png`` and ``.tsv``."""
    for figure in figures(replay, predicted):
        figure.draw(folder / figure.name)


def storage(replay: Replay) -> Iterator[Figure]:
    """Table I."""
    if replay.bandwidths:
        yield Figure(
            "table_one",
            "Table I: bandwidth of one stream",
            "Read and write bandwidth of each device by the published storage benchmark.",
            table_one_figure.table_one_finding(replay.bandwidths),
            lambda stem: table_one_figure.draw_table_one(replay.bandwidths, stem),
        )


def bigbrain(replay: Replay, predicted: Sequence[Row]) -> Iterator[Figure]:
    """The figures of the incrementation."""
    estimates = {condition: replay.equation_one_s(condition) for condition in replay.conditions}
    shown = {condition: runs for condition, runs in replay.conditions.items() if not condition.variant}
    for size in sorted({condition.resolution_um for condition in shown}, reverse=True):
        yield from image(size, of_size(shown, size), estimates, predicted)
    if shown:
        yield Figure(
            "mean_parallelism",
            "Mean parallelism",
            "How many blocks were in a phase at once, of the processes that were asked for.",
            parallelism.parallelism_finding(shown),
            lambda stem: parallelism.draw_parallelism(shown, stem),
        )
    others = {condition: runs for condition, runs in replay.conditions.items() if condition.variant}
    if others:
        yield Figure(
            "makespan_others",
            "Makespans of conditions that are in no figure of the paper",
            "Runs with a delay, of several iterations, and those that were made again later.",
            makespans.makespan_finding(others, estimates),
            lambda stem: makespans.draw_makespans(others, estimates, predicted, stem),
        )


def image(
    size: int,
    runs: Mapping[Condition, Sequence[BlockRun]],
    estimates: Mapping[Condition, float | None],
    predicted: Sequence[Row],
) -> Iterator[Figure]:
    """The figures of the image of one resolution, um."""
    yield Figure(
        f"makespan_{size}um",
        f"Makespans, {size} µm",
        "Measured makespans of each device beside the paper's estimate and, where there are any, the model's.",
        makespans.makespan_finding(runs, estimates),
        lambda stem: makespans.draw_makespans(runs, estimates, predicted, stem),
    )
    yield Figure(
        f"phases_{size}um",
        f"Time by phase, {size} µm",
        "Time that all blocks together spent in each phase.",
        phase_sums.phase_finding(runs),
        lambda stem: phase_sums.draw_phase_sums(runs, stem),
    )
    for count in sorted({condition.processes for condition in runs}):
        yield gantt(
            size, count, {condition: members for condition, members in runs.items() if condition.processes == count}
        )


def gantt(size: int, count: int, runs: Mapping[Condition, Sequence[BlockRun]]) -> Figure:
    """The Gantt charts of one image and number of processes."""
    numbers = {(40, 25): " (as Figure 2 of the paper)", (40, 96): " (as Figure 4 of the paper)"}
    return Figure(
        f"gantt_{size}um_{count}",
        f"Who did what when: {size} µm, {count} processes",
        f"The phases of every block{numbers.get((size, count), '')}; grey lines: between two phases of a block.",
        block_gantts.gantt_finding(runs),
        lambda stem: block_gantts.draw_gantts(runs, stem),
    )


def of_size(runs: Mapping[Condition, list[BlockRun]], size: int) -> dict[Condition, list[BlockRun]]:
    """The conditions of one image."""
    return {condition: members for condition, members in runs.items() if condition.resolution_um == size}


def bids_app(replay: Replay) -> Iterator[Figure]:
    """The figures of the BIDS App example."""
    makespan, cpu_io = bids_makespan.finding(replay.bids_app), cpu_io_sums.finding(replay.bids_app)
    if makespan.shown:
        yield Figure(
            "bids_makespan",
            "Makespan of the BIDS App example (Figure 9)",
            "A bar per condition (median), a dot per repetition.",
            makespan.sentence,
            lambda stem: bids_makespan.draw(replay.bids_app, stem),
        )
    if cpu_io.shown:
        yield Figure(
            "bids_cpu_io",
            "CPU and I/O time of the BIDS App example (Figure 10)",
            "Sums over all tasks of a run, medians over repetitions.",
            cpu_io.sentence,
            lambda stem: cpu_io_sums.draw(replay.bids_app, stem),
        )


def model(predicted: Sequence[Row]) -> Iterator[Figure]:
    """What the model predicts."""
    if predictions.held_against(predicted):
        yield Figure(
            "predicted",
            "Predicted against measured",
            "Every condition that a member of the model predicts, on axes of one scale.",
            predictions.predictions_finding(predicted),
            lambda stem: predictions.draw_predictions(predicted, stem),
        )
