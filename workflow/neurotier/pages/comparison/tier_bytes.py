"""The figure ``tier_bytes``: bytes read from and written to each tier (D of the model), by condition."""

from __future__ import annotations

from pathlib import Path

from neurotier.core.quantities import MISSING, shorten, size
from neurotier.core.spread import Spread, spread
from neurotier.core.tables import Row
from neurotier.pages.comparison.names import NO_RUN, Names, condition_cells, spread_cells
from neurotier.pages.comparison.panels import group_panels
from neurotier.pages.comparison.statistics import by_condition, run_key
from neurotier.pages.kit import plot
from neurotier.pages.kit.findings import Finding
from neurotier.pages.kit.lanes import Lane
from neurotier.pages.kit.stacks import Bar, Kind, draw_stacked
from neurotier.pages.kit.style import SKY, VERMILION, write_figure
from neurotier.run.compared import Compared
from neurotier.run.conditions import Condition

KINDS = (Kind("read", SKY), Kind("written", VERMILION))
COLUMNS = {"read": "read_bytes", "written": "written_bytes"}
UNITS = {"GiB": 1024.0**3, "MiB": 1024.0**2, "KiB": 1024.0}
NOTE = (
    "Lanes: placement: tier. Medians over repetitions of the sums over participant jobs, as far as the meter knows;"
    " n/a: not known."
    " Valid runs only."
)
Traffic = dict[str, Spread | None]


def traffic(tables: Compared) -> dict[Condition, dict[str, Traffic]]:
    """Bytes by condition and tier, of the tiers of which anything is known."""
    moved: dict[tuple[str, str], list[Row]] = {}
    for row in tables.traffic:
        moved.setdefault(run_key(row), []).append(row)
    traffic_by_condition = {}
    for condition, members in by_condition(tables.runs).items():
        own = [row for run in members for row in moved.get(run_key(run), [])]
        tiers = {}
        for tier in sorted({row["tier"] for row in own}):
            of_tier = [row for row in own if row["tier"] == tier]
            spreads = {name: spread(of_tier, column) for name, column in COLUMNS.items()}
            if any(value is not None for value in spreads.values()):
                tiers[tier] = spreads
        if tiers:
            traffic_by_condition[condition] = tiers
    return traffic_by_condition


def total_bytes(flow: Traffic) -> float:
    """Bytes read and written, as far as they are known."""
    return sum(value.median for value in flow.values() if value is not None)


def texts(flow: Traffic) -> tuple[str, str]:
    """Bytes read and written in words."""
    read, written = (size(value.median) if value is not None else MISSING for value in flow.values())
    return read, written


def finding(tables: Compared) -> Finding:
    """Over which tier most bytes went, and with which condition."""
    if not by_condition(tables.runs):
        return Finding(NO_RUN, shown=False)
    traffic_by_condition = traffic(tables)
    if not traffic_by_condition:
        return Finding("Of no run that is compared is it known how many bytes it moved", shown=False)
    most, condition, tier = max(
        (total_bytes(flow), condition, tier)
        for condition, tiers in traffic_by_condition.items()
        for tier, flow in tiers.items()
    )
    read, written = texts(traffic_by_condition[condition][tier])
    where = f" ({Names(traffic_by_condition).of(condition)})" if len(traffic_by_condition) > 1 else ""
    if most <= 0:
        return Finding("No bytes were moved")
    return Finding(f"Most bytes cross the tier {shorten(tier, 30)}: {read} read and {written} written{where}")


def draw(tables: Compared, stem: Path) -> None:
    """Draw the bytes of all valid runs; write SVG, PNG and TSV."""
    traffic_by_condition = traffic(tables)
    write_figure(stem, finding(tables), table(traffic_by_condition), lambda: figure_of(traffic_by_condition), NOTE)


def figure_of(traffic_by_condition: dict[Condition, dict[str, Traffic]]) -> plot.Figure:
    """The figure of at least one condition."""
    most = max(total_bytes(flow) for tiers in traffic_by_condition.values() for flow in tiers.values())
    unit = next((name for name, length in UNITS.items() if most >= 2 * length), "KiB")
    panels = group_panels(traffic_by_condition, lambda condition: lanes(condition, traffic_by_condition[condition]))
    return draw_stacked(panels, KINDS, f"Sum over participant jobs ({unit})", UNITS[unit], words=size)


def lanes(condition: Condition, tiers: dict[str, Traffic]) -> list[Lane[Bar]]:
    """A lane per tier of a condition."""
    found = []
    for tier, flow in tiers.items():
        read, written = texts(flow)
        name = f"{shorten(condition.placement, 22)}: {shorten(tier, 18)}"
        found.append(Lane(name, Bar(tuple(flow.values()), f"{read} read, {written} written")))
    return found


def table(traffic_by_condition: dict[Condition, dict[str, Traffic]]) -> list[Row]:
    """The numbers behind the figure: one row per condition and tier."""
    rows = []
    for condition, tiers in traffic_by_condition.items():
        for tier, flow in tiers.items():
            row = condition_cells(condition) | {"tier": tier}
            for name, value in flow.items():
                row |= spread_cells(name, "bytes", value)
            rows.append(row)
    return rows
