"""The figure ``accounts``: summed wall time by its causes, where runs have an account."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from neurotier.core.quantities import percent, seconds, share_of
from neurotier.core.spread import Spread, spread
from neurotier.core.tables import Row
from neurotier.meter.usage import LABELS
from neurotier.pages.comparison.names import NO_RUN, Names, condition_cells, spread_cells
from neurotier.pages.comparison.panels import group_panels
from neurotier.pages.comparison.statistics import by_condition
from neurotier.pages.kit import plot
from neurotier.pages.kit.causes import CPU, MEMORY_STALL, UNEXPLAINED
from neurotier.pages.kit.findings import Finding
from neurotier.pages.kit.lanes import Lane
from neurotier.pages.kit.stacks import Bar, Kind, draw_stacked
from neurotier.pages.kit.style import CAUSE_COLOURS, write_figure
from neurotier.run.compared import Compared
from neurotier.run.conditions import Condition

NOTE = (
    "Medians over repetitions of the sums over participant jobs; the medians of the parts need not add up to that of"
    " the whole. Asleep: network, locks or timers. Beside the bars: share of time on a CPU. Valid runs only."
)
Account = dict[str, Spread | None]


def column_of(cause: str) -> str:
    """The column of ``compared_runs.tsv`` that sums a cause."""
    return f"{cause.removesuffix('_s')}_sum_s"


def accounts(runs: Sequence[Row]) -> dict[Condition, Account]:
    """Summed wall time by cause, s, of every condition that has an account."""
    found = {}
    for condition, members in by_condition(runs).items():
        known = [run for run in members if any(run[column_of(cause)] is not None for cause in LABELS)]
        if known:
            found[condition] = {cause: spread(known, column_of(cause)) for cause in LABELS}
    return found


def median_of(account: Account, cause: str) -> float:
    """Median of a cause, s; 0 if it is not known."""
    value = account[cause]
    return value.median if value is not None else 0.0


def share(account: Account, *causes: str) -> float:
    """Share of some causes of all; 0 of no time."""
    return share_of(sum(median_of(account, cause) for cause in causes), whole_s(account)) or 0.0


def whole_s(account: Account) -> float:
    """Length of the bar, s: what is below 0 is drawn as 0."""
    return sum(max(0.0, median_of(account, cause)) for cause in LABELS)


def finding(tables: Compared) -> Finding:
    """The largest share of a wait, and between which shares is time on a CPU."""
    if not by_condition(tables.runs):
        return Finding(NO_RUN, shown=False)
    accounts_by_condition = accounts(tables.runs)
    if not accounts_by_condition:
        return Finding(
            "No run has an account of its wall time; published logs know CPU and wall time only", shown=False
        )
    names = Names(accounts_by_condition)
    on_cpu = sorted(share(account, *CPU) for account in accounts_by_condition.values())
    low, high = percent(on_cpu[0]), percent(on_cpu[-1])
    text = f"{low if low == high else f'{low} to {high}'} of summed time on a CPU"
    waits = [cause for cause in LABELS if cause not in CPU]
    largest, cause, condition = max(
        (share(account, cause), cause, condition)
        for condition, account in accounts_by_condition.items()
        for cause in waits
    )
    if percent(largest) == percent(0.0):
        return Finding(text)
    least = min(share(account, cause) for account in accounts_by_condition.values())
    much = (
        percent(largest) if percent(least) == percent(largest) else f"up to {percent(largest)} ({names.of(condition)})"
    )
    return Finding(f"{text}; most of the rest is {LABELS[cause]}, {much}")


def draw(tables: Compared, stem: Path) -> None:
    """Draw the accounts of all valid runs that have one; write SVG, PNG and TSV."""
    accounts_by_condition = accounts(tables.runs)
    note = NOTE + without_account(tables.runs, accounts_by_condition)
    write_figure(stem, finding(tables), table(accounts_by_condition), lambda: figure_of(accounts_by_condition), note)


def figure_of(accounts_by_condition: dict[Condition, Account]) -> plot.Figure:
    """The figure of at least one condition."""
    memory = any(median_of(account, MEMORY_STALL) for account in accounts_by_condition.values())
    causes = [cause for cause in LABELS if cause != MEMORY_STALL or memory]
    kinds = [Kind(LABELS[cause], CAUSE_COLOURS[cause], cause == UNEXPLAINED) for cause in causes]
    panels = group_panels(
        accounts_by_condition,
        lambda condition: [Lane(condition.placement, bar(accounts_by_condition[condition], causes))],
    )
    return draw_stacked(panels, kinds, "Sum over participant jobs (s)")


def bar(account: Account, causes: Sequence[str]) -> Bar:
    """The bar of one condition."""
    return Bar(
        tuple(account[cause] for cause in causes),
        f"{seconds(whole_s(account))}; {percent(share(account, *CPU))} on a CPU",
    )


def without_account(runs: Sequence[Row], accounts_by_condition: dict[Condition, Account]) -> str:
    """Which origins have conditions that are not shown."""
    origins = sorted({condition.origin for condition in by_condition(runs) if condition not in accounts_by_condition})
    return f" Without an account, and not shown: {', '.join(origins)}." if origins else ""


def table(accounts_by_condition: dict[Condition, Account]) -> list[Row]:
    """The numbers behind the figure: one row per condition, unclipped."""
    rows = []
    for condition, account in accounts_by_condition.items():
        row = condition_cells(condition)
        for cause, value in account.items():
            row |= spread_cells(column_of(cause).removesuffix("_s"), "s", value)
        rows.append(row)
    return rows
