"""The figure ``bigbrain_phases``: where each engine's time goes on each tier (the paper's Figures 1b, 3b, 5b to 8b)."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from pathlib import Path

from neurotier.core.quantities import counted, mean_count, seconds
from neurotier.core.spread import Spread
from neurotier.core.tables import Row
from neurotier.pages.bigbrain.lanes import NO_RUN, own, published, shown, tier_panels
from neurotier.pages.kit.stacks import Bar, Kind, draw_stacked
from neurotier.pages.kit.style import GREEN, GREY, PURPLE, SKY, VERMILION, empty_figure, house_style, save_figure, state
from neurotier.pages.published.makespans import filled_with

KINDS = {
    "start_up_s": Kind("start of processes", GREY),
    "load_header_s": Kind("load header", PURPLE),
    "read_s": Kind("read", SKY),
    "increment_s": Kind("increment", GREEN),
    "write_s": Kind("write", VERMILION),
}
COLUMNS = (
    *("origin", "engine", "tier", "parallelism", "blocks", "iterations", "pairing", "runs", "makespan_s"),
    *(*KINDS, "mean_parallelism", "incomplete_blocks"),
)
NOTE = (
    "Sums over all blocks and iterations, medians over repetitions of valid runs. Right: median makespan, and the mean"
    " number of blocks in a phase at once. In the pairing 'published', reading is within incrementing (GNU parallel,"
    " Snakemake) or in no phase (Spark)."
)
PUBLISHED_NOTE = " Published runs are of that pairing; the start of their processes is not known."
INCOMPLETE = " * Some blocks were not written (the SSD was full): their reading counts."


def phase_finding(rows: Sequence[Row]) -> str:
    """Which phase takes longest, in how many conditions of one's own, or else of the paper."""
    known = own(rows) or published(rows)
    if not known:
        return NO_RUN
    longest = Counter(max(KINDS, key=lambda name: row[name] or 0.0) for row in known)
    (first, count), *others = longest.most_common()
    among = "published condition" if not own(rows) else "condition"
    text = f"The longest phase is {KINDS[first].label} in {count:,} of {counted(len(known), among)}"
    return ", ".join([text, *(f"{KINDS[name].label} in {times:,}" for name, times in others)])


def draw_phases(rows: Sequence[Row], stem: Path) -> None:
    """Draw the phase sums of all conditions, rows of ``bigbrain_conditions.tsv``; write SVG, PNG and TSV."""
    with house_style():
        panels = filled_with(tier_panels(rows), bar_of)
        if panels:
            figure = draw_stacked(panels, list(KINDS.values()), "Sum over all blocks (s)")
            incomplete = any(row["incomplete_blocks"] for row in shown(rows))
            state(figure, phase_finding(rows), NOTE + PUBLISHED_NOTE * bool(published(rows)) + INCOMPLETE * incomplete)
        else:
            figure = empty_figure(phase_finding(rows))
        save_figure(figure, stem, [{name: row[name] for name in COLUMNS} for row in shown(rows)])


def bar_of(row: Row) -> Bar:
    """The bar of a condition."""
    parts = tuple(None if row[name] is None else Spread((row[name],)) for name in KINDS)
    return Bar(parts, f"{seconds(row['makespan_s'])}; {mean_count(row['mean_parallelism'])} at once")
