"""The figure ``accounts``: summed wall time by its causes, where runs have an account."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from neurotier.core.quantities import percent, seconds
from neurotier.core.spread import spread
from neurotier.core.tables import Row
from neurotier.meter.usage import LABELS
from neurotier.pages.comparison.names import NO_RUN, Names
from neurotier.pages.comparison.reasons import sum_of
from neurotier.pages.comparison.statistics import by_condition
from neurotier.pages.comparison.sums import Bars, length, share, write_sums
from neurotier.pages.kit.causes import CPU, MEMORY_STALL, UNEXPLAINED
from neurotier.pages.kit.findings import Finding, between
from neurotier.pages.kit.stacks import Kind
from neurotier.pages.kit.style import CAUSE_COLOURS
from neurotier.run.compared import Compared

NOTE = (
    "The medians of the parts need not add up to that of the whole. Asleep: network, locks or timers. Beside the bars:"
    " share of time on a CPU. Runs without an account, such as published ones, are not shown."
)


def accounts(runs: Sequence[Row]) -> Bars:
    """Summed wall time by cause, s, of every condition that has an account."""
    found = {
        (condition, ""): {cause: spread(members, sum_of(cause)) for cause in LABELS}
        for condition, members in by_condition(runs).items()
    }
    return {key: parts for key, parts in found.items() if any(parts.values())}


def finding(tables: Compared) -> Finding:
    """The largest share of a wait, and between which shares is time on a CPU."""
    if not by_condition(tables.runs):
        return Finding(NO_RUN, shown=False)
    bars = accounts(tables.runs)
    if not bars:
        return Finding(
            "No run has an account of its wall time; published logs know CPU and wall time only", shown=False
        )
    text = f"{between([share(parts, *CPU) for parts in bars.values()], percent)} of summed time on a CPU"
    largest, cause, condition = max(
        (share(parts, cause), cause, condition)
        for (condition, _), parts in bars.items()
        for cause in LABELS
        if cause not in CPU
    )
    if percent(largest) == percent(0.0):
        return Finding(text)
    least = min(share(parts, cause) for parts in bars.values())
    name = Names(condition for condition, _ in bars).of(condition)
    much = percent(largest) if percent(least) == percent(largest) else f"up to {percent(largest)} ({name})"
    return Finding(f"{text}; most of the rest is {LABELS[cause]}, {much}")


def draw(tables: Compared, stem: Path) -> None:
    """Draw the accounts of all valid runs that have one; write SVG, PNG and TSV."""
    bars = accounts(tables.runs)
    memory = any(length(parts, MEMORY_STALL) for parts in bars.values())
    kinds = {
        cause: Kind(label, CAUSE_COLOURS[cause], cause == UNEXPLAINED)
        for cause, label in LABELS.items()
        if cause != MEMORY_STALL or memory
    }
    write_sums(
        stem,
        finding(tables),
        bars,
        kinds,
        lambda parts: f"{seconds(length(parts))}; {percent(share(parts, *CPU))} on a CPU",
        NOTE,
    )
