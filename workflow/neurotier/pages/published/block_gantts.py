"""The figures ``gantt_*``: when each block was read, incremented and written (the paper's Figures 2 and 4)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

from neurotier.core.quantities import counted, mean_count, seconds
from neurotier.core.tables import Row
from neurotier.pages.kit.style import GREY, SKY, VERMILION, house_style, save_figure, state
from neurotier.pages.published.phase_sums import means
from neurotier.pages.published.strips import Chart, Strip, draw_charts
from neurotier.published.bigbrain import HEADER, INCREMENT, WRITE, BlockRun, Phase
from neurotier.published.conditions import ENGINES, Condition, cells

Runs = Mapping[Condition, Sequence[BlockRun]]

COLOURS = {HEADER: GREY, INCREMENT: SKY, WRITE: VERMILION}

NOTE = (
    "Of each condition the repetition of middle makespan. A lane holds blocks that came one after the other; every"
    " panel has a clock of its own, in s since its first phase."
)


def middle(members: Sequence[BlockRun]) -> BlockRun:
    """The repetition of middle makespan; the shorter of two."""
    return sorted(members, key=lambda run: run.makespan_s)[(len(members) - 1) // 2]


def gantt_finding(runs: Runs) -> str:
    """What takes blocks the longest, and where; modes of a device are told only if they differ."""
    longest = {}
    for condition, members in runs.items():
        sums = means(members)
        longest[condition] = max(sums, key=lambda phase: sums[phase])
    told: dict[str, list[str]] = {}
    for condition, phase in longest.items():
        alike = {longest[one] for one in longest if (one.device, one.engine) == (condition.device, condition.engine)}
        name = condition.device if len(alike) == 1 else condition.place.replace(", ", " in ")
        engine = f" ({ENGINES[condition.engine]})" if len({one.engine for one in runs}) > 1 else ""
        told.setdefault(phase, []).append(f"{name}{engine}")
    verbs = {WRITE: "writing", INCREMENT: "reading and incrementing", HEADER: "loading headers"}
    first, *others = (phase for phase in verbs if phase in told)
    places = {phase: ", ".join(dict.fromkeys(names)) for phase, names in told.items()}
    sentence = f"{verbs[first].capitalize()} is the longest phase on {places[first]}"
    return "; ".join([sentence, *(f"{verbs[phase]} on {places[phase]}" for phase in others)])


def draw_gantts(runs: Runs, stem: Path) -> None:
    """Draw a run of each of at least one condition; write SVG, PNG and TSV."""
    shown = {condition: middle(members) for condition, members in runs.items()}
    with house_style():
        figure = draw_charts(list(charts(shown).values()), COLOURS)
        state(figure, gantt_finding(runs), NOTE)
        save_figure(figure, stem, table(shown))


def charts(shown: Mapping[Condition, BlockRun]) -> dict[Condition, Chart]:
    """A chart of each run."""
    several = len({one.engine for one in shown}) > 1
    found = {}
    for condition, run in shown.items():
        engine = f"{ENGINES[condition.engine]}, " if several else ""
        told = f"{seconds(run.makespan_s)}, {mean_count(run.mean_parallelism)} of {condition.processes} busy"
        left = len(run.incomplete_blocks)
        told += f"; {counted(left, 'block')} not written" if left else ""
        found[condition] = Chart(f"{engine}{condition.place}\n{told}", strips(run))
    return found


def strips(run: BlockRun) -> list[Strip]:
    """The phases of each block as one strip."""
    phases: dict[str, list[Phase]] = {}
    for phase in run.work:
        phases.setdefault(phase.block, []).append(phase)
    return [
        Strip(
            block,
            min(phase.start_s for phase in members),
            max(phase.end_s for phase in members),
            members,
            block not in run.incomplete_blocks,
        )
        for block, members in phases.items()
    ]


def table(shown: Mapping[Condition, BlockRun]) -> list[Row]:
    """The numbers behind the figure: one row per phase drawn, s since the run's first phase."""
    return [
        {**cells(condition), "repetition": shown[condition].repetition, **row}
        for condition, chart in charts(shown).items()
        for row in chart.rows()
    ]
