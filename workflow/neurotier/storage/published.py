"""Numbers that papers state about storage (``published.yaml``), for comparison with the user's own measurements."""

from __future__ import annotations

from pathlib import Path
from typing import NamedTuple

import yaml

from neurotier.core.quantities import counted, rate, size

GIVEN = yaml.safe_load(Path(__file__).with_suffix(".yaml").read_text())


class PublishedNumber(NamedTuple):
    """A number that a paper states.

    Attributes
    ----------
    source
        The paper.
    name
        What was measured, in words.
    quantity
        The user's own figure that it is compared with; each workload defines its own.
    value, unit
        The number, and its unit: ``bytes/s``, ``bytes``, or something counted, such as ``writer``.
    page
        Its page or section in the paper.
    figure
        Its figure there; empty if there is none.
    at
        Position on the axis of the figure, such as the number of writers; ``None`` if the paper does not state it.
    open_points
        What the paper leaves open, or states in its own terms.
    """

    source: str
    name: str
    quantity: str
    value: float
    unit: str
    page: str
    figure: str = ""
    at: float | None = None
    open_points: str = ""

    @property
    def text(self) -> str:
        """The number with its unit.

        >>> PublishedNumber("paper", "held", "held", 1, "writer", "page 1").text
        '1 writer'
        """
        said = {"bytes/s": rate, "bytes": size}
        return said[self.unit](self.value) if self.unit in said else counted(int(self.value), self.unit)

    @property
    def place(self) -> str:
        """Where the paper says it."""
        return ", ".join(filter(None, (self.page, self.figure)))


def stated(section: str) -> list[PublishedNumber]:
    """The numbers in a section of the file."""
    given = GIVEN[section]
    return [PublishedNumber(given["source"], **each) for each in given["numbers"]]


DAQ, IOR_NODES, IOR_LIST, STAGING = map(stated, ("daq", "ior_nodes", "ior_list", "staging"))

IOR_NODE = [
    total._replace(
        value=total.value / (total.at or 1),
        at=processes,
        open_points=f"{total.open_points}; divided by {total.at:.0f} here.",
    )
    for total, processes in zip(IOR_NODES, (48, 48, 24, 24), strict=True)
]
"""Bytes/s of one node, by its number of processes, which the user's own measurements can be compared with."""
