"""The figure ``buffer``: the memory that writers need over time, up to the target. As Figure 6 of the DUNE paper."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from neurotier.core.quantities import counted, percent, rate, seconds, size
from neurotier.core.tables import Row
from neurotier.pages.daq.figures import DaqTables
from neurotier.pages.kit.counts import LIMIT, MEASURED, NOTHING, point, published, write_lines
from neurotier.pages.kit.findings import Finding
from neurotier.storage.daq.holding import lines
from neurotier.storage.published import DAQ

EXAMPLE = "Published example"
NOTE = (
    "Solid: measured; dashed: what comes less what is written, times the time, up to that for which the buffer must do."
    " Star: an example of the DUNE paper. Every panel has a range of its own."
)


def finding(tables: DaqTables) -> Finding:
    """How large the largest buffer is on every tier, as a share of what comes."""
    found = lines(tables.points)
    if not found:
        return Finding(NOTHING, shown=False)
    target_s, clauses = tables.settings.target_s, []
    for name, line in found.items():
        most = max(line)
        one = line[most]
        if one.late:
            share = percent(one.buffer.median / (one.input_bytes_per_s * target_s))
            come = f"{rate(one.input_bytes_per_s)} come"
            clauses.append(
                f"{name}: where {come}, {size(one.buffer.median)} must be held for {seconds(target_s)} ({share})"
            )
        else:
            clauses.append(f"{name}: {size(one.buffer.median)} are enough for {counted(most, 'writer')}")
    return Finding("; ".join(clauses))


def curves(backlog: Sequence[Row]) -> list[Row]:
    """The backlog of each number of writers in its first repetition that there is."""
    found, first = list[Row](), dict[tuple[str, int], int]()
    for row in backlog:
        panel, writers = f"{row['over'].replace('+', ' + ')}, {row['engine']}", row["writers"]
        if first.setdefault((panel, writers), row["repetition"]) == row["repetition"]:
            found.append(point(MEASURED, panel, counted(writers, "writer"), row["time_s"], row["backlog_bytes"]))
    return found


def draw(tables: DaqTables, stem: Path) -> None:
    """Draw the buffers; write SVG, PNG and TSV."""
    found, rows = lines(tables.points), curves(tables.backlog)
    measured_s = max((row["at"] for row in rows), default=0.0)
    for name, line in found.items():
        for writers, one in line.items():
            end_s, buffer = tables.settings.target_s if one.late else measured_s, one.buffer.median
            for at_s, held in ((0.0, 0.0 if one.late else buffer), (end_s, buffer)):
                rows.append(point(LIMIT, name, counted(writers, "writer"), at_s, held))
    for number in DAQ:
        if number.quantity == "buffer":
            ends = ((0.0, 0.0), (number.at, number.value))
            rows += [published(EXAMPLE, number), *(point(LIMIT, EXAMPLE, number.name, *end) for end in ends)]
    panels = dict.fromkeys([*found, EXAMPLE], "Time (s)")
    write_lines(stem, finding(tables), rows, panels, "Buffer", "bytes", NOTE, counts=False, logarithmic=False)
