"""The figures of the published experiment: each a function from the replay to a chart."""

from __future__ import annotations

import statistics
from collections.abc import Sequence

from neurotier.bigbrain.conditions import IncrementCondition
from neurotier.core.quantities import number, percent, seconds
from neurotier.core.tables import Row
from neurotier.model.prediction import MEASURED, PAPER
from neurotier.pages.bigbrain.figures import (
    MEMBERS,
    apart,
    bigbrain_parallelism,
    gantt_chart,
    makespan_chart,
    phases_chart,
    write_share,
)
from neurotier.pages.bigbrain.names import ENGINES, off_factor, published_name, ratio_text
from neurotier.pages.comparison import figures as comparison
from neurotier.pages.kit.chart import SKY, VERMILION, Chart
from neurotier.pages.kit.findings import gathered
from neurotier.pages.kit.marks import Lanes, Line, Points
from neurotier.pages.published.tables import Replayed
from neurotier.published import own_columns
from neurotier.published.conditions import APP_DIRECT, device_and_mode
from neurotier.published.table_one import Bandwidth
from neurotier.published.validation import ALONE, CLOSE, CONDITION, DEVICE, TWIN, Score, scores

NO_RUN = Chart("These logs have no whole run")


def scores_of(rows: Sequence[Row], held_out: str) -> dict[str, Score]:
    """The score of each member, by what was held out, in their order."""
    found = {score.member: score for score in scores(held_against(rows)) if score.held_out == held_out}
    return {member: found[member] for member in MEMBERS if member in found}


def held_against(rows: Sequence[Row]) -> list[Row]:
    """The predictions of conditions that were measured."""
    return [row for row in rows if row["measured_s"] and row["predicted_s"] > 0]


def validation_text(rows: Sequence[Row]) -> str:
    """What the validation says: without a condition, with a twin in the other mode or not; without a device."""
    alone = scores_of(rows, CONDITION)
    best = MEASURED if MEASURED in alone else next(iter(alone))
    score = alone[best]
    text = f"Held out, conditions are predicted within a factor of {ratio_text(score.factor)}"
    text += f" ({score.close} of {score.conditions} within {CLOSE:g}"
    text += f", {score.covered} in their interval)" if score.covered is not None else ")"
    parts = {TWIN: "with a twin in the other memory mode", ALONE: "without", DEVICE: "whole devices"}
    for split, words in parts.items():
        of_split = scores_of(rows, split)
        text += f", {words} {ratio_text(of_split[best].factor)}" if best in of_split else ""
    return text + (f"; Eq. (1): {ratio_text(alone[PAPER].factor)}" if PAPER in alone and best != PAPER else "")


def predicted(data: Replayed) -> Chart:
    """Every condition, predicted without having seen its runs, and without any run on its device: how many times what
    was measured.
    """
    rows = held_against(data.validation)
    if not rows:
        return Chart("No condition that is predicted was measured")
    lanes: dict[IncrementCondition, Row] = {}
    for row in rows:
        one, ratio = own_columns.condition_of(row), row["predicted_s"] / row["measured_s"]
        about = {"group": published_name(one).removesuffix(f", {one.tier}"), "lane": one.tier}
        lane = lanes.setdefault(one, about | dict.fromkeys((PAPER, CONDITION, DEVICE, "low", "high")))
        lane[PAPER if row["member"] == PAPER else row["held_out"]] = ratio
        if (row["member"], row["held_out"]) == (MEASURED, CONDITION):
            ends = {end: row[f"{end}_s"] / row["measured_s"] for end in ("low", "high")}
            lane |= ends | {"text": f"{ratio_text(ratio)} ({ratio_text(ends['low'])} to {ratio_text(ends['high'])})"}
    label, marker, colour = MEMBERS[MEASURED]
    return Lanes(
        validation_text(data.validation),
        rows,
        "1: predicted as measured; logarithmic axis. Line and right: interval of the prediction without the condition's"
        " own runs. Outliers among the repetitions are left out. Eq. (1) learns nothing from runs.",
        marks=(
            Line("low", "high"),
            Points(PAPER, *MEMBERS[PAPER], filled=True),
            Points(DEVICE, f"{label}, without its device", marker, colour),
            Points(CONDITION, f"{label}, without its condition", marker, colour, filled=True),
        ),
        x="Predicted over measured makespan",
        lanes=list(lanes.values()),
        words=ratio_text,
        logarithmic=True,
        marked=1.0,
    )


def table_one(data: Replayed) -> Chart:
    """Read and write bandwidth of each device by the published storage benchmark."""
    bandwidths = data.replay.bandwidths
    if not bandwidths:
        return Chart("These logs have no storage benchmark")
    lanes = [
        {"panel": way, "lane": f"{one.device}, {one.mode}", "measured": values, "mean": statistics.fmean(values)}
        | {"printed": one.published and one.published[place]}
        | {"text": f"{number(statistics.fmean(values), 1)}; {number(statistics.median(values), 1)} MB/s"}
        for place, way in enumerate(("Read", "Write"))
        for one in bandwidths
        for values in [[*((one.read_mb_s, one.write_mb_s)[place])]]
    ]
    return Lanes(
        bandwidths_text(bandwidths),
        [
            {"device": one.device, "mode": one.mode, "number": place, "read_mb_s": read, "write_mb_s": write}
            for one in bandwidths
            for place, (read, write) in enumerate(zip(one.read_mb_s, one.write_mb_s, strict=True), start=1)
        ],
        "One stream of dd; points: measurements; cross: as printed in Table I, which is App Direct mode. 1 GB is"
        " counted as 1,024 MB, as printed; dd means 1,000. Right: mean and median; the axis is logarithmic.",
        marks=(
            Points("measured", "measurement", colour=SKY, filled=True, size=3.5),
            Points("mean", "mean", "|", VERMILION, size=11),
            Points("printed", "Table I as printed", "x", size=8),
        ),
        x="Bandwidth (MB/s)",
        lanes=lanes,
        words=lambda value: f"{number(value, 1)} MB/s",
        logarithmic=True,
    )


def bandwidths_text(bandwidths: Sequence[Bandwidth]) -> str:
    """How far apart the devices are, and whether the means are those that are printed."""
    in_table = [one for one in bandwidths if one.mode == APP_DIRECT] or list(bandwidths)
    means = {one: one.of(statistics.fmean) for one in in_table}
    fast, slow = (chosen(means, key=lambda one: means[one][0]) for chosen in (max, min))
    note, printed = "", [one for one in in_table if one.published]
    if printed:
        same = all(tuple(round(value, 1) for value in means[one]) == one.published for one in printed)
        note = "; the means are Table I" if same else "; the means are not those of Table I"
    if fast == slow:
        read, write = map(number, means[fast])
        return f"{fast.device} reads {read} MB/s and writes {write} MB/s{note}"
    by_read, by_write = (ratio_text(means[fast][way] / means[slow][way]) for way in (0, 1))
    return f"{fast.device} reads {by_read} times and writes {by_write} times as fast as {slow.device}{note}"


def makespan(data: Replayed, part: str) -> Chart:
    """Measured makespans of each device beside the paper's estimate and, where there are any, the model's; others: runs
    with a delay, of several iterations, and those that were made again later.
    """
    own = data.part(part)
    return makespan_chart(own, makespan_text(own)) if own.conditions else NO_RUN


def makespan_text(data: Replayed) -> str:
    """The widest gap between devices, and how far Eq. (1) is off, outliers left out of that."""
    repetitions, times, ratios = data.repetitions(), dict[IncrementCondition, float](), []
    for row in data.conditions:
        one = IncrementCondition.of(row)
        times[one] = row["makespan_s"]
        if row["equation_one_s"]:
            went_on_s, _ = apart([run["makespan_s"] for run in repetitions[one]])
            ratios.append(row["equation_one_s"] / statistics.fmean(went_on_s))
    factor = off_factor(ratios)
    off = f"; Eq. (1) is off by a factor of {ratio_text(factor)}" if factor else ""
    off += " on average" if factor and len(times) > 1 else ""
    if len(times) == 1:
        (only,) = times
        return f"{published_name(only)}: {seconds(times[only])}{off}"
    panels = gathered((one.panel, one) for one in times if one.panel)
    ordered = [sorted(members, key=lambda one: times[one]) for members in panels.values()]
    widest = max(ordered, key=lambda members: times[members[-1]] / times[members[0]], default=[])
    if len(widest) < 2:
        by_time = sorted(times, key=lambda one: times[one])
        low, high = (f"{seconds(times[one])} ({published_name(one)})" for one in (by_time[0], by_time[-1]))
        return f"Makespans from {low} to {high}"
    fast, slow = widest[0], widest[-1]
    ratio = ratio_text(times[slow] / times[fast])
    said = f"{slow.tier} ({seconds(times[slow])}) takes {ratio} times as long as {fast.tier}"
    return f"{said} ({seconds(times[fast])}) with {slow.parallelism} processes{off}"


def phases(data: Replayed, part: str) -> Chart:
    """Time that all blocks together spent in each phase."""
    own = data.part(part)
    if not own.conditions:
        return NO_RUN
    several = len({IncrementCondition.of(row).panel for row in own.conditions}) > 1
    ordered = sorted(own.conditions, key=write_share)

    def described(row: Row) -> str:
        about = f", {row['parallelism']} processes" * several
        return f"{percent(write_share(row))} ({row['tier']}{about})"

    low, high = described(ordered[0]), described(ordered[-1])
    return phases_chart(own, f"Writing takes {f'from {low} to {high}' if len(ordered) > 1 else low} of the summed time")


def gantt(data: Replayed, part: str) -> Chart:
    """The phases of every block, with 25 processes on the 40 µm image as Figure 2 of the paper, with 96 as Figure 4;
    grey lines: between two phases of a block.
    """
    own = data.part(part)
    return gantt_chart(own, own.conditions, longest_text(own.conditions)) if own.conditions else NO_RUN


def longest_text(rows: Sequence[Row]) -> str:
    """What takes blocks the longest, and where; modes of a device are told only if they differ."""
    verbs = {"write_s": "writing", "increment_s": "reading and incrementing", "load_header_s": "loading headers"}
    longest = {IncrementCondition.of(row): max(reversed(verbs), key=lambda phase: row[phase]) for row in rows}
    places: dict[str, list[str]] = {}
    for one, phase in longest.items():
        device, _ = device_and_mode(one)
        alike = {
            longest[other] for other in longest if (device_and_mode(other)[0], other.engine) == (device, one.engine)
        }
        name = device if len(alike) == 1 else one.tier.replace(", ", " in ")
        engine = f" ({ENGINES[one.engine]})" if len({other.engine for other in longest}) > 1 else ""
        places.setdefault(phase, []).append(f"{name}{engine}")
    said = [(verbs[phase], ", ".join(dict.fromkeys(places[phase]))) for phase in verbs if phase in places]
    (verb, where), *others = said
    sentence = f"{verb.capitalize()} is the longest phase on {where}"
    return "; ".join([sentence, *(f"{verb} on {where}" for verb, where in others)])


def mean_parallelism(data: Replayed) -> Chart:
    """How many blocks were in a phase at once, of the processes that were asked for."""
    own = data.part("")
    return bigbrain_parallelism(own) if own.conditions else NO_RUN


def bids_makespan(data: Replayed) -> Chart:
    """A bar per condition (median), a dot per repetition."""
    return comparison.makespan(data.replay.bids_app)


def bids_cpu_io(data: Replayed) -> Chart:
    """Sums over all tasks of a run, medians over repetitions."""
    return comparison.cpu_io_sums(data.replay.bids_app)
