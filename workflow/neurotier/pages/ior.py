"""The page of files written and read back, as Figures 3 and 4 of the page on the NEXTGenIO prototype."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from neurotier.core.quantities import counted
from neurotier.core.tables import Rows
from neurotier.pages.kit.chart import Chart
from neurotier.pages.kit.findings import published_numbers, workload_page
from neurotier.pages.kit.lines import Lines, measured, published
from neurotier.pages.kit.page import OPEN, Data, Figure, Verdict
from neurotier.storage.ior.medians import (
    READ,
    WRITE,
    Line,
    at_once_text,
    curves,
    late_text,
    lines,
    nodes_verdict,
    verdict,
)
from neurotier.storage.published import IOR_LIST, IOR_NODE, IOR_NODES, PublishedNumber
from neurotier.storage.spread import measured_rows


def verdicts(data: Data) -> list[Verdict]:
    """The verdicts: with how many nodes and processes each tier is fastest, and whether the files are large enough."""
    rows = data["ior"]
    scaled = curves(rows)
    said = [nodes_verdict(name, each) for name, each in scaled.items()]
    said += [verdict(name, line) for name, line in lines(rows).items() if name not in scaled]
    found = [Verdict(text) for text in (*said, *at_once_text(rows))] + [Verdict(text, OPEN) for text in late_text(rows)]
    if not found and measured_rows(rows):
        return [Verdict("Only concurrent benchmarks were measured, and no single one to compare them with", OPEN)]
    return found


def lines_of(found: Mapping[str, Line], titles: Mapping[str, str], stated: Iterable[PublishedNumber]) -> Rows:
    """The rows of a chart with a panel each for writing and reading, the given lines, and published numbers."""
    rows = [
        measured(title, name, count, one[way])
        for name, line in found.items()
        for count, one in line.items()
        for way, title in titles.items()
    ]
    return rows + [published(titles[number.quantity], number) for number in stated]


def bandwidth(data: Data) -> Chart:
    """All bytes over the time from the first start to the last end, as IOR counts, by the number of processes, and
    what is published of a node. As Figures 3 and 4 of the page on the NEXTGenIO prototype, for one node.
    """
    found, titles = lines(data["ior"]), {WRITE: "Write, flushed", READ: "Read back by another process"}
    if not found:
        return Chart("No point was measured of one benchmark on one node")
    return Lines(
        "; ".join(verdict(name, line) for name, line in found.items()),
        lines_of(found, titles, IOR_NODE),
        "Medians over repetitions, whiskers: their range; logarithmic axes. Stars: a node of the NEXTGenIO prototype,"
        " that is, what all of them reached divided by their number (Figure 3: 48 processes, Figure 4: 24).",
        panels=dict.fromkeys(titles.values(), "Processes at once"),
    )


def nodes(data: Data) -> Chart:
    """The same of several nodes, which begin at one instant, by their number; a line for each number of processes per
    node. As Figures 3 and 4 of the page on the NEXTGenIO prototype.
    """
    found, titles = curves(data["ior"]), {WRITE: "Write, flushed", READ: "Read back"}
    if not found:
        return Chart("No point was measured of one benchmark on several nodes")
    named = {
        f"{name}, {counted(processes, 'process')} each": curve
        for name, by_processes in found.items()
        for processes, curve in by_processes.items()
    }
    return Lines(
        "; ".join(nodes_verdict(name, each) for name, each in found.items()),
        lines_of(named, titles, IOR_NODES),
        "Medians over repetitions, whiskers: their range; logarithmic axes. Stars: the NEXTGenIO prototype with 48"
        " (Figure 3) and 24 processes per node (Figure 4).",
        panels=dict.fromkeys(titles.values(), "Nodes at once"),
    )


PAGE = workload_page(
    "ior",
    "",
    title="A file per process, written and read back",
    caption="A file per process on one page: what all processes write and read back together, by their number, and what"
    " is published of a node of the NEXTGenIO prototype.",
    verdicts=verdicts,
    parts=(
        Figure("All processes together", bandwidth),
        Figure("All nodes together", nodes),
        published_numbers(
            (*IOR_NODES, *IOR_NODE, *IOR_LIST),
            f"{IOR_LIST[0].source}. Its nodes had two sockets with 24 cores each and 3 TB of persistent memory, and its"
            " IOR was changed so that processes stay on the socket of their memory.",
        ),
    ),
    method="All processes write a file each at the same time, until it is on the device; then each reads the file of"
    " its neighbour. Bandwidths are all bytes over the time from the first start to the last end.",
)
