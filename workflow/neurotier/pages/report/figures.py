"""The figures of the run report."""

from __future__ import annotations

import statistics
from collections.abc import Sequence

from neurotier.core.parallelism import PHASES
from neurotier.core.quantities import (
    CM3_PER_MM3,
    cm3,
    counted,
    number,
    percent,
    seconds,
    share_of,
    shorten,
    three_digits,
)
from neurotier.core.tables import Row, Rows, grouped
from neurotier.pages.kit.causes import CAUSES, MEMORY_STALL, Causes, about, ranked, sum_causes, why_no_account
from neurotier.pages.kit.chart import PHASE_COLOURS, Chart
from neurotier.pages.kit.marks import READABLE_LANES, Box, Lanes, Spans, Stack, in_lanes
from neurotier.pages.report.data import ReportData, accounted, doubts, phases_of

LONGEST_NAME = 60
"""Characters of a participant's name in a title at most."""

NONE_FINISHED = "no participant finished"
NOTED_SHARE, NOTED_CAUSES = 0.005, 4
"""The title names causes with at least this share of the wall time, and at most this many, largest first."""

MADE = {
    "exact": "exact (one thread active at a time)",
    "scaled": "scaled (several threads at once: their seconds divide the time in which any was active)",
    "sampled": "sampled",
}
"""How an account was made, in words."""

BOX = "Box: quartiles; line: 5th to 95th percentile; dots: {}, if few; diamond: median{}."


def account(data: ReportData) -> Chart:
    """Wall time of each participant job by cause, slowest first, and below it the sums by phase."""
    known = accounted(data.jobs)
    if not known:
        why = f"Where the time went is not known: {why_no_account(data['profile'])}"
        return Chart(why if data["profile"] else NONE_FINISHED)
    rows, phases = phases_of(known), [phase for phase in PHASES if phases_of(known, phase)]
    whole, table = sum_causes(rows), Rows()
    for job in known:
        table.append({"participant": job["participant"], "run": job["run"]} | sum_causes(job["phases"]))
        for phase in phases:
            table[-1] |= {f"{phase}_{name}": value for name, value in sum_causes(phases_of([job], phase)).items()}
    memory = whole[MEMORY_STALL] or not any(row[MEMORY_STALL] is None for row in rows if row["account"])
    shown = {cause: kind for cause, kind in CAUSES.items() if cause != MEMORY_STALL or memory}
    panel = f"{counted(len(table), 'participant')}, slowest on top; at the right: wall time"
    lanes: Rows = [{"panel": panel, "lane": row["participant"]} | row for row in table]
    many = [(len(table) - 1) * quarter // 4 for quarter in range(5)]
    for place in many if len(table) > READABLE_LANES else range(len(table)):
        lanes[place]["text"] = seconds(lanes[place]["wall_s"])
    panel = "Sums over participants by phase; at the right: share of all wall time"
    for phase in phases:
        causes = sum_causes(phases_of(known, phase))
        text = f"{percent(share_of(causes['wall_s'], whole['wall_s']))} ({seconds(causes['wall_s'])})"
        lanes.append({"panel": panel, "lane": phase, "text": text} | causes)
    return Lanes(
        account_says(known, whole),
        table,
        account_note(data, known),
        (Stack(shown),),
        "Time",
        lanes=lanes,
    )


def account_says(known: Sequence[Row], whole: Causes) -> str:
    """The causes that took most of the wall time of the jobs with an account, largest first, in words."""
    whom = shorten(known[0]["participant"], LONGEST_NAME) if len(known) == 1 else counted(len(known), "participant")
    if whole["wall_s"] <= 0:
        return f"No time was measured for {whom}"
    parts = [f"{percent(share)} {name}" for name, share in ranked(whole) if share >= NOTED_SHARE]
    return f"Time of {whom}: {about(phases_of(known))}{', '.join(parts[:NOTED_CAUSES])}"


def account_note(data: ReportData, known: Sequence[Row]) -> str:
    """A note on how the accounts were made, and what they leave open."""
    rows, left_out = phases_of(known), len(data.jobs) - len(known)
    text = f"Account: {'; '.join(words for kind, words in MADE.items() if kind in {row['account'] for row in rows})}."
    if any(row[MEMORY_STALL] is None for row in rows if row["account"]):
        text += " Where time short of memory is not known, it is part of the time asleep."
    text += " Asleep: network, locks or timers. Unexplained: what no account explains."
    if left_out:
        text += f" {counted(left_out, 'participant')} without an account {'is' if left_out == 1 else 'are'} left out."
    return text


def gantt(data: ReportData) -> Chart:
    """The phases of the participant jobs of the last run over time. Many jobs, and those of each node of a cluster,
    share as many lanes as ran at once.
    """
    run, jobs = data.last_run, sorted(data.last_jobs, key=lambda job: (job["start_s"], job["participant"]))
    if run is None or not jobs:
        return Chart(NONE_FINISHED)
    rows = [
        {"run": run["run"], "participant": job["participant"], "phase": row["phase"]}
        | {end: row[end] - jobs[0]["start_s"] for end in ("start_s", "end_s")}
        | ({"node": job["node"]} if data.cluster else {})
        for job in jobs
        for row in job["phases"]
    ]
    lanes = [{"lane": row["participant"]} | row for row in rows]
    if data.cluster or len(jobs) > READABLE_LANES:
        lanes = []
        for node, own in sorted(grouped((row.get("node") or "", row) for row in rows).items()):
            people = f"{node or 'node not known'} ({len({row['participant'] for row in own})})"
            lanes += [{"group": people if data.cluster else ""} | row for row in in_lanes(own, "participant")]
    most, average = run["peak_parallelism"], three_digits(run["mean_parallelism"])
    parallel = "one at a time" if most == 1 else f"{average} at a time on average, {most:,} at most"
    return Lanes(
        f"Makespan {seconds(run['makespan_s'])} for {counted(run['participants'], 'participant')}, {parallel}",
        rows,
        f"Run {run['run']}; failed attempts, and participants not selected now, are left out. Jobs in one lane ran one"
        " after the other.",
        (Spans("participant", PHASE_COLOURS),),
        "Time since the first start",
        lanes=lanes,
    )


def nodes(data: ReportData) -> Chart:
    """How long participants of the last run took on each node."""
    if not data.cluster:
        return Chart("the last run was on one machine")
    known = sorted((job for job in data.last_jobs if job["node"]), key=lambda job: str(job["node"]))
    nodes = grouped((job["node"], job) for job in known)
    medians_s = {node: statistics.median(job["wall_s"] for job in jobs) for node, jobs in nodes.items()}
    says = "It is not known which participant ran on which node"
    if len(data.nodes) == 1:
        says = f"All participants ran on one node, {data.nodes[0]}"
    elif medians_s:
        *_, slow = fast, *_ = sorted((median_s, node) for node, median_s in medians_s.items())
        ends = " to ".join(f"{seconds(median_s)} on {node}" for median_s, node in (fast, slow))
        says = f"The median participant took {ends}"
    rows = [
        {
            "node": node,
            "participant": job["participant"],
            "wall_s": job["wall_s"],
            "lane": f"{node} ({len(jobs)})",
            "text": seconds(medians_s[node]),
        }
        for node, jobs in nodes.items()
        for job in jobs
    ]
    note = f"Participants that succeeded. {BOX.format('participants', '')}"
    box = Box("wall_s", "participant")
    return Lanes(says, rows, note, (box,), "Wall time of a participant")


def brain_volume(data: ReportData) -> Chart:
    """How brain volumes are distributed at each site."""
    group = [row | {"brain_volume_cm3": row["brain_volume_mm3"] * CM3_PER_MM3} for row in data["group"]]
    if not group:
        return Chart("no brain mask was made")
    own = "the dataset itself" if any(row["site"] for row in group) else "all images"
    sites = grouped((row["site"] or own, row) for row in sorted(group, key=lambda row: row["site"] or ""))
    rows = [
        {
            **{name: row[name] for name in ("site", "image", "brain_volume_cm3", "robust_z", "outlier")},
            "to_be_seen": doubts(row) or None,
            "lane": f"{site} ({len(own):,})",
            "text": text,
        }
        for site, own in sites.items()
        for text in [cm3(statistics.median(row["brain_volume_mm3"] for row in own))]
        for row in own
    ]
    volumes = [row["brain_volume_cm3"] for row in group]
    says = f"Brain volume of the one image is {number(volumes[0])} cm³"
    if len(volumes) > 1:
        spread = f"{number(statistics.fmean(volumes))} ± {number(statistics.stdev(volumes))} cm³"
        says = f"Brain volume is {spread} (mean ± SD of {counted(len(volumes), 'image')})"
        says += f"; {counted(sum(map(bool, map(doubts, group))), 'mask')} to be looked at"
    note = BOX.format("images", "; large and orange: outliers, and volumes that no adult has")
    return Lanes(says, rows, note, (Box("brain_volume_cm3", "image", "to_be_seen"),), "Brain volume", "cm³")
