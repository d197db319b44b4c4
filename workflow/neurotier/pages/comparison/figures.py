"""The figures of the comparison: each a function from the compared tables to a chart.

A condition is drawn as a bar: its median over the valid runs that are its repetitions.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

from neurotier.core.quantities import counted, mean_count, percent, seconds, share_of, shorten, size
from neurotier.core.tables import Row
from neurotier.meter.usage import LABELS
from neurotier.pages.comparison.names import LONGEST_NAME, PAPER_IO, Names, condition_cells, difference_cells
from neurotier.pages.comparison.statistics import (
    by_condition,
    families,
    family_contrasts,
    inputs_text,
    paired_differences,
    run_key,
    speed_ups,
)
from neurotier.pages.kit.causes import CPU, MEMORY_STALL, UNEXPLAINED
from neurotier.pages.kit.chart import (
    BLACK,
    CAUSE_COLOURS,
    CPU_COLOUR,
    IO_COLOUR,
    PHASE_COLOURS,
    SKY,
    VERMILION,
    Chart,
)
from neurotier.pages.kit.findings import at_once, between, from_to, gathered, spread_text, times_text
from neurotier.pages.kit.gantts import Gantts, Panel, in_lanes
from neurotier.pages.kit.marks import Box, Kind, Lanes, Points, Stack
from neurotier.run.compared import MEMORY, Compared, Condition
from neurotier.storage.spread import Spread, spread

NO_RUN = Chart("No valid run finished a participant job")
WHOLE = "whole"
MOST_PAIRS = 60
"""Of more pairs of placements, so many are drawn."""

MOST_RUNS = 24
"""With more runs, one of each condition is drawn: the one in the middle."""

MOST_PANELS = 48

Parts = Mapping[str, Spread | None]
"""What a bar consists of, by name; what is not known may be missing."""

Bars = Mapping[tuple[Condition, str], Parts]
"""By condition, and by tier where a condition has several bars."""


def in_panels(rows: Iterable[tuple[Condition, Row]]) -> list[Row]:
    """Rows about conditions with their panel and group, as often as there are panels that they stand in."""
    known, found = list(rows), []
    groups = families({condition for condition, _ in known})
    for family in sorted(groups, key=lambda one: (one.origin, one.tool, one.cache, one.parallelism)):
        about = {
            "panel": f"{family.origin}: {family.tool}, {inputs_text(family.cache)}",
            "group": at_once(family.parallelism),
        }
        for condition in groups[family]:
            found += [about | {"lane": condition.placement} | row for one, row in known if one == condition]
    return found


def spread_cells(name: str, unit: str, value: Spread | None) -> Row:
    """Median and range as cells ``<name>_median_<unit>`` and so on; empty if not known."""
    return {f"{name}_{kind}_{unit}": value and getattr(value, kind) for kind in ("median", "low", "high")}


def length(parts: Parts, *names: str) -> float:
    """Length of some parts of a bar, by default of all: what is below 0 or not known is drawn as 0."""
    return sum(max(0.0, value.median) for name in names or parts if (value := parts.get(name)) is not None)


def share(parts: Parts, *names: str) -> float:
    """Share of some parts in the length of their bar; 0 of no length."""
    return share_of(length(parts, *names), length(parts)) or 0.0


def sums(
    says: str,
    bars: Bars,
    kinds: Mapping[str, Kind],
    text: Callable[[Parts], str],
    note: str,
    unit: str = "s",
    ranges: bool = False,
    **look: Any,
) -> Chart:
    """A chart of what the participant jobs of a run took together, divided into parts; those that no bar has are left
    out. ``text`` is said beside a bar.
    """
    present = {name: kind for name, kind in kinds.items() if any(parts.get(name) for parts in bars.values())}
    table, lanes = list[Row](), []
    for (condition, tier), parts in bars.items():
        table.append(condition_cells(condition) | ({"tier": tier} if tier else {}))
        for name in present:
            table[-1] |= spread_cells(name, unit, parts.get(name))
        lane = f"{shorten(condition.placement, 22)}: {shorten(tier, 18)}" if tier else condition.placement
        lanes.append((condition, {name: parts.get(name) for name in present} | {"lane": lane, "text": text(parts)}))
    return Lanes(
        says,
        table,
        f"Medians over repetitions of the sums over participant jobs. Valid runs only. {note}",
        marks=(Stack(present, ranges),),
        lanes=in_panels(lanes),
        **{"x": "Sum over participant jobs (s)"} | look,
    )


def makespan(data: Compared) -> Chart:
    """A bar per condition, a dot per repetition; speed-up beside it. As the published Figure 9."""
    groups, ups = by_condition(data.runs), {up.higher: up for up in speed_ups(data.runs)}
    if not groups:
        return NO_RUN
    times = {one: Spread(tuple(run["makespan_s"] for run in runs)) for one, runs in groups.items()}
    table, lanes = [], []
    for one, time in times.items():
        up, text = ups.get(one), spread_text(time)
        table.append(
            condition_cells(one)
            | {"repetitions": len(time.values)}
            | spread_cells("makespan", "s", time)
            | {"speed_up_from": up and up.lower.parallelism}
            | spread_cells("speed_up", "ratio", up.ratio if up else None)
        )
        if up:
            text += f"; speed-up {times_text(up.ratio.median)} of {times_text(up.ideal)}"
        lanes.append((one, {"makespan": time, "dots": list(time.values), "text": text}))
    return Lanes(
        gap_text(times, groups),
        table,
        "Bar: median over repetitions; dot: a repetition; in brackets least, greatest and number. Speed-up: makespan at"
        " the lowest parallelism over that at this one, of as much as there would be if nothing were shared. Valid runs"
        " only.",
        marks=(Stack({"makespan": Kind("", SKY)}), Points("dots")),
        x="Makespan (s)",
        lanes=in_panels(lanes),
    )


def gap_text(times: Mapping[Condition, Spread], groups: Mapping[Condition, Sequence[Row]]) -> str:
    """The widest gap between two placements at the same parallelism, and whether it is more than chance."""
    names, found = Names(times), family_contrasts(groups)
    if not found:
        fastest = min(times, key=lambda one: times[one].median)
        shortest = "is shortest with" if len(times) > 1 else "with"
        return f"Makespan {shortest} {names.of(fastest)}: {spread_text(times[fastest])}"
    slow, fast = max(found, key=lambda pair: found[pair].ratio)
    slower, faster = (shorten(one.placement, LONGEST_NAME) for one in (slow, fast))
    about, contrast = names.about(slow), found[slow, fast]
    if contrast.is_longer:
        return f"Beside {faster}, {slower} took {contrast}{about and f', {about}'}"
    return f"{slower} and {faster}{about and f', {about},'} are {contrast.doubt}"


def cpu_io_sums(data: Compared) -> Chart:
    """Sums over all participant jobs of a run, medians over repetitions. As the published Figure 10."""
    kinds = {"cpu_sum": Kind("CPU time", CPU_COLOUR), "io_sum": Kind(PAPER_IO, IO_COLOUR)}
    bars = {
        (condition, ""): {name: spread(runs, f"{name}_s") for name in kinds}
        for condition, runs in by_condition(data.runs).items()
    }
    if not bars:
        return NO_RUN
    shares = {condition: share(parts, "io_sum") for (condition, _), parts in bars.items()}
    names, ordered = Names(shares), sorted(shares, key=lambda one: shares[one])
    ends = {percent(shares[one]): names.of(one) for one in ordered}
    much = from_to([f"{text} ({name})" for text, name in ends.items()]) if len(ends) > 1 else next(iter(ends))
    says = f"{PAPER_IO} takes {much} of the summed time"

    def text(parts: Parts) -> str:
        cpu, io = (seconds(length(parts, name)) for name in kinds)
        return f"{cpu.removesuffix(' s')} + {io}; {percent(share(parts, 'io_sum'))} I/O"

    return sums(
        says,
        bars,
        kinds,
        text,
        "Line: least to greatest. I/O as the paper counts it contains waiting for a core; where CPU exceeds wall time"
        " (several cores at once), it is below 0, and drawn as 0. Beside the bars: CPU + I/O.",
        ranges=True,
    )


def accounts(data: Compared) -> Chart:
    """The same sums divided by cause, where the runs have an account of their waits."""
    groups = by_condition(data.runs)
    found = {
        (condition, ""): {cause: spread(runs, f"{cause.removesuffix('_s')}_sum_s") for cause in LABELS}
        for condition, runs in groups.items()
    }
    bars = {key: parts for key, parts in found.items() if any(parts.values())}
    if not bars:
        return (
            Chart("No run has an account of its wall time; published logs know CPU and wall time only")
            if groups
            else NO_RUN
        )
    says = f"{between([share(parts, *CPU) for parts in bars.values()], percent)} of summed time on a CPU"
    waits = [cause for cause in LABELS if cause not in CPU]
    most, cause, where = max((share(bars[key], cause), cause, key[0]) for key in bars for cause in waits)
    if percent(most) != percent(0.0):
        much = percent(most)
        if percent(min(share(parts, cause) for parts in bars.values())) != much:
            much = f"up to {much} ({Names(condition for condition, _ in bars).of(where)})"
        says += f"; most of the rest is {LABELS[cause]}, {much}"
    memory = any(length(parts, MEMORY_STALL) for parts in bars.values())
    kinds = {
        cause: Kind(label, CAUSE_COLOURS[cause], cause == UNEXPLAINED)
        for cause, label in LABELS.items()
        if cause != MEMORY_STALL or memory
    }
    return sums(
        says,
        bars,
        kinds,
        lambda parts: f"{seconds(length(parts))}; {percent(share(parts, *CPU))} on a CPU",
        "The medians of the parts need not add up to that of the whole. System: copying from and to page"
        " cache, tmpfs and persistent memory is part of it. Asleep: network, locks or timers. Beside the bars: share of"
        " time on a CPU. Runs without an account, such as published ones, are not shown.",
    )


def differences(data: Compared) -> Chart:
    """The same participant with two placements: how much longer the slower one took."""
    groups, every = by_condition(data.runs), paired_differences(data.runs, data.participants)
    contrasts = family_contrasts(groups)
    if not every:
        return Chart("No two placements ran the same participants under the same conditions") if groups else NO_RUN
    largest = sorted(every, key=lambda one: -one.share)
    shown = largest[:MOST_PAIRS] if len(every) > MOST_PAIRS else every
    left = f" Of {len(every):,} pairs of placements, the {MOST_PAIRS} that differ most are drawn." * (
        shown is not every
    )
    table, lanes = list[Row](), []
    for one in shown:
        rows = [{"participant": name, "difference_s": value_s} for name, value_s in one.by_participant.items()]
        table += [difference_cells(one, contrasts[one.slower, one.faster]) | row for row in rows]
        pair = f"{shorten(one.slower.placement, 18)} - {shorten(one.faster.placement, 18)}"
        text = f"{seconds(one.median_s)}, {counted(len(rows), 'participant')}"
        both = min(one.slower, one.faster, key=lambda condition: condition.cache == MEMORY)
        lanes.append((both, {"lane": pair, "values": [*one.by_participant.values()], "text": text}))
    most, names = largest[0], Names(groups)
    slower, faster = (shorten(one.placement, LONGEST_NAME) for one in (most.slower, most.faster))
    about, contrast = names.about(most.slower), contrasts[most.slower, most.faster]
    says = f"The median participant took {seconds(most.median_s)} or {percent(most.share)} longer on {slower}"
    says += f" than on {faster}{about and f', {about}'}"
    return Lanes(
        says if contrast.is_longer else f"{says}; their makespans are {contrast.doubt}",
        table,
        "Wall time of each participant's job, mean over repetitions, the second placement's taken from the first's, on"
        " each node where there are several. Box: quartiles; line: 5th to 95th per cent; dots: participants, if few;"
        " diamond: median. It shows how far participants agree, not what moved a whole run: see the dots of the"
        f" makespan.{left}",
        marks=(Box("values"),),
        x="Difference of wall time per participant (s)",
        lanes=in_panels(lanes),
        marked=0.0,
    )


def phases(data: Compared) -> Chart:
    """Sums over all participant jobs of a run by phase, medians over repetitions."""
    sums_s: dict[tuple[str, str], Counter[str]] = {}
    for row in data.participants:
        sums_s.setdefault(run_key(row), Counter())[row["phase"]] += row["wall_s"]
    bars: dict[tuple[Condition, str], dict[str, Spread]] = {}
    for condition, runs in by_condition(data.runs).items():
        own = [sums_s[run_key(run)] for run in runs if run_key(run) in sums_s]
        parts = {
            phase: Spread(tuple(one[phase] for one in own))
            for phase in PHASE_COLOURS
            if any(phase in one for one in own)
        }
        if parts:
            bars[condition, ""] = parts
    if not bars:
        return NO_RUN
    known = {condition: parts for (condition, _), parts in bars.items() if set(parts) != {WHOLE}}
    says = "Published logs know no phases, only whole jobs"
    if known:
        computing = between([share(parts, "compute") for parts in known.values()], percent)
        says = f"Computing takes {computing} of the jobs' time"
    others = [
        (share(parts, phase), phase, condition)
        for condition, parts in known.items()
        for phase in parts
        if phase not in ("compute", WHOLE)
    ]
    if others:
        most, phase, condition = max(others)
        where = f" ({Names(known).of(condition)})" if len(known) > 1 else ""
        says += f"; the longest of the other phases, {phase}, takes up to {percent(most)}{where}"

    def text(parts: Parts) -> str:
        longest = max(parts, key=lambda phase: length(parts, phase))
        return seconds(length(parts)) + (f"; {longest} {percent(share(parts, longest))}" if longest != WHOLE else "")

    kinds = {phase: Kind(phase, colour) for phase, colour in PHASE_COLOURS.items()}
    note = "Of published jobs the whole is known only. Beside the bars: share of the longest phase."
    return sums(says, bars, kinds, text, note)


def gantts(data: Compared) -> Chart:
    """One small Gantt per run: jobs by phase, one after the other on its lanes."""
    jobs = gathered((run_key(row), row) for row in data.participants)
    every = sorted((run for run in data.runs if run_key(run) in jobs), key=order_of)
    if not every:
        return Chart("No participant finished")
    shown, left = chosen(every)
    names, length_s, panels = Names(map(Condition.of, shown)), dict[tuple[str, str], float](), []
    columns = ("participant", "phase", "start_s", "end_s")
    for run in shown:
        rows = in_lanes([{name: row[name] for name in columns} for row in jobs[run_key(run)]], "participant")
        scale, cells = (run["origin"], run["tool"]), condition_cells(Condition.of(run)) | {"run": run["run"]}
        length_s[scale] = max([length_s.get(scale, 0.0), *(row["end_s"] for row in rows)])
        panels.append((run, [cells | row for row in rows]))
    known = [run for run in every if run["parallelism"] and run["mean_parallelism"] is not None]
    says = f"{counted(len(every), 'run')}; how many jobs were to run at once is not known"
    if known:
        shares = [run["mean_parallelism"] / run["parallelism"] for run in known]
        says = f"On average, {between(shares, percent)} of the jobs asked for ran at a time"
        if percent(min(shares)) != percent(max(shares)):
            fewest = Condition.of(known[shares.index(min(shares))])
            says += f"; fewest with {Names(map(Condition.of, every)).of(fewest)}"
    invalid = any(run["valid"] != "valid" for run in shown)
    return Gantts(
        says,
        note=f"{left}A lane holds jobs that ran one after the other; runs of one origin and tool share a scale."
        + " Titles in colour: not valid, not compared." * invalid,
        panels=[
            Panel(
                title(run, names),
                rows,
                length_s[run["origin"], run["tool"]],
                BLACK if run["valid"] == "valid" else VERMILION,
            )
            for run, rows in panels
        ],
        colours=PHASE_COLOURS,
        columns=3,
    )


def order_of(run: Row) -> tuple[object, ...]:
    """Runs side by side that differ in little."""
    one = Condition.of(run)
    return (one.origin, one.tool, one.placement, one.parallelism, one.cache, run["repetition"] or 0, run["run"])


def chosen(runs: Sequence[Row]) -> tuple[list[Row], str]:
    """Runs that are drawn, and a sentence about those that are not; empty if all are."""
    if len(runs) <= MOST_RUNS:
        return list(runs), ""
    groups = gathered(((Condition.of(run), run["valid"] == "valid"), run) for run in runs)
    middle = [
        sorted(members, key=lambda run: (run["makespan_s"] or 0.0, run["run"]))[(len(members) - 1) // 2]
        for members in groups.values()
    ]
    text = f"Of {len(runs):,} runs, the one of middle makespan of each condition is drawn"
    if len(middle) > MOST_PANELS:
        text += f", of the first {MOST_PANELS} of {len(middle):,} conditions"
    return middle[:MOST_PANELS], f"{text}. "


def title(run: Row, names: Names) -> str:
    """Condition and repetition, makespan, and how many ran at a time; or why the run is not valid."""
    condition = Condition.of(run)
    first = shorten(names.of(condition), 52)
    number = f"no. {run['repetition']}: " if run["repetition"] is not None else ""
    if run["valid"] != "valid":
        return f"{first}\n{number}{shorten(run['valid'], 42)}"
    mean = f"mean {mean_count(run['mean_parallelism'])} of {at_once(condition.parallelism)}"
    return f"{first}\n{number}{seconds(run['makespan_s'])}, {mean}"


def tier_bytes(data: Compared) -> Chart:
    """What had to be read from and written to each tier: D of the model."""
    kinds, groups = {"read": Kind("read", SKY), "written": Kind("written", VERMILION)}, by_condition(data.runs)
    bars: dict[tuple[Condition, str], Parts] = {}
    for condition, runs in groups.items():
        keys = set(map(run_key, runs))
        own = [row for row in data.traffic if run_key(row) in keys]
        for tier in sorted({row["tier"] for row in own}):
            of_tier = [row for row in own if row["tier"] == tier]
            parts = {name: spread(of_tier, f"{name}_bytes") for name in kinds}
            if any(parts.values()):
                bars[condition, tier] = parts
    if not bars:
        return Chart("Of no run that is compared is it known how many bytes it moved") if groups else NO_RUN

    def text(parts: Parts) -> str:
        read, written = (size(value.median if (value := parts[name]) else None) for name in kinds)
        return f"{read} read, {written} written"

    (condition, tier), most = max(bars.items(), key=lambda item: (length(item[1]), item[0]))
    conditions = {condition for condition, _ in bars}
    where = f" ({Names(conditions).of(condition)})" if len(conditions) > 1 else ""
    says = (
        f"Most bytes cross the tier {shorten(tier, 30)}: {text(most)}{where}" if length(most) else "No bytes were moved"
    )
    look: dict[str, Any] = {"x": "Sum over participant jobs (MiB)", "scale": 1024.0**2, "words": size}
    note = "Lanes: placement: tier. As far as the meter knows; n/a: not known."
    return sums(says, bars, kinds, text, note, "bytes", **look)
