"""The figure ``phases``: summed wall time by phase, placement and parallelism."""

from __future__ import annotations

from pathlib import Path

import pandas as pd

from neurotier.core.quantities import percent, seconds
from neurotier.core.spread import Spread
from neurotier.pages.comparison.names import NO_RUN, Names
from neurotier.pages.comparison.statistics import by_condition, run_key
from neurotier.pages.comparison.sums import Bars, Parts, length, share, write_sums
from neurotier.pages.kit.findings import Finding, between
from neurotier.pages.kit.stacks import Kind
from neurotier.pages.kit.style import PHASE_COLOURS
from neurotier.run.compared import Compared

WHOLE = "whole"
KINDS = {phase: Kind(phase, colour) for phase, colour in PHASE_COLOURS.items()}
NOTE = "Of published jobs the whole is known only. Beside the bars: share of the longest phase."


def breakdowns(tables: Compared) -> Bars:
    """Summed wall time of each phase, s, of every condition; of the phases that it has."""
    jobs = pd.DataFrame(tables.participants, columns=["origin", "run", "phase", "wall_s"])
    sums = jobs.pivot_table("wall_s", ["origin", "run"], "phase", "sum")
    found = {}
    for condition, members in by_condition(tables.runs).items():
        own = sums[sums.index.isin([run_key(run) for run in members])].dropna(axis="columns", how="all").fillna(0.0)
        if len(own):
            found[condition, ""] = {phase: Spread(tuple(own[phase])) for phase in PHASE_COLOURS if phase in own}
    return found


def finding(tables: Compared) -> Finding:
    """What computing takes of the summed wall time, and the largest other phase."""
    bars = breakdowns(tables)
    if not bars:
        return Finding(NO_RUN, shown=False)
    known = {condition: parts for (condition, _), parts in bars.items() if set(parts) != {WHOLE}}
    if not known:
        return Finding("Published logs know no phases, only whole jobs")
    computing = between([share(parts, "compute") for parts in known.values()], percent)
    text = f"Computing takes {computing} of the jobs' time"
    others = [
        (share(parts, phase), phase, condition)
        for condition, parts in known.items()
        for phase in parts
        if phase not in ("compute", WHOLE)
    ]
    if not others:
        return Finding(text)
    largest, phase, condition = max(others)
    where = f" ({Names(known).of(condition)})" if len(known) > 1 else ""
    return Finding(f"{text}; the longest of the other phases, {phase}, takes up to {percent(largest)}{where}")


def draw(tables: Compared, stem: Path) -> None:
    """Draw the phases of all valid runs; write SVG, PNG and TSV."""
    write_sums(stem, finding(tables), breakdowns(tables), KINDS, text_of, NOTE)


def text_of(parts: Parts) -> str:
    """The whole time, and the longest phase."""
    longest = max(parts, key=lambda phase: length(parts, phase))
    return seconds(length(parts)) + (f"; {longest} {percent(share(parts, longest))}" if longest != WHOLE else "")
