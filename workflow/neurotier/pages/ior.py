"""The page of files written and read back, as Figures 3 and 4 of the page on the NEXTGenIO prototype."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from neurotier.core.quantities import counted
from neurotier.pages.kit.chart import NOTHING, Chart
from neurotier.pages.kit.lines import Lines, measured, published
from neurotier.pages.kit.page import Data, Figure, Page, Section, Verdict
from neurotier.pages.kit.workloads import measured_of, measured_rows, method, published_numbers, tiers, unmeasured
from neurotier.storage.ior import scaling
from neurotier.storage.ior.medians import READ, WRITE, Line, lines, verdict
from neurotier.storage.ior.points import IOR
from neurotier.storage.published import IOR_LIST, IOR_NODE, IOR_NODES, PublishedNumber


def by_ior(data: Data) -> bool:
    """Whether IOR itself measured."""
    return any(row["engine"] == IOR for row in measured_rows(data["ior"]))


def over_nodes(data: Data) -> bool:
    """Whether several nodes were measured."""
    return any(row["nodes"] > 1 for row in measured_rows(data["ior"]))


def under(data: Data) -> str:
    """How many points were measured, with what, and where."""
    program, place = "IOR" if by_ior(data) else "fio", "on nodes of a cluster" if over_nodes(data) else "on one node"
    return measured_of("ior", f" with {program}, {place}")(data)


def verdicts(data: Data) -> list[Verdict]:
    """With how many nodes and processes each tier is fastest, and what is to be known of the files' size."""
    rows = data["ior"]
    scaled = scaling.curves(rows)
    said = [scaling.verdict(name, each) for name, each in scaled.items()]
    said += [verdict(name, line) for name, line in lines(rows).items() if name not in scaled]
    return [Verdict(text) for text in (*said, *scaling.at_once_text(rows), *scaling.late_text(rows))]


def bandwidths(
    found: Mapping[str, Line], said: Iterable[str], stated: Iterable[PublishedNumber], note: str, read: str, x: str
) -> Chart:
    """A chart of what was written and read back, a line for each of some, and what is published beside it."""
    titles = {WRITE: "Write, flushed", READ: read}
    rows = [
        measured(title, name, count, one[way])
        for name, line in found.items()
        for count, one in line.items()
        for way, title in titles.items()
    ]
    return Lines(
        "; ".join(said),
        rows + [published(titles[number.quantity], number) for number in stated],
        f"Medians over repetitions, whiskers: their range; logarithmic axes. {note}",
        panels=dict.fromkeys(titles.values(), x),
        label="Bandwidth",
        unit="bytes/s",
    )


def bandwidth(data: Data) -> Chart:
    """All bytes over the time from the first start to the last end, as IOR counts, by the number of processes, and
    what is published of a node. As Figures 3 and 4 of the page on the NEXTGenIO prototype, for one node.
    """
    found = lines(data["ior"])
    note = (
        "Stars: a node of the NEXTGenIO prototype, that is, what all of them reached divided by their number (Figure 3:"
        " 48 processes, Figure 4: 24)."
    )
    said = (verdict(name, line) for name, line in found.items())
    if not found:
        return Chart(NOTHING)
    return bandwidths(found, said, IOR_NODE, note, "Read back by another process", "Processes at once")


def nodes(data: Data) -> Chart:
    """The same of several nodes, which begin at one instant, by their number; a line for each number of processes per
    node. As Figures 3 and 4 of the page on the NEXTGenIO prototype.
    """
    found = scaling.curves(data["ior"])
    each = {
        f"{name}, {counted(processes, 'process')} each": curve
        for name, curves in found.items()
        for processes, curve in curves.items()
    }
    note = (
        "Stars: the NEXTGenIO prototype with 48 (Figure 3) and 24 processes per node (Figure 4). Dotted: the first of"
        " the IO-500 list of then, 512 nodes."
    )
    said = (scaling.verdict(name, curves) for name, curves in found.items())
    stated = (*IOR_NODES, *IOR_LIST)
    if not found:
        return Chart(f"{NOTHING} on several nodes")
    return bandwidths(each, said, stated, note, "Read back", "Nodes at once")


def stated(data: Data) -> Section:
    """What is published of a node, and of all of them where several were measured."""
    numbers = [*(IOR_NODES if scaling.curves(data["ior"]) else ()), *IOR_NODE, *IOR_LIST]
    return published_numbers(
        numbers,
        f"{IOR_LIST[0].source}. Its nodes had two sockets with 24 cores each and 3 TB of persistent memory, and its"
        " IOR was changed so that processes stay on the socket of their memory.",
    )


PAGE = Page(
    name="ior",
    title="A file per process, written and read back",
    category="File per process",
    caption="A file per process on one page: what all processes write and read back together, by their number, and what"
    " is published of a node of the NEXTGenIO prototype.",
    under=under,
    tables={"ior": "ior/ior.tsv"},
    verdicts=verdicts,
    parts=(
        Figure("All processes together", bandwidth),
        Figure("All nodes together", nodes),
        stated,
        tiers("ior"),
        unmeasured("ior"),
        method(
            "All processes write a file each at the same time, until it is on the device; then each reads the file of"
            " its neighbour. Bandwidths are all bytes over the time from the first start to the last end."
        ),
    ),
)
