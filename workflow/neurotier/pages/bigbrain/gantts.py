"""When each block was read, incremented and written (the paper's Figures 2 and 4)."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from neurotier.bigbrain.conditions import IncrementCondition
from neurotier.bigbrain.tabulation import TICK_S
from neurotier.bigbrain.tasks import DELAY, HEADER, INCREMENT, READ, SPARK, START_UP, STREAMING, WRITE
from neurotier.core.quantities import counted, mean_count, percent, seconds
from neurotier.core.tables import Row
from neurotier.pages.bigbrain.names import ENGINES, NO_RUN, name_of, own
from neurotier.pages.bigbrain.phases import KINDS
from neurotier.pages.bigbrain.tables import Tables
from neurotier.pages.kit.chart import YELLOW
from neurotier.pages.kit.findings import Finding
from neurotier.pages.kit.gantt import Chart, Job, Segment, draw_charts, pack
from neurotier.pages.kit.style import write_figure
from neurotier.published.conditions import device_and_mode

COLOURS = {label: colour for label, _, colour in KINDS.values()} | {"pause": YELLOW}
LABELS = dict(zip((START_UP, HEADER, READ, INCREMENT, WRITE, DELAY), COLOURS, strict=True))
CELLS = ("origin", "engine", "tier", "parallelism")
NOTE = (
    "Of each condition the valid repetition of middle makespan. A lane holds blocks that came one after the other, each"
    " iteration a bar of its own; every panel has a clock of its own."
)
STREAMING_NOTE = (
    " Streaming, phases alternate in pieces of 2 MiB: within a bar they are drawn one after the other with their summed"
    " durations, and what remains is a grey line."
)
SPARK_NOTE = " Spark's own start and end are before and after what is drawn; its makespan has them."
REPLAY_NOTE = " Of GNU Parallel, reading is within 'increment'; of Spark it is in no phase."


@dataclass(frozen=True)
class Drawn:
    """A condition, its repetition of middle makespan, and the chart of that."""

    row: Row
    run: Row
    chart: Chart


def parts(tables: Tables) -> dict[str, Tables]:
    """Of the replay, a figure for each image and number of processes."""
    return tables.parts(lambda one: f"{one.resolution_um}um_{one.parallelism}")


def middle(runs: Sequence[Row]) -> Row:
    """The repetition of middle makespan; the shorter of two."""
    return sorted(runs, key=lambda run: float(run["makespan_s"]))[(len(runs) - 1) // 2]


def drawn_of(tables: Tables) -> list[Drawn]:
    """Each condition of one's own, or of the replay."""
    repetitions, drawn = tables.repetitions(), []
    for row in tables.conditions if tables.is_replay else own(tables.conditions):
        run = middle(repetitions[IncrementCondition.of(row)])
        subtitle = (
            f"{seconds(run['makespan_s'])}, {mean_count(run['mean_parallelism'])} of {row['parallelism']} in a phase"
        )
        if run["start_up_s"] and row["engine"] == SPARK:
            subtitle += f"; start of Spark {seconds(run['start_up_s'])}"
        if left := run["incomplete_blocks"]:
            subtitle += f"; {counted(left, 'block')} not written"
        slack_s = 0.0 if tables.is_replay else TICK_S
        lanes = pack(jobs_of(tables.phases_of(run), row["pairing"] == STREAMING), slack_s)
        drawn.append(Drawn(row, run, Chart(f"{name_of(row)}\n{subtitle}", lanes)))
    return drawn


def jobs_of(phases: Sequence[Row], streaming: bool) -> list[Job]:
    """The iterations of the blocks of one run, from rows of ``bigbrain_phases.tsv``.

    Phases of streaming alternate: they are laid one after the other, each as long as its pieces together.
    """
    rows_by_iteration: dict[tuple[str, int], dict[str, Row]] = {}
    for row in phases:
        rows_by_iteration.setdefault((row["block"], row["iteration"]), {})[row["phase"]] = row
    jobs = []
    for (block, _), members in rows_by_iteration.items():
        start_s, end_s = min(row["start_s"] for row in members.values()), max(row["end_s"] for row in members.values())
        segments, clock_s = [], start_s
        for name, label in LABELS.items():
            if name in members:
                begun_s = clock_s if streaming else members[name]["start_s"]
                clock_s = begun_s + members[name]["duration_s"]
                segments.append(Segment(label, begun_s, clock_s))
        jobs.append(Job(block, start_s, max(end_s, clock_s), segments, complete=WRITE in members))
    return sorted(jobs, key=lambda job: (job.start_s, job.end_s, job.name))


def busy_share(one: Drawn) -> float:
    """Share of the workers' time, from first start to last end, that is in a phase or the start of a process."""
    drawn_s = math.fsum(part.end_s - part.start_s for _, job in one.chart.lanes for part in job.segments)
    return drawn_s / (float(one.run["makespan_s"]) * int(one.row["parallelism"]))


def finding(tables: Tables) -> Finding:
    """How much of their time workers are busy; the rest is the engine's own and waiting. Of the replay, with what."""
    if tables.is_replay:
        return Finding(replay_finding(tables.conditions))
    shown = drawn_of(tables)
    if not shown:
        return Finding(NO_RUN, shown=False)
    ordered = sorted(shown, key=busy_share)
    low, high = (f"{percent(busy_share(one))} ({name_of(one.row)})" for one in (ordered[0], ordered[-1]))
    shares = f"{low} of the time" if len(shown) == 1 else f"from {low} to {high} of the time"
    return Finding(f"Workers are busy, starts and pauses included, {shares}")


def replay_finding(rows: Sequence[Row]) -> str:
    """What takes blocks the longest, and where; modes of a device are told only if they differ."""
    verbs = {"write_s": "writing", "increment_s": "reading and incrementing", "load_header_s": "loading headers"}
    longest = {}
    for row in rows:
        longest[IncrementCondition.of(row)] = max(reversed(verbs), key=lambda phase: row[phase])
    names_by_phase: dict[str, list[str]] = {}
    for one, phase in longest.items():
        device, _ = device_and_mode(one)
        device_phases = {
            longest[other] for other in longest if (device_and_mode(other)[0], other.engine) == (device, one.engine)
        }
        name = device if len(device_phases) == 1 else one.tier.replace(", ", " in ")
        engine = f" ({ENGINES[one.engine]})" if len({other.engine for other in longest}) > 1 else ""
        names_by_phase.setdefault(phase, []).append(f"{name}{engine}")
    first, *others = (phase for phase in verbs if phase in names_by_phase)
    places = {phase: ", ".join(dict.fromkeys(names)) for phase, names in names_by_phase.items()}
    sentence = f"{verbs[first].capitalize()} is the longest phase on {places[first]}"
    return "; ".join([sentence, *(f"{verbs[phase]} on {places[phase]}" for phase in others)])


def draw(tables: Tables, stem: Path) -> None:
    """Draw a run of each condition of one's own, or of the replay; write SVG, PNG and TSV."""
    shown = drawn_of(tables)
    streaming = any(one.row["pairing"] == STREAMING for one in shown)
    spark = any(one.row["engine"] == SPARK for one in shown)
    note = NOTE + STREAMING_NOTE * streaming + SPARK_NOTE * spark + REPLAY_NOTE * tables.is_replay
    rows = [
        {name: one.row[name] for name in CELLS} | {"repetition": one.run["repetition"]} | phase
        for one in shown
        for phase in one.chart.rows("block")
    ]
    charts = [one.chart for one in shown]
    write_figure(stem, finding(tables), rows, lambda: draw_charts(charts, COLOURS, "first phase"), note)
