"""The figures of the comparison: each a function from the compared tables to a chart.

A condition is drawn as a bar: its median over the valid runs that are its repetitions.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import Any

from neurotier.core.quantities import counted, percent, seconds, share_of, shorten, size
from neurotier.core.tables import Row
from neurotier.meter.usage import LABELS
from neurotier.pages.comparison.statistics import (
    Difference,
    by_condition,
    families,
    family_contrasts,
    inputs_text,
    paired_differences,
    run_key,
    speed_ups,
    sum_of,
)
from neurotier.pages.kit.causes import CPU, MEMORY_STALL, PAPER_IO, UNEXPLAINED
from neurotier.pages.kit.chart import (
    CAUSE_COLOURS,
    CPU_COLOUR,
    IO_COLOUR,
    PHASE_COLOURS,
    SKY,
    VERMILION,
    Chart,
)
from neurotier.pages.kit.contrasts import Contrast
from neurotier.pages.kit.findings import at_once, between, spread_text, times_text
from neurotier.pages.kit.marks import Box, Kind, Lanes, Points, Stack
from neurotier.run.compared import MEMORY, Compared, Condition
from neurotier.storage.spread import Spread, spread


def about(condition: Condition, known: Collection[Condition]) -> str:
    """What sets a condition apart from others besides its placement, each after a comma.

    >>> one, other = (Condition("campaign", "bet", "cold", jobs, "tmpfs") for jobs in (25, 96))
    >>> about(one, [one, other]), about(one, [one])
    (', 25 at once', '')

    Inputs in memory are a matter of the placement:

    >>> disk, memory = (Condition("campaign", "bet", cache, 25, cache) for cache in ("cold", MEMORY))
    >>> about(disk, [disk, memory])
    ''
    """
    said = vars(condition) | {"parallelism": at_once(condition.parallelism), "cache": inputs_text(condition.cache)}
    del said["placement"]
    apart = [name for name in said if len({getattr(one, name) for one in known} - {MEMORY}) > 1]
    return "".join(f", {said[name]}" for name in apart)


def difference_cells(difference: Difference, contrast: Contrast) -> Row:
    """Two placements, the difference of the median participant, and the ratio of makespans, as cells of a row."""
    slower, faster = difference.slower, difference.faster
    low, high = contrast.ends or (None, None)
    return {
        **{name: getattr(slower, name) for name in ("origin", "tool", "parallelism")},
        "slower": slower.placement,
        "slower_cache": slower.cache,
        "faster": faster.placement,
        "faster_cache": faster.cache,
        "median_s": difference.median_s,
        "nodes": difference.nodes,
        "repetitions": contrast.repetitions,
        "ratio": contrast.ratio,
        "ratio_low": low,
        "ratio_high": high,
    }


NO_RUN = Chart("No valid run finished a participant job")
WHOLE = "whole"
MOST_PAIRS = 60
"""Of more pairs of placements, so many are drawn."""

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


def sums(says: str, bars: Bars, kinds: Mapping[str, Kind], note: str, unit: str = "s", **look: Any) -> Chart:
    """A chart of what the participant jobs of a run took together, divided into parts; those that no bar has are left
    out. Beside a bar are its length and the share of its longest part.
    """
    present = {name: kind for name, kind in kinds.items() if any(parts.get(name) for parts in bars.values())}
    table, lanes = list[Row](), []
    for (condition, tier), parts in bars.items():
        table.append(vars(condition) | ({"tier": tier} if tier else {}))
        for name in present:
            table[-1] |= spread_cells(name, unit, parts.get(name))
        lane = f"{shorten(condition.placement, 22)}: {shorten(tier, 18)}" if tier else condition.placement
        longest = max(present, key=lambda name: length(parts, name))
        text = f"{look.get('words', seconds)(length(parts))}; {percent(share(parts, longest))} {kinds[longest].label}"
        medians = {name: length(parts, name) for name in present}
        lanes.append((condition, medians | {"lane": lane, "text": text}))
    return Lanes(
        says,
        table,
        "Medians over repetitions of the sums over participant jobs. Valid runs only. Right: length of the bar, and"
        f" share of its longest part. {note}",
        marks=(Stack(present),),
        lanes=in_panels(lanes),
        **{"x": "Sum over participant jobs (s)"} | look,
    )


def shares_text(bars: Bars, kinds: Mapping[str, Kind], what: str, *first: str) -> str:
    """How much of the bars some parts take, and which of the others takes most, where."""
    shares = sorted(share(parts, *first) for parts in bars.values())
    text = f"{what}: {between(map(percent, shares))} of the summed time"
    others = [
        (share(parts, name), name, condition)
        for (condition, _), parts in bars.items()
        for name in parts
        if name not in first
    ]
    most, name, where = max(others, default=(0.0, "", next(iter(bars))[0]))
    if percent(most) == percent(0.0):
        return text
    place = f"{where.placement}{about(where, [one for one, _ in bars])}"
    return f"{text}; most of the rest: {kinds[name].label}, up to {percent(most)} with {place}"


def makespan(data: Compared) -> Chart:
    """A bar per condition, a dot per repetition; speed-up beside it. As the published Figure 9."""
    groups, ups = by_condition(data.runs), {up.higher: up for up in speed_ups(data.runs)}
    if not groups:
        return NO_RUN
    times = {one: Spread.of(runs, "makespan_s") for one, runs in groups.items()}
    table, lanes = [], []
    for one, time in times.items():
        up, text = ups.get(one), spread_text(time)
        table.append(
            vars(one)
            | {"repetitions": len(time.values)}
            | spread_cells("makespan", "s", time)
            | {"speed_up_from": up and up.lower.parallelism}
            | spread_cells("speed_up", "ratio", up.ratio if up else None)
        )
        if up:
            text += f"; speed-up {times_text(up.ratio.median)} of {times_text(up.ideal)}"
        lanes.append((one, {"makespan": time.median, "dots": list(time.values), "text": text}))
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
    found = family_contrasts(groups)
    if not found:
        fastest = min(times, key=lambda one: times[one].median)
        shortest = "is shortest with" if len(times) > 1 else "with"
        return f"Makespan {shortest} {fastest.placement}{about(fastest, times)}: {spread_text(times[fastest])}"
    slow, fast = max(found, key=lambda pair: found[pair].ratio)
    contrast, alike = found[slow, fast], about(slow, times)
    if contrast.is_longer:
        return f"Compared with {fast.placement}, {slow.placement} took {contrast}{alike}"
    return f"{slow.placement} and {fast.placement}{alike and f'{alike},'} are {contrast.doubt}"


def cpu_io_sums(data: Compared) -> Chart:
    """Sums over all participant jobs of a run, medians over repetitions. As the published Figure 10."""
    kinds = {"cpu_sum": Kind("CPU time", CPU_COLOUR), "io_sum": Kind(PAPER_IO, IO_COLOUR)}
    bars = {
        (condition, ""): {name: spread(runs, f"{name}_s") for name in kinds}
        for condition, runs in by_condition(data.runs).items()
    }
    if not bars:
        return NO_RUN
    return sums(
        shares_text(bars, kinds, "CPU time", "cpu_sum"),
        bars,
        kinds,
        "I/O as the paper counts it contains waiting for a core. Where CPU time exceeds wall time (several cores at"
        " once), it is below 0, and drawn as 0.",
    )


def accounts(data: Compared) -> Chart:
    """The same sums divided by cause, where the runs have an account of their waits."""
    groups = by_condition(data.runs)
    found = {
        (condition, ""): {cause: spread(runs, sum_of(cause)) for cause in LABELS} for condition, runs in groups.items()
    }
    bars = {key: parts for key, parts in found.items() if any(parts.values())}
    if not bars:
        return (
            Chart("No run has an account of its wall time; published logs know CPU and wall time only")
            if groups
            else NO_RUN
        )
    memory = any(length(parts, MEMORY_STALL) for parts in bars.values())
    kinds = {
        cause: Kind(label, CAUSE_COLOURS[cause], cause == UNEXPLAINED)
        for cause, label in LABELS.items()
        if cause != MEMORY_STALL or memory
    }
    return sums(
        shares_text(bars, kinds, "On a CPU", *CPU),
        bars,
        kinds,
        "The medians of the parts need not add up to that of the whole. System: copying from and to page cache, tmpfs"
        " and persistent memory is part of it. Asleep: network, locks or timers. Runs without an account, such as"
        " published ones, are not shown.",
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
    most = largest[0]
    contrast = contrasts[most.slower, most.faster]
    says = f"The median participant took {seconds(most.median_s)} or {percent(most.share)} longer on"
    says += f" {most.slower.placement} than on {most.faster.placement}{about(most.slower, groups)}"
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
    sums_s = Counter[tuple[str, str, str]]()
    for row in data.participants:
        sums_s[*run_key(row), row["phase"]] += row["wall_s"]
    bars: dict[tuple[Condition, str], Parts] = {}
    for condition, runs in by_condition(data.runs).items():
        parts = {phase: Spread(tuple(sums_s[*run_key(run), phase] for run in runs)) for phase in PHASE_COLOURS}
        if known := {phase: one for phase, one in parts.items() if one.high}:
            bars[condition, ""] = known
    if not bars:
        return NO_RUN
    of_phases = {key: parts for key, parts in bars.items() if WHOLE not in parts}
    kinds = {phase: Kind(phase, colour) for phase, colour in PHASE_COLOURS.items()}
    says = "Published logs know no phases, only whole jobs"
    if of_phases:
        says = shares_text(of_phases, kinds, "Phase compute", "compute")
    return sums(says, bars, kinds, "Of published jobs the whole is known only.")


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

    (condition, tier), most = max(bars.items(), key=lambda item: (length(item[1]), item[0]))
    place = f"{condition.placement}{about(condition, [one for one, _ in bars])}"
    says = f"Most bytes cross the tier {tier}: {size(length(most))} with {place}"
    look: dict[str, Any] = {"x": "Sum over participant jobs (MiB)", "scale": 1024.0**2, "words": size}
    note = "Lanes: placement: tier. As far as the meter knows."
    return sums(says if length(most) else "No bytes were moved", bars, kinds, note, "bytes", **look)
