"""Published numbers of a workload, to stand beside one's own: what a paper's text states, and where."""

from __future__ import annotations

from dataclasses import dataclass

from neurotier.core.quantities import number, percent, rate, seconds, size


@dataclass(frozen=True)
class PublishedNumber:
    """What a paper states in a number.

    Attributes
    ----------
    name
        What was measured, in words.
    quantity
        Which of one's own figures it stands beside; each workload has its own.
    value, unit
        The number: ``bytes/s``, ``bytes``, ``s``, ``share`` (of 1), or what is counted, such as ``writers``.
    at
        Where on the axis of the figure, such as the number of writers; ``None`` if the text leaves it open.
    source, page, figure
        Paper, its page or section, and the figure there; empty where a paper has none.
    open_points
        What the text does not say, or says in its own way.
    """

    name: str
    quantity: str
    value: float
    unit: str
    at: float | None
    source: str
    page: str
    figure: str
    open_points: str = ""

    @property
    def text(self) -> str:
        """The number with its unit.

        >>> PublishedNumber("held", "held", 4, "writers", None, "", "", "").text
        '4 writers'
        """
        said = {"bytes/s": rate, "bytes": size, "s": seconds, "share": percent}
        return said[self.unit](self.value) if self.unit in said else f"{number(self.value)} {self.unit}"

    @property
    def place(self) -> str:
        """Where the paper states it."""
        return ", ".join(filter(None, (self.page, self.figure)))
