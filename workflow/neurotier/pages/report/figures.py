"""The figures of the run report."""

from __future__ import annotations

import statistics
from collections.abc import Iterable, Sequence

from neurotier.core.parallelism import PHASES
from neurotier.core.quantities import CM3_PER_MM3, cm3, counted, mean_count, number, percent, seconds, share_of, shorten
from neurotier.core.tables import Row, gathered
from neurotier.meter.usage import LABELS
from neurotier.pages.kit.causes import MEMORY_STALL, UNEXPLAINED, Causes, sum_causes, why_no_account
from neurotier.pages.kit.chart import CAUSE_COLOURS, PHASE_COLOURS, Chart
from neurotier.pages.kit.gantts import Gantts, Panel, in_lanes
from neurotier.pages.kit.marks import READABLE_LANES, Box, Kind, Lanes, Stack
from neurotier.pages.report.cluster import nodes_line
from neurotier.pages.report.data import ReportData, doubts, is_plausible
from neurotier.pages.report.times import NONE_FINISHED, ParticipantTime, present_phases

LONGEST_NAME = 60
"""Letters of a participant's name in a title."""

NOTED_SHARE, NOTED_CAUSES = 0.005, 3
"""The title names so many causes after the largest, none below this share of the wall time."""

UNKNOWN_NODE = "node not known"
MADE = {
    "exact": "exact (one thread active at a time)",
    "scaled": "scaled (several threads at once: their seconds divide the time in which any was active)",
    "sampled": "sampled",
}
"""How an account was made, in words."""

ROUNDING_S = 1e-3
"""By so much, causes may exceed wall time without a word: the account's clocks differ by less."""

BOX = "Box: quartiles; line: 5th to 95th per cent; dots: {}, if few; diamond: median{}."


def causes_of(times: Iterable[ParticipantTime], phases: Sequence[str] = PHASES) -> Causes:
    """The sums of some phases of some jobs."""
    return sum_causes(time.phases[phase] for time in times for phase in phases if phase in time.phases)


def account(data: ReportData) -> Chart:
    """Wall time of each participant job by cause, slowest first, and below it the sums by phase."""
    known = [time for time in data.times if time.accounted]
    if not known:
        why = f"Where the time went is not known: {why_no_account(data.profile)}"
        return Chart(why if data.profile else NONE_FINISHED)
    whole, phases = causes_of(known), present_phases(known)
    table = []
    for time in known:
        row: Row = {"participant": time.participant, "run": time.run}
        for prefix, own in {"": PHASES, **{f"{phase}_": (phase,) for phase in phases}}.items():
            row |= seconds_of(causes_of([time], own), prefix)
        table.append(row)
    shown = [cause for cause in LABELS if cause != MEMORY_STALL or whole.memory_known or whole.parts[cause]]
    stack = Stack({cause: Kind(LABELS[cause], CAUSE_COLOURS[cause], cause == UNEXPLAINED) for cause in shown})
    title = "Each participant, slowest first; at the right: wall time"
    texts = {place: seconds(row["wall_s"]) for place, row in enumerate(table)}
    if len(table) > READABLE_LANES:
        title = f"{counted(len(table), 'participant')}, slowest on top; at the right: wall time"
        ends = {0: "slowest", 1: "a quarter are slower", 2: "median", 3: "a quarter are faster", 4: "fastest"}
        places = {(len(table) - 1) * quarter // 4: text for quarter, text in ends.items()}
        texts = {place: f"{texts[place]}, {text}" for place, text in places.items()}
    lanes = [
        row | {"panel": title, "lane": row["participant"], "text": texts.get(place, "")}
        for place, row in enumerate(table)
    ]
    for phase in phases:
        causes = causes_of(known, [phase])
        text = f"{percent(share_of(causes.wall_s, whole.wall_s))} ({seconds(causes.wall_s)})"
        title = "Sums over participants by phase; at the right: share of all wall time"
        lanes.append(seconds_of(causes) | {"panel": title, "lane": phase, "text": text})
    left_out = len(data.times) - len(known)
    return Lanes(account_says(known, whole), table, account_note(known, whole, left_out), (stack,), "Time (s)", lanes)


def seconds_of(causes: Causes, prefix: str = "") -> Row:
    """Wall time and its causes, s, as columns."""
    columns = {f"{prefix}wall_s": causes.wall_s}
    return columns | {f"{prefix}{cause}": causes.seconds_of(cause) for cause in LABELS}


def account_says(known: Sequence[ParticipantTime], whole: Causes) -> str:
    """The causes that took most of the wall time of all who have an account, largest first."""
    whom = shorten(known[0].participant, LONGEST_NAME) if len(known) == 1 else counted(len(known), "participant")
    if whole.wall_s <= 0:
        return f"No time was measured for {whom}"
    (first, most), *others = whole.ranked
    text = f"{whole.about}{percent(most)} of the time of {whom} {first}"
    more = [f"{percent(share)} {name}" for name, share in others if share >= NOTED_SHARE][:NOTED_CAUSES]
    return ", ".join([text[:1].upper() + text[1:], *more])


def account_note(known: Sequence[ParticipantTime], whole: Causes, left_out: int) -> str:
    """How the accounts were made, and what they leave open; ``left_out`` more have none."""
    text = f"Account: {'; '.join(words for kind, words in MADE.items() if kind in whole.made)}."
    if not whole.memory_known:
        text += " Where being short of memory is not known, it is part of asleep."
    text += f" Asleep: network, locks or timers. Unexplained: {percent(whole.share_of(UNEXPLAINED))} of wall time"
    if whole.unaccounted_s:
        text += f" ({percent(share_of(whole.unaccounted_s, whole.wall_s))} in phases without an account)"
    text += "."
    below_zero = sum(causes_of([time]).unexplained_s < -ROUNDING_S for time in known)
    if below_zero:
        text += f" For {counted(below_zero, 'participant')} the causes exceed wall time; that is not drawn."
    if left_out:
        text += f" {counted(left_out, 'participant')} without an account {'is' if left_out == 1 else 'are'} left out."
    return text


def gantt(data: ReportData) -> Chart:
    """The phases of the participant jobs of the last run on one clock; many of them, and those of each node of a
    cluster, one after the other in as many lanes as ran at once.
    """
    run, cluster = data.last_run, data.cluster
    if run is None or not data.last_times:
        return Chart(NONE_FINISHED)
    origin_s = min(time.start_s for time in data.last_times)
    rows = [
        {"run": run["run"], "participant": time.participant, "phase": row["phase"]}
        | {end: row[end] - origin_s for end in ("start_s", "end_s")}
        | ({"node": cluster.node_of.get(time.participant)} if cluster else {})
        for time in sorted(data.last_times, key=lambda time: (time.start_s, time.participant))
        for row in time.phases.values()
    ]
    lanes, names, many = list[Row](), dict[float, str](), len(data.last_times) > READABLE_LANES
    whose = [row["node"] or UNKNOWN_NODE if cluster else "" if many else row["participant"] for row in rows]
    groups = gathered(zip(whose, rows, strict=True))
    for label, own in sorted(groups.items()) if cluster else groups.items():
        first = 1 + lanes[-1]["lane"] + (cluster is not None) if lanes else 0
        placed = sorted(in_lanes(own, "participant"), key=lambda row: row["lane"])
        lanes += [row | {"lane": first + row["lane"]} for row in placed]
        if label and len(groups) <= READABLE_LANES:
            people = f" ({len({row['participant'] for row in own})})" if cluster else ""
            names[(first + lanes[-1]["lane"]) / 2] = shorten(label, 42) + people
    most, average = run["peak_parallelism"], mean_count(run["mean_parallelism"])
    parallel = "one at a time" if most == 1 else f"{average} at a time on average, {most:,} at most"
    says = f"Makespan {seconds(run['makespan_s'])} for {counted(run['participants'], 'participant')}, {parallel}"
    note = f"Run {run['run']}; failed attempts are not drawn. Jobs on one lane came one after the other."
    return Gantts(says, rows, note, [Panel("", lanes, names=names)], colours=PHASE_COLOURS)


def nodes(data: ReportData) -> Chart:
    """How long participants of the last run took on each node."""
    cluster = data.cluster
    if cluster is None or not cluster.walls_s:
        return Chart(nodes_line(cluster) if cluster else "the last run was on one machine")
    node_of = cluster.node_of
    rows = [
        {"node": node_of[time.participant], "participant": time.participant, "wall_s": time.wall_s}
        for time in cluster.times
        if time.participant in node_of
    ]
    lanes = [
        {"lane": f"{node} ({len(walls_s)})", "walls_s": walls_s, "text": seconds(statistics.median(walls_s))}
        for node, walls_s in cluster.walls_s.items()
    ]
    note = f"Participants that succeeded. {BOX.format('participants', '')}"
    return Lanes(nodes_line(cluster), rows, note, (Box("walls_s"),), "Wall time of a participant (s)", lanes)


def brain_volume(data: ReportData) -> Chart:
    """How brain volumes are distributed at each site."""
    volumes = [row["brain_volume_mm3"] for row in data.group]
    if not volumes:
        return Chart("no brain mask was made")
    by_site = sorted(data.group, key=lambda row: row["site"] or "")
    sites = gathered((row["site"] or "all images", row) for row in by_site)
    lanes = [
        {
            "lane": f"{site} ({len(rows):,})",
            "cm3": [row["brain_volume_mm3"] * CM3_PER_MM3 for row in rows],
            "said": [f"{row['image']}: {cm3(row['brain_volume_mm3'])}" for row in rows],
            "marked": [bool(doubts(row)) for row in rows],
            "text": cm3(statistics.median(row["brain_volume_mm3"] for row in rows)),
        }
        for site, rows in sites.items()
    ]
    table = [
        {"site": row["site"], "image": row["image"], "brain_volume_cm3": row["brain_volume_mm3"] * CM3_PER_MM3}
        | {name: row[name] for name in ("robust_z", "outlier")}
        for row in data.group
    ]
    says = f"Brain volume of the one image is {cm3(volumes[0])}"
    if len(volumes) > 1:
        spread = f"{number(statistics.fmean(volumes) * CM3_PER_MM3)} ± {cm3(statistics.stdev(volumes))}"
        says = f"Brain volume is {spread} (mean ± SD of {counted(len(volumes), 'image')}); {stand_out(data)}"
    note = BOX.format("images", "; large and orange: outliers, and volumes that no adult has")
    box = Box("cm3", said="said", marked="marked")
    return Lanes(says, table, note, (box,), "Brain volume (cm³)", lanes)


def stand_out(data: ReportData) -> str:
    """How many images are outliers, and how many have a volume that no adult has."""
    outliers = sum(bool(row["outlier"]) for row in data.group)
    implausible = sum(not is_plausible(row) for row in data.group)
    text = "none stands out" if not outliers else f"{outliers:,} {'stands' if outliers == 1 else 'stand'} out"
    return text + (f"; {implausible:,} beyond what adults have" if implausible else "")
