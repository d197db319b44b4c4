"""The figure ``tier_bytes``: bytes read from and written to each tier (D of the model), by condition."""

from __future__ import annotations

from pathlib import Path

from neurotier.core.quantities import shorten, size
from neurotier.core.spread import spread
from neurotier.core.tables import Row
from neurotier.pages.comparison.names import NO_RUN, Names
from neurotier.pages.comparison.statistics import by_condition, run_key
from neurotier.pages.comparison.sums import Bars, Parts, length, write_sums
from neurotier.pages.kit.chart import SKY, VERMILION
from neurotier.pages.kit.findings import Finding
from neurotier.pages.kit.stacks import Kind
from neurotier.run.compared import Compared

KINDS = {"read": Kind("read", SKY), "written": Kind("written", VERMILION)}
MIB = 1024.0**2
NOTE = "Lanes: placement: tier. As far as the meter knows; n/a: not known."


def traffic(tables: Compared) -> Bars:
    """Bytes by condition and tier, of the tiers of which anything is known."""
    moved: dict[tuple[str, str], list[Row]] = {}
    for row in tables.traffic:
        moved.setdefault(run_key(row), []).append(row)
    found = {}
    for condition, members in by_condition(tables.runs).items():
        own = [row for run in members for row in moved.get(run_key(run), [])]
        for tier in sorted({row["tier"] for row in own}):
            of_tier = [row for row in own if row["tier"] == tier]
            found[condition, tier] = {name: spread(of_tier, f"{name}_bytes") for name in KINDS}
    return {key: parts for key, parts in found.items() if any(parts.values())}


def finding(tables: Compared) -> Finding:
    """Over which tier most bytes went, and with which condition."""
    if not by_condition(tables.runs):
        return Finding(NO_RUN, shown=False)
    bars = traffic(tables)
    if not bars:
        return Finding("Of no run that is compared is it known how many bytes it moved", shown=False)
    condition, tier = max(bars, key=lambda key: (length(bars[key]), key))
    if not length(bars[condition, tier]):
        return Finding("No bytes were moved")
    conditions = {condition for condition, _ in bars}
    where = f" ({Names(conditions).of(condition)})" if len(conditions) > 1 else ""
    return Finding(f"Most bytes cross the tier {shorten(tier, 30)}: {text_of(bars[condition, tier])}{where}")


def draw(tables: Compared, stem: Path) -> None:
    """Draw the bytes of all valid runs; write SVG, PNG and TSV."""
    style = {"label": "Sum over participant jobs (MiB)", "scale": MIB, "words": size}
    write_sums(stem, finding(tables), traffic(tables), KINDS, text_of, NOTE, "bytes", **style)


def text_of(parts: Parts) -> str:
    """Bytes read and written."""
    read, written = (size(part.median if (part := parts[name]) else None) for name in KINDS)
    return f"{read} read, {written} written"
