"""The page of the probe: what the tiers can do, compared with the published devices."""

from __future__ import annotations

from collections.abc import Sequence

from neurotier.core.kinds import is_in_memory
from neurotier.core.quantities import counted, rate, three_digits
from neurotier.core.tables import Row, Rows, grouped
from neurotier.pages.kit.chart import BLUE, LIGHT_GREY, SKY, Chart
from neurotier.pages.kit.lines import MEASURED, Lines, point
from neurotier.pages.kit.marks import Kind, Lanes, Line, Stack
from neurotier.pages.kit.page import OPEN, Data, Figure, Page, Section, Verdict
from neurotier.storage.fio import access_text
from neurotier.storage.table_one import TABLE_ONE, nearest

NONE = "No tier has been measured"
PATTERNS = {
    "read": "Read",
    "write": "Write",
    "mixed": "Half and half",
    "cached_read": "Read from the page cache",
    "buffered_write": "Write to the page cache",
}
OPERATIONS = {
    "random_read": "Random read of 4 KiB",
    "random_write": "Random write of 4 KiB",
    "make": "Make a file of 4 KiB",
    "look": "Look at it",
    "remove": "Remove it",
}
FULL_SHARE = 0.9
"""Further streams are said to gain nothing, and tiers to be alike, at this share of the greatest bandwidth."""

COLOURS = {"device": BLUE, "memory": SKY, "Table I": LIGHT_GREY}
BANDWIDTH = ("bandwidth_bytes_per_s", "bandwidth_low_bytes_per_s", "bandwidth_high_bytes_per_s")


def curves(rows: Sequence[Row]) -> Rows:
    """The rows of the curves, ordered by pattern and streams."""
    known = [row for row in rows if row["part"] == "concurrency"]
    return sorted(known, key=lambda row: (list(PATTERNS).index(row["pattern"]), row["streams"]))


def most(curve: Sequence[Row]) -> float:
    """The greatest bandwidth of a curve, bytes/s."""
    return max(float(row["bandwidth_bytes_per_s"]) for row in curve)


def full_at(curve: Sequence[Row]) -> int:
    """The smallest number of streams that, in some repetition, came close to the greatest bandwidth of the curve."""
    enough = FULL_SHARE * most(curve)
    return next(int(row["streams"]) for row in curve if row["bandwidth_high_bytes_per_s"] >= enough)


def verdicts(data: Data) -> list[Verdict]:
    """The verdicts: where each tier stops scaling, and which published device it is like."""
    return [Verdict(chart(data).says, OPEN) for chart in (concurrency, one_stream)]


def one_stream(data: Data) -> Chart:
    """A bar for each tier; in grey the devices of the published Table I. What one participant job sees."""
    rows = [row for row in data["probe"] if row["part"] == "one_stream"]
    if not rows:
        return Chart(NONE)
    bars = [
        {
            "lane": f"{row['tier']}{', from the page cache' * (row['pattern'] == 'cached_read')}",
            "panel": "Write" if row["pattern"] == "write" else "Read",
            "from": "memory" if row["pattern"] == "cached_read" or is_in_memory(row["kind"]) else "device",
            **{name: row[name] for name in BANDWIDTH},
        }
        for row in rows
    ]
    bars += [
        {"lane": f"published {device}", "panel": way, "from": "Table I"} | dict.fromkeys(BANDWIDTH, speed)
        for device, both in TABLE_ONE.items()
        for way, speed in zip(("Read", "Write"), both, strict=True)
    ]
    speeds = {(row["tier"], row["pattern"]): row[BANDWIDTH[0]] for row in rows}
    like = grouped(
        (nearest(read, write), f"{tier} ({rate(read)} read, {rate(write)} written)")
        for tier in dict.fromkeys(row["tier"] for row in rows)
        for read, write in [(speeds[tier, "read"], speeds[tier, "write"])]
    )
    clauses = [
        f"{' and '.join(tiers)} {'is' if len(tiers) == 1 else 'are'} nearest to the published {name}"
        for name, tiers in like.items()
    ]
    return Lanes(
        f"With one stream, {'; '.join(clauses)}",
        [
            bar | {"text": rate(bar[BANDWIDTH[0]]), "colour": COLOURS[bar["from"]]}
            for bar in sorted(bars, key=lambda bar: bar["panel"])
        ],
        "One buffered stream, 1 MiB a request, as by dd: writes include the flush to the device; reads are not from the"
        " page cache unless stated. Medians; lines: range of the repetitions. Grey: Table I of Hayot-Sasson,"
        " Brown and Glatard (2020), one stream of dd.",
        (Stack({BANDWIDTH[0]: Kind("", BLUE)}), Line(*BANDWIDTH[1:])),
        "Bandwidth of one stream",
        "bytes/s",
        shared=True,
    )


def concurrency(data: Data) -> Chart:
    """A panel for each tier, all on the same scales, both logarithmic. What many participant jobs share."""
    rows = data["probe"]
    reads = grouped((row["tier"], row) for row in curves(rows) if row["pattern"] == "read")
    if not reads:
        return Chart(NONE)
    streams = min(curve[-1]["streams"] for curve in reads.values())  # one may have been probed with more than another
    alike = {tier: most([row for row in curve if row["streams"] <= streams]) for tier, curve in reads.items()}
    ordered = sorted(alike, key=alike.__getitem__, reverse=True)
    fast, slow = ordered[0], ordered[-1]
    says = f"With {f'up to {streams} streams' if streams > 1 else 'one stream'}, {fast} reads {rate(alike[fast])}"
    if len(ordered) > 1:
        times = alike[fast] / alike[slow]
        says += f", {f'{three_digits(times)} times' if FULL_SHARE * times > 1 else 'about'} as much as {slow}"
    clauses = []
    for tier in ordered:
        last, full = reads[tier][-1]["streams"], full_at(reads[tier])
        if last > 1:
            gains = f"gains up to {counted(full, 'stream')}" if full > 1 else "gains nothing from a second stream"
            clauses.append(f"{tier} {gains}")
    titles = {row["tier"]: f"{row['tier']} ({row['kind']}, {row['fs_type']})" for row in rows}
    return Lines(
        "; ".join([says, *clauses]),
        [
            point(
                MEASURED,
                titles[row["tier"]],
                PATTERNS[row["pattern"]],
                row["streams"],
                *(row[end] for end in BANDWIDTH),
            )
            for row in curves(rows)
        ],
        "Bandwidth of all streams together; a file for each, 1 MiB a request, one at a time; half and half counts"
        " both ways. Medians of the repetitions; whiskers: their range. Writes include the flush to the device.",
        panels=dict.fromkeys(titles.values(), "Streams at once"),
    )


def where(data: Data) -> Section:
    """The section on the tiers, and how fio accessed each."""
    found = [
        row | {"way_of_fio": access_text(row["engine"], row["direct"])}
        for row in data["probe"]
        if (row["part"], row["pattern"], row["streams"]) == ("concurrency", "read", 1)
    ]
    columns = "tier kind fs_type device way_of_fio file_bytes repetitions host kernel date"
    return Section("Tiers", rows=found, columns=columns)


def small(data: Data) -> Section:
    """The section on small requests of one stream, and on many small files at once."""
    rows = [
        row | {"operation": OPERATIONS[row["pattern"]], "engine": row["engine"] + ", direct" * bool(row["direct"])}
        for row in data["probe"]
        if row["part"] in ("small", "files")
    ]
    text = (
        "Requests by fio's way to the device, and many small files at once, each stream in a folder of its own."
        " Waiting is for the tier or its locks, not for a processor. From CPU time and waiting, the advice predicts how"
        " long the files of a tool take."
    )
    columns = (
        "tier operation engine queue_depth streams operations_per_s latency_mean_s latency_p99_s operation_cpu_s"
        " operation_wait_s"
    )
    return Section("Small requests and files", text, rows, columns)


PAGE = Page(
    name="probe",
    title="What the tiers can do",
    caption="The tiers on one page: findings, one stream compared with the published devices, the curves over streams,"
    " small random requests, operations on files, and how each was measured. The page shows how much a placement can"
    " gain at most.",
    subtitle=lambda data: f"{counted(len({row['tier'] for row in data['probe']}), 'tier')}, measured with fio",
    tables=("probe/probe",),
    verdicts=verdicts,
    parts=(
        Figure("One stream", one_stream),
        Figure("Streams at once", concurrency),
        where,
        small,
        Section(
            "How it is measured",
            "By fio, and small files by neurotier itself, once in each repetition, on files below each tier's path,"
            " which were then removed. A cold read begins after fio has evicted its files from the page cache.",
        ),
    ),
)
