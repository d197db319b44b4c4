"""The page of data staging: three questions of the published experiment, and response times as its Figures 6 to 8."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence

from neurotier.core.quantities import counted, percent, size, three_digits
from neurotier.core.tables import Row, grouped
from neurotier.pages.kit.chart import NOTHING, Chart
from neurotier.pages.kit.findings import between, published_numbers, workload_page
from neurotier.pages.kit.lines import Lines, measured
from neurotier.pages.kit.page import OPEN, Data, Figure, Verdict
from neurotier.storage.published import STAGING
from neurotier.storage.spread import measured_rows
from neurotier.storage.staging.curves import (
    COUNTS,
    Curve,
    PageCacheEffect,
    curves,
    longest_wait,
    page_cache_effects,
    place_text,
)
from neurotier.storage.staging.exchange import STEP

CLIENT = "client"
MATTERS = 1.1
"""Times whose ratio is less than this count as equal."""

FEW = 0.05
"""Share of the bytes read that may come from the device if the page cache is said to hide reading."""

VERBS = {"write": "writing", "read": "reading"}
SERVERS, CLIENTS = {"write": "servers", "read": "servers"}, {"read": "readers", "write": "writers"}
"""The number that is varied for each way."""


def scaling(rows: Sequence[Row], axes: Mapping[str, str], per: str | None = None) -> str:
    """A sentence on the number of processes with which a step takes least, and on the cost of more processes."""
    clauses, every = list[str](), list[Curve]()
    for way, axis in axes.items():
        found = curves(rows, axis, way, per)
        if found:
            clauses.append((growth_text if per == CLIENT else least_text)(found, VERBS[way], axis))
            every += found
    if not clauses:
        return f"No two numbers of {' or '.join(dict.fromkeys(axes.values()))} were measured with all else the same"
    if any(len(times.values) == 1 for curve in every for times in curve.times.values()):
        clauses.append("measured once, so that it may be chance")
    text = "; ".join(clauses)
    return text[0].upper() + text[1:]


def least_text(found: Sequence[Curve], verb: str, axis: str) -> str:
    """The number with which most curves are lowest, and what the greatest number costs at most, in words."""
    ((best, count),) = Counter(curve.best for curve in found).most_common(1)
    text = (
        f"{verb} takes least with {counted(best, axis.removesuffix('s'))} in {count} of {counted(len(found), 'case')}"
    )
    worst = max(found, key=lambda curve: curve.slower(curve.best))
    times = worst.slower(worst.best)
    if times < MATTERS:
        return text
    much = f"{three_digits(times)} times as long as with {worst.best} ({worst.name})"
    return f"{text}, and with {max(worst.times)} up to {much}"


def growth_text(found: Sequence[Curve], verb: str, axis: str) -> str:
    """How many times as long the greatest number takes as the smallest, for the least and the greatest growth."""
    growth = sorted(((curve.slower(min(curve.times)), curve) for curve in found), key=lambda one: one[0])
    (least, low), *_, (most, high) = growth * 2
    grown = f"{max(high.times) / min(high.times):.3g}"
    text = f"{verb} with {grown} times as many {axis} and bytes takes "
    if most >= MATTERS * least and low.times.keys() == high.times.keys():
        text += f"{three_digits(least)} ({low.name}) to "
    return f"{text}{three_digits(most)} times as long ({high.name})"


def page_cache(rows: Iterable[Row]) -> str:
    """A sentence on whether the page cache hides reading."""
    found = page_cache_effects(rows)
    if not found:
        return (
            "To show whether the page cache hides reading, the same points are needed on a tier in memory and on"
            " another"
        )
    clauses = []
    for verdict, some in sorted(grouped(("is" if is_hidden(one) else "is not", one) for one in found).items()):
        known = [one.device_share for one in some if one.device_share is not None]
        device = f"{between(map(percent, sorted(known)))} of the bytes came from the device, and " if known else ""
        reads = between(map(three_digits, sorted(one.read_ratio for one in some)))
        writes = between(map(three_digits, sorted(one.write_ratio for one in some)))
        clauses.append(
            f"reading {verdict} hidden by the page cache for"
            f" {', '.join(place_text(one.tier, one.engine) for one in some)}: {device}it takes {reads} times as long as"
            f" in memory, while writing takes {writes} times as long"
        )
    text = "; ".join(clauses)
    return text[0].upper() + text[1:]


def is_hidden(one: PageCacheEffect) -> bool:
    """Whether the page cache hides reading: hardly any of the bytes came from the device."""
    return one.read_ratio < MATTERS if one.device_share is None else one.device_share < FEW


def waiting(rows: Iterable[Row]) -> str:
    """A sentence on where clients wait for each other for the largest part of a step."""
    most = longest_wait(rows)
    if most is None:
        return NOTHING
    share, row, way = most
    counts = ", ".join(counted(row[name], name.removesuffix("s")) for name in COUNTS if row[name])
    return (
        f"At most {percent(share)} of a round of {way}s is waiting for the others"
        f" ({place_text(row['tier'], row['engine'])}; {counts})"
    )


def verdicts(data: Data) -> list[Verdict]:
    """The verdicts: the answers to the three questions, if anything was measured."""
    rows = data["staging"]
    if not measured_rows(rows):
        return []
    return [
        Verdict(scaling(rows, SERVERS), OPEN, "Do servers help?"),
        Verdict(page_cache(rows), OPEN, "Is reading hidden by the page cache?"),
        Verdict(
            scaling(rows, CLIENTS, STEP),
            OPEN,
            "Where does synchronising cost more than it brings?",
            [f"{waiting(rows)}."],
        ),
    ]


def response_times(data: Data, axes: Mapping[str, str], note: str, per: str | None = None) -> Chart:
    """A chart of response times against a number of processes.

    Parameters
    ----------
    data
        The data of the page.
    axes
        The number on the horizontal axis of the panel for each way.
    note
        How to read the chart.
    per
        As for :func:`neurotier.storage.staging.curves.curves`.
    """
    rows, titles = data["staging"], {"read": "Reading", "write": "Writing"}
    table = [
        measured(titles[way], curve.name, count, times) | {"others": curve.others_text}
        for way, axis in axes.items()
        for curve in curves(rows, axis, way, per)
        for count, times in curve.times.items()
    ]
    says = scaling(rows, axes, per)
    if not table:
        return Chart(says)
    panels = {titles[way]: axis.capitalize() for way, axis in axes.items()}
    note += " Both axes are logarithmic."
    return Lines(says, table, note, panels=panels, label="Response time of a step", unit="s")


def servers(data: Data) -> Chart:
    """Response time of a time step against the number of servers, writing and reading; a line per engine and tier, with
    the numbers of the others in the TSV; medians, bars from least to greatest. As Figure 6 of the Optane report.
    """
    return response_times(
        data,
        SERVERS,
        "In the report (page 5, Figure 6) more servers on one node were faster; its response times are in its picture"
        " alone.",
    )


def strong_scaling(data: Data) -> Chart:
    """The data of a step stay the same: response time of reads against readers, and of writes against writers; a line
    per engine and tier; medians, bars from least to greatest. As Figure 7 of the Optane report.
    """
    return response_times(
        data, CLIENTS, "The report (page 6, Figure 7) has 1 to 64 of these with 64 of the others and 4 servers.", STEP
    )


def weak_scaling(data: Data) -> Chart:
    """Each reader and writer has as many bytes, however many there are; a line per engine and tier; medians, bars from
    least to greatest. As Figure 8 of the Optane report, of which the text states no times.
    """
    client_bytes = min(number.value for number in STAGING if number.quantity == "client_bytes")
    return response_times(
        data,
        CLIENTS,
        f"The report (page 6, Figure 8) has 8 MB ({size(client_bytes)}) for each of 1 to 64,"
        " and response times that grow with their number; the times themselves are in its picture alone.",
        CLIENT,
    )


PAGE = workload_page(
    "staging",
    "; every piece that was read had the checksum of its writer",
    title="Data staging",
    caption="The staging on one page: whether servers help, whether the page cache hides reading, where synchronising"
    " costs more than it brings; response times with published numbers beside. The page shows what a tier is worth"
    " below a staging service.",
    verdicts=verdicts,
    parts=(
        Figure("Servers", servers),
        Figure("Strong scaling", strong_scaling),
        Figure("Weak scaling", weak_scaling),
        published_numbers(
            STAGING,
            f"What the text of {STAGING[0].source} states. There, DataSpaces staged data between three machines (64"
            " writers, 64 readers and the servers on one each) with its store in a mapped file on an Optane or NVMe"
            " SSD. The response times of its Figures 6 to 8 are in the pictures alone, so they cannot be shown beside"
            " yours. It found that more servers on one node lower response times; that reading is about as fast on"
            " SSDs as from DRAM, since mapped files are read from memory; and that with more than 8 to 16 readers"
            " synchronising costs more than it brings.",
        ),
    ),
    note="With adios2-sst, nothing is on the tier: data go from the writers' memory to the readers'.",
    method="In every time step all writers write, and when all have, all readers read. The response time of a step is"
    " from the first one's begin to the last one's end.",
)
