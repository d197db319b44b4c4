"""The page of the probe: what the tiers can do, beside the published devices."""

from __future__ import annotations

from collections.abc import Sequence

from neurotier.core.kinds import is_in_memory
from neurotier.core.quantities import counted, rate
from neurotier.core.tables import Row, gathered
from neurotier.pages.kit.chart import BLUE, LIGHT_GREY, SKY, Chart
from neurotier.pages.kit.findings import times_text
from neurotier.pages.kit.lines import MEASURED, Lines, point
from neurotier.pages.kit.marks import Kind, Lanes, Line, Stack
from neurotier.pages.kit.page import OPEN, Data, Figure, Page, Section, Verdict
from neurotier.pages.kit.workloads import method
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
WAYS = {"read": {"read": "", "cached_read": ", from the page cache"}, "write": {"write": ""}}
OPERATIONS = {
    "random_read": "Random read of 4 KiB",
    "random_write": "Random write of 4 KiB",
    "make": "Make a file of 4 KiB",
    "look": "Look at it",
    "remove": "Remove it",
}
FULL_SHARE = 0.9
"""Share of the greatest bandwidth from which further streams are said to gain nothing."""

MB = 1e6
COLOURS = {"device": BLUE, "memory": SKY, "Table I": LIGHT_GREY}
BANDWIDTH = ("bandwidth_bytes_per_s", "bandwidth_low_bytes_per_s", "bandwidth_high_bytes_per_s")


def single(rows: Sequence[Row]) -> dict[str, dict[str, Row]]:
    """Rows of one stream, by tier and pattern."""
    tiers: dict[str, dict[str, Row]] = {}
    for row in rows:
        if row["part"] == "one_stream":
            tiers.setdefault(row["tier"], {})[row["pattern"]] = row
    return tiers


def curves(rows: Sequence[Row]) -> list[Row]:
    """Rows of the curves in order of their patterns and streams."""
    known = [row for row in rows if row["part"] == "concurrency"]
    return sorted(known, key=lambda row: (list(PATTERNS).index(row["pattern"]), row["streams"]))


def most(curve: Sequence[Row]) -> float:
    """Greatest bandwidth of a curve, bytes/s."""
    return max(float(row["bandwidth_bytes_per_s"]) for row in curve)


def full_at(curve: Sequence[Row]) -> int:
    """Streams from which further ones gain nothing that the repetitions agree on."""
    enough = FULL_SHARE * most(curve)
    return next(int(row["streams"]) for row in curve if row["bandwidth_high_bytes_per_s"] >= enough)


def verdicts(data: Data) -> list[Verdict]:
    """Where each tier stops scaling, and which published device it is like."""
    return [Verdict(chart(data).says, OPEN) for chart in (concurrency, one_stream)]


def one_stream(data: Data) -> Chart:
    """A bar for each tier; in grey the devices of the published Table I. What one participant job sees."""
    found, like = single(data["probe"]), dict[str, list[str]]()
    if not found:
        return Chart(NONE)
    for tier, own in found.items():
        read, write = (own[name]["bandwidth_bytes_per_s"] for name in ("read", "write"))
        like.setdefault(nearest(read, write).name, []).append(f"{tier} ({rate(read)} read, {rate(write)} written)")
    clauses = [
        f"{' and '.join(tiers)} {'is' if len(tiers) == 1 else 'are'} nearest to the published {name}"
        for name, tiers in like.items()
    ]
    bars = []
    for way, patterns in WAYS.items():
        for tier, own in found.items():
            for pattern, how in patterns.items():
                if pattern in own:
                    memory = how or is_in_memory(own[pattern]["kind"])
                    about = {"way": way, "of": f"{tier}{how}", "from": "memory" if memory else "device"}
                    bars.append(about | {name: own[pattern][name] for name in BANDWIDTH})
        for device in TABLE_ONE:
            about = {"way": way, "of": f"published {device.name}", "from": "Table I"}
            bars.append(about | dict.fromkeys(BANDWIDTH, getattr(device, f"{way}_bytes_per_s")))
    return Lanes(
        f"With one stream, {'; '.join(clauses)}",
        bars,
        "One buffered stream, 1 MiB a request, as by dd: writes include the flush to the device; reads begin with an"
        " empty page cache unless said. Medians; lines: range of the repetitions. Grey: Table I of Hayot-Sasson,"
        " Brown and Glatard (2020), one stream of dd.",
        marks=(
            Stack({BANDWIDTH[0]: Kind("", BLUE)}, colour=lambda row: COLOURS[row["from"]]),
            Line(*BANDWIDTH[1:]),
        ),
        x="Bandwidth of one stream (MB/s)",
        lanes=[
            bar | {"panel": bar["way"].capitalize(), "lane": bar["of"], "text": rate(bar[BANDWIDTH[0]])} for bar in bars
        ],
        scale=MB,
        words=rate,
        shared=True,
    )


def concurrency(data: Data) -> Chart:
    """A panel for each tier, all on the same scales, both logarithmic. What many participant jobs share."""
    rows = data["probe"]
    reads = gathered((row["tier"], row) for row in curves(rows) if row["pattern"] == "read")
    if not reads:
        return Chart(NONE)
    ordered = sorted(reads, key=lambda tier: most(reads[tier]), reverse=True)
    fast, slow = ordered[0], ordered[-1]
    says = f"{fast} reads {rate(most(reads[fast]))}"
    if len(ordered) > 1:
        says += f", {times_text(most(reads[fast]) / most(reads[slow]))} times as much as {slow}"
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
        label="Bandwidth",
        unit="bytes/s",
    )


def where(data: Data) -> Section:
    """The tiers, and fio's way to each."""
    rows = {row["tier"]: row for row in data["probe"] if row["part"] == "concurrency"}
    ways = {
        row["tier"]: access_text(row["engine"], row["direct"])
        for row in curves(data["probe"])
        if row["pattern"] == "read"
    }
    found = [row | {"way_of_fio": ways.get(tier)} for tier, row in rows.items()]
    columns = "tier kind fs_type device way_of_fio host kernel date"
    return Section("Tiers", rows=found, columns=columns.split())


def small(data: Data) -> Section:
    """Small requests of one stream."""
    rows = [
        row | {"operation": OPERATIONS[row["pattern"]], "engine": row["engine"] + ", direct" * bool(row["direct"])}
        for row in data["probe"]
        if row["part"] == "small"
    ]
    text = "Of one stream, by fio's way to the device."
    columns = "tier operation engine queue_depth operations_per_s latency_mean_s latency_p99_s"
    return Section("Small requests and files", text, rows, columns.split())


def files(data: Data) -> Section:
    """Many small files at once."""
    rows = [row | {"operation": OPERATIONS[row["pattern"]]} for row in data["probe"] if row["part"] == "files"]
    text = (
        "Many small files, each stream in a folder of its own. Waiting is for the tier or its locks, and not for a"
        " processor; the advice predicts from both what the files of a tool take."
    )
    folded = f"Many small files at once, {counted(len(rows), 'row')}"
    columns = "tier operation streams operations_per_s operation_cpu_s operation_wait_s"
    return Section(text=text, rows=rows, columns=columns.split(), folded=folded)


def under(data: Data) -> str:
    """How many tiers of which machines were measured."""
    known = {row["tier"]: row for row in data["probe"] if row["part"] == "concurrency"}
    hosts = ", ".join(dict.fromkeys(row["host"] for row in known.values()))
    return f"{counted(len(known), 'tier')} of {hosts}, measured with fio"


PAGE = Page(
    name="probe",
    title="What the tiers can do",
    category="Tiers",
    caption="The tiers on one page: findings, one stream compared with the published devices, the curves over streams,"
    " small random requests, operations on files, and how each was measured. The page shows how much a placement can"
    " gain at most.",
    under=under,
    tables={"probe": "probe/probe.tsv"},
    verdicts=verdicts,
    parts=(
        Figure("One stream", one_stream),
        Figure("Streams at once", concurrency),
        where,
        small,
        files,
        method(
            "By fio, and small files by neurotier itself, once in each repetition, on files below each tier's path that"
            " are gone now. A cold read begins after fio has evicted its files from the page cache."
        ),
    ),
)
