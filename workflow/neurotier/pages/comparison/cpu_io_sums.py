"""The figure ``cpu_io_sums``: CPU time and I/O as the paper counts it, by placement and parallelism (its Figure 10)."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from neurotier.core.quantities import percent, seconds
from neurotier.core.spread import spread
from neurotier.core.tables import Row
from neurotier.pages.comparison.names import NO_RUN, PAPER_IO, Names
from neurotier.pages.comparison.statistics import by_condition
from neurotier.pages.comparison.sums import Bars, Parts, length, share, write_sums
from neurotier.pages.kit.findings import Finding
from neurotier.pages.kit.stacks import Kind
from neurotier.pages.kit.style import CPU_COLOUR, IO_COLOUR
from neurotier.run.compared import Compared

CPU, IO = "cpu_sum", "io_sum"
KINDS = {CPU: Kind("CPU time", CPU_COLOUR), IO: Kind(PAPER_IO, IO_COLOUR)}
NOTE = (
    "Line: least to greatest. I/O as the paper counts it contains waiting for a core; where CPU exceeds wall time"
    " (several cores at once), it is below 0, and drawn as 0. Beside the bars: CPU + I/O."
)


def sums(runs: Sequence[Row]) -> Bars:
    """Summed CPU time and I/O of every condition, s."""
    return {
        (condition, ""): {name: spread(members, f"{name}_s") for name in KINDS}
        for condition, members in by_condition(runs).items()
    }


def finding(tables: Compared) -> Finding:
    """Between which shares of the summed time is I/O as the paper counts it, and where."""
    shares = {condition: share(parts, IO) for (condition, _), parts in sums(tables.runs).items()}
    if not shares:
        return Finding(NO_RUN, shown=False)
    names, low, high = Names(shares), min(shares, key=lambda one: shares[one]), max(shares, key=lambda one: shares[one])
    least, most = percent(shares[low]), percent(shares[high])
    if least == most:
        return Finding(f"{PAPER_IO} takes {least} of the summed time" + " in every condition" * (len(shares) > 1))
    return Finding(f"{PAPER_IO} takes from {least} of the summed time ({names.of(low)}) to {most} ({names.of(high)})")


def draw(tables: Compared, stem: Path) -> None:
    """Draw the summed CPU time and I/O of all valid runs; write SVG, PNG and TSV."""
    write_sums(stem, finding(tables), sums(tables.runs), KINDS, text_of, NOTE, ranges=True)


def text_of(parts: Parts) -> str:
    """Both sums, and the share of I/O."""
    cpu, io = (seconds(length(parts, name)) for name in KINDS)
    return f"{cpu.removesuffix(' s')} + {io}; {percent(share(parts, IO))} I/O"
