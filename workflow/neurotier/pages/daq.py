"""The page of writers at a fixed rate, as Figures 6 to 8 of the DUNE paper."""

from __future__ import annotations

from operator import itemgetter

from neurotier.core.quantities import counted, percent, rate, seconds, size
from neurotier.pages.kit.chart import Chart
from neurotier.pages.kit.findings import published_numbers, workload_page
from neurotier.pages.kit.lines import LIMIT, MEASURED, Lines, measured, point, published
from neurotier.pages.kit.page import BAD, GOOD, Data, Figure, Section, Verdict
from neurotier.storage.daq.sustained import line_name, lines, most_held, summary
from neurotier.storage.published import DAQ
from neurotier.storage.spread import measured_rows


def verdicts(data: Data) -> list[Verdict]:
    """The verdicts: how many writers each tier keeps up with."""
    target_s = data.settings.daq.target_s
    return [
        Verdict(summary(name, line, target_s), GOOD if most_held(line) else BAD)
        for name, line in lines(data["daq"]).items()
    ]


def held(data: Data) -> Chart:
    """The rate that a writer reached, in per cent of the rate at which it got its data, by the number of writers at
    once. As Figure 7 of the DUNE paper.
    """
    found, least = lines(data["daq"]), 1 - data.settings.daq.tolerance
    rows = [measured("", name, writers, one.share) for name, line in found.items() for writers, one in line.items()]
    rows += [point(LIMIT, "", "held", writers, least) for writers in sorted({row["at"] for row in rows})]
    rows += [published("", number) | {"median": 1.0} for number in DAQ if number.quantity == "held"]
    return Lines(
        "; ".join(f"{name} holds {counted(most_held(line), 'writer')}" for name, line in found.items()),
        rows,
        f"Mean over writers, median over repetitions. Dashed: the least that counts as held, {percent(least)}, of"
        " which the data of one flush may be missing. Star: the most writers at 1 GB/s that the paper's six DCPMMs"
        " held, with PMDK.",
        panels={"": "Writers at once"},
        label="Rate of a writer over that of its data",
        unit="share",
        logarithmic=False,
    )


def buffer(data: Data) -> Chart:
    """Data that have arrived but are not yet written, over time, with a line for each number of writers; dashed: up to
    the time for which the buffer must suffice. As Figure 6 of the DUNE paper.
    """
    found, target_s = lines(data["daq"]), data.settings.daq.target_s
    rows = [
        point(
            MEASURED,
            line_name(row),
            counted(row["writers"], "writer"),
            row["time_s"],
            row["backlog_bytes"],
        )
        for row in sorted(data["backlog"], key=itemgetter("writers"))
        if row["repetition"] == 1
    ]
    measured_s, said = max((row["at"] for row in rows), default=0.0), []
    for name, line in found.items():
        for writers, one in line.items():
            needed = one.buffer.median if one.buffer else None
            if needed is not None:
                ends = ((0.0, 0.0), (target_s, needed)) if one.late else ((0.0, needed), (measured_s, needed))
                rows += [point(LIMIT, name, counted(writers, "writer"), *end) for end in ends]
        text = f"{size(needed)} for {counted(writers, 'writer')}{f' over {seconds(target_s)}' * bool(one.late)}"
        said.append(f"{name}: {text if needed is not None else 'is unknown'}")
    return Lines(
        f"Buffer that is needed, {'; '.join(said)}",
        rows,
        "Solid: measured. Dashed: the most there was; for writers that were behind at the end, the rate at which data"
        " arrive minus the rate of writing, times the time, up to that for which the buffer must suffice. Every panel"
        " has its own range.",
        panels=dict.fromkeys([row["panel"] for row in rows] or found, "Time (s)"),
        label="Buffer",
        unit="bytes",
        counts=False,
        logarithmic=False,
    )


def throughput(data: Data) -> Chart:
    """What all writers wrote together, by their number, beside the data that arrived. As Figure 8 of the DUNE paper."""
    found = lines(data["daq"])
    said = []
    for name, line in found.items():
        most = max(line, key=lambda writers: line[writers].throughput.median)
        reached = rate(line[most].throughput.median)
        said.append(f"{name} writes {reached} at most (with {counted(most, 'writer')})")
    rows = [
        measured("", name, writers, one.throughput) for name, line in found.items() for writers, one in line.items()
    ]
    come = {writers: one.input_bytes_per_s for line in found.values() for writers, one in line.items()}
    rows += [point(LIMIT, "", "what comes", writers, come[writers]) for writers in sorted(come)]
    rows += [published("", number) for number in DAQ if number.quantity == "throughput"]
    return Lines(
        "; ".join(said),
        rows,
        "Median over repetitions, until all is flushed; logarithmic axes. Dashed: data that arrive. Stars:"
        " the paper's DCPMMs, interleaved (4 writers) and each by itself (5 writers), as its text states them.",
        panels={"": "Writers at once"},
        label="Throughput",
    )


def points(data: Data) -> Section:
    """The section with every point that was measured."""
    rows = sorted(measured_rows(data["daq"]), key=itemgetter("over", "engine", "writers", "repetition"))
    text = f"Buffer: for {seconds(data.settings.daq.target_s)}. Latency: of a record."
    columns = (
        "over engine writers input_bytes_per_s throughput_bytes_per_s late_writers buffer_bytes records_checked"
        " latency_p99_s latency_p999_s latency_max_s cpu_s_per_gb"
    )
    return Section("Points", text, rows, columns)


PAGE = workload_page(
    "daq",
    " with fio; every record was read again and checked",
    title="Writers at a fixed rate",
    caption="Writers at a fixed rate on one page: how many of them each tier holds, what all of them write together,"
    " and how large a memory buffer the others would need, beside the numbers of the DUNE paper.",
    tables=["backlog"],
    verdicts=verdicts,
    parts=(
        Figure("What each writer holds", held),
        Figure("The buffer that is needed", buffer),
        Figure("All writers together", throughput),
        points,
        published_numbers(
            DAQ,
            f"{DAQ[0].source}. Its devices and machine were others: 6 or 12 modules of persistent memory, for ten"
            " writers at 1 GB/s for 100 s.",
        ),
    ),
    note="Bytes that writers on several tiers read and wrote are listed with the first of these tiers.",
    method="Each writer is a process of fio with a file of its own, which gets records at a fixed rate. It holds its"
    " rate if it reached all but daq.tolerance of it, and the data of one flush, by the time when everything was"
    " flushed. Every record is read again and checked.",
)
