"""Panels of the comparison's figures: one per origin, tool and cache state, in it a lane per condition."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from typing import TypeVar

from neurotier.core.quantities import shorten
from neurotier.pages.comparison.statistics import Family, families
from neurotier.pages.kit.findings import at_once
from neurotier.pages.kit.lanes import Lane, Panel
from neurotier.run.conditions import Condition

Value = TypeVar("Value")


def panel_title(family: Family, length: int = 24) -> str:
    """What the conditions of a panel have in common, its names cut to some length."""
    return f"{shorten(family.origin, length)}: {shorten(family.tool, length)}, {family.inputs}"


def headed(groups: Iterable[tuple[Family, Sequence[Lane[Value]]]]) -> list[Panel[Value]]:
    """Panels of families with a heading for each parallelism; families that differ in it alone share one."""
    found: dict[Family, list[Lane[Value]]] = {}
    for family, lanes in groups:
        panel = found.setdefault(replace(family, parallelism=0), [])
        panel += [Lane(at_once(family.parallelism)), *lanes]
    return [Panel(panel_title(family), tuple(lanes)) for family, lanes in found.items()]


def group_panels(
    conditions: Iterable[Condition], lanes: Callable[[Condition], Sequence[Lane[Value]]]
) -> list[Panel[Value]]:
    """Panels of conditions.

    Parameters
    ----------
    conditions
        At least one.
    lanes
        The lanes of a condition.
    """
    return headed(
        (family, [lane for condition in members for lane in lanes(condition)])
        for family, members in families(conditions).items()
    )
