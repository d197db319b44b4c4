"""The figure ``bigbrain_phases``: where each engine's time goes on each tier (the paper's Figures 1, 3, 5 to 8)."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from neurotier.comparison.findings import at_once
from neurotier.comparison.panels import Bar, Kind, Lane, Panel, draw_stacked
from neurotier.comparison.statistics import is_compared, spread
from neurotier.report.quantities import counted, mean_count, seconds
from neurotier.report.style import GREEN, GREY, PURPLE, SKY, VERMILION, empty_figure, house_style, save_figure, state
from neurotier.tables import Row

KINDS = {
    "start_up_s": Kind("start of processes", GREY),
    "load_header_s": Kind("load header", PURPLE),
    "read_s": Kind("read", SKY),
    "increment_s": Kind("increment", GREEN),
    "write_s": Kind("write", VERMILION),
}
COLUMNS = ("engine", "tier", "parallelism", "repetition", "pairing", "valid", "makespan_s", *KINDS, "mean_parallelism")
NOTE = (
    "Sums over all blocks and iterations, medians over repetitions of valid runs. Right: median makespan, and the mean"
    " number of blocks in a phase at once. In the pairing 'published', reading is within incrementing (GNU parallel,"
    " Snakemake) or in no phase (Spark)."
)

Condition = tuple[str, int, str]


def conditions(rows: Sequence[Row]) -> dict[Condition, list[Row]]:
    """Tier, parallelism and engine to the valid repetitions, in the order of the table."""
    found: dict[Condition, list[Row]] = {}
    for row in filter(is_compared, rows):
        found.setdefault((row["tier"], row["parallelism"], row["engine"]), []).append(row)
    return found


def makespan_s(rows: Sequence[Row]) -> float:
    """Median makespan of at least one run, s."""
    found = spread(rows, "makespan_s")
    return found.median if found else 0.0


def finding(rows: Sequence[Row]) -> str:
    """Which condition was fastest, and which slowest."""
    found = conditions(rows)
    if not found:
        return "No run of the incrementation is valid"
    ordered = sorted(found, key=lambda condition: makespan_s(found[condition]))

    def told(condition: Condition) -> str:
        tier, parallelism, engine = condition
        return f"{seconds(makespan_s(found[condition]))} ({engine} on {tier}, {at_once(parallelism)})"

    blocks = counted(max(row["blocks"] for row in rows), "block")
    if len(ordered) == 1:
        return f"Incrementing {blocks} took {told(ordered[0])}"
    return f"Incrementing {blocks} took from {told(ordered[0])} to {told(ordered[-1])}"


def draw_phases(rows: Sequence[Row], stem: Path) -> None:
    """Draw the phase sums of all runs; write SVG, PNG and TSV."""
    with house_style():
        found = conditions(rows)
        if found:
            figure = draw_stacked(panels_of(found), list(KINDS.values()), "Sum over all blocks (s)")
            state(figure, finding(rows), NOTE)
        else:
            figure = empty_figure(finding(rows))
        save_figure(figure, stem, [{name: row[name] for name in COLUMNS} for row in rows])


def panels_of(found: dict[Condition, list[Row]]) -> list[Panel[Bar]]:
    """A panel for each tier, in it a heading for each parallelism and a lane for each engine."""
    lanes: dict[str, dict[int, list[Lane[Bar]]]] = {}
    for (tier, parallelism, engine), members in found.items():
        parts = tuple(spread(members, name) for name in KINDS)
        mean = spread(members, "mean_parallelism")
        text = f"{seconds(makespan_s(members))}; {mean_count(mean.median if mean else None)} at once"
        lanes.setdefault(tier, {}).setdefault(parallelism, []).append(Lane(engine, Bar(parts, text)))
    headed = {
        tier: [lane for parallelism, some in groups.items() for lane in (Lane[Bar](at_once(parallelism)), *some)]
        for tier, groups in lanes.items()
    }
    return [Panel(f"tier {tier}", tuple(some)) for tier, some in headed.items()]
