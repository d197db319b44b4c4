"""All figures of the incrementation, from its tables; each is drawn in the module of its name."""

from __future__ import annotations

from pathlib import Path

from neurotier.pages.bigbrain import gantts, makespans, parallelism, phase_sums, spark_figure
from neurotier.pages.bigbrain.collect import Collected
from neurotier.pages.published.figures import Figure

SPARK_FIGURE = "bigbrain_spark"


def figures(collected: Collected) -> list[Figure]:
    """The figures in order, which are drawn whatever there is."""
    rows, runs, phases = collected.conditions, collected.alike, collected.phases
    return [
        Figure(
            "bigbrain_makespans",
            "Makespans",
            "Every valid repetition, the median, and what Eq. (1) and the fluid model predict."
            " As the published Figures 1a, 3a and 5a to 8a.",
            makespans.makespan_finding(rows),
            lambda stem: makespans.draw_makespans(rows, runs, stem),
        ),
        Figure(
            "bigbrain_phases",
            "Time by phase",
            "Time that all blocks together spent in each phase. As the published Figures 1b, 3b and 5b to 8b.",
            phase_sums.phase_finding(rows),
            lambda stem: phase_sums.draw_phases(rows, stem),
        ),
        Figure(
            "bigbrain_gantts",
            "Who did what when",
            "The phases of every block, a small chart for each condition. As the published Figures 2 and 4.",
            gantts.gantt_finding(gantts.charts(rows, runs, phases)),
            lambda stem: gantts.draw_gantts(rows, runs, phases, stem),
        ),
        Figure(
            "bigbrain_parallelism",
            "Parallelism",
            "How many blocks were in a phase at once, of as many as were asked for.",
            parallelism.parallelism_finding(rows),
            lambda stem: parallelism.draw_parallelism(rows, runs, stem),
        ),
        Figure(
            SPARK_FIGURE,
            "Spark by its parts",
            "Where Spark's time goes, and how many times GNU parallel's makespan it takes.",
            spark_figure.spark_finding(collected.runs),
            lambda stem: spark_figure.draw_spark(collected.spark, collected.runs, stem),
        ),
    ]


def draw_all(collected: Collected, folder: Path) -> None:
    """Draw every figure as ``<folder>/<name>.svg``, ``.png`` and ``.tsv``."""
    for figure in figures(collected):
        figure.draw(folder / figure.name)
