"""The verdicts on results and on times, each in a headline and a few lines, before any figure."""

from __future__ import annotations

import statistics
from collections.abc import Sequence

from markupsafe import Markup

from neurotier.core.quantities import clock, counted, seconds, three_digits
from neurotier.core.tables import Row
from neurotier.dataset.source import missed
from neurotier.pages.kit.causes import BLOCK_IO, CPU, RUN_QUEUE
from neurotier.pages.kit.page import BAD, GOOD, OPEN, Verdict
from neurotier.pages.report.data import ReportData, accounted
from neurotier.run.profile_tables import timings


def verdicts(data: ReportData) -> list[Verdict]:
    """The verdicts on results and on times."""
    return [judge_results(data), judge_timings(data)]


def judge_results(data: ReportData) -> Verdict:
    """What has been made, whatever the times are worth; good if every site was reached and everyone is done."""
    total = len(data.selected)
    parts = [f"{len(data.done):,} of {counted(total, 'participant')} done"]
    parts += [
        f"{len(people):,} {state}" for state, people in (("failed", data.failed), ("not run", data.not_run)) if people
    ]
    parts += [f"{counted(len(data['skipped']), 'item')} of the dataset skipped"] if data["skipped"] else []
    parts += [counted(len(data["group"]), "brain mask")] if data["group"] else []
    counts = ", ".join(parts) if total else "no participant is known, the dataset has not been indexed"
    unreachable = missed(data.dataset["unreachable"] or {}, data.settings.dataset.participants)
    lines = [f"{path} could not be reached, and is not part of this: {why}." for path, why in unreachable.items()]
    good = total and len(data.done) == total and not unreachable
    return Verdict(f"Results: {counts}", GOOD if good else BAD, more=lines)


def judge_timings(data: ReportData) -> Verdict:
    """What the times of the last run are worth, and what must be known about them."""
    run = data.last_run
    if run is None:
        return Verdict("Timings: none; no run has finished a participant job", OPEN)
    lines = [time_line(data.last_jobs)] if data.last_jobs else []
    lines += [numbers(run, data)] if run["makespan_s"] is not None else []
    started = data.facts["run"] or run["run"]
    if started != run["run"]:
        lines.append(
            f"The run started last, {started}, finished no participant job; the times are those of {run['run']}."
        )
    if run["oversubscribed"]:
        machine = counted(data.facts["cpus"], "CPU") if data.facts["cpus"] else "fewer CPUs"
        crowd = f"{run['cores']} cores were asked for, the machine has {machine}"
        if data.cluster:
            crowd = "jobs were granted fewer CPUs than the participants take that they analyse at once"
        lines.append(f"Oversubscribed: {crowd}.")
    if run["limited_by"]:
        lines.append(f"Fewer than the {run['parallelism']} jobs that the cores had room for: {run['limited_by']}.")
    if earlier := len(data.jobs) - len(data.last_jobs):
        lines.append(
            f"Resumed: {counted(earlier, 'participant')} of earlier runs {'is' if earlier == 1 else 'are'} part of"
            " these results; makespan and parallelism are those of the last run alone."
        )
    if again := len({row["share"] for row in data.cluster if row["attempt"] > 1}):
        lines.append(f"{counted(again, 'job')} had to be started again (see Jobs of the cluster).")
    return Verdict(f"Timings: {timings(run['valid'])}", OPEN, more=lines)


SPENT = {"computing": CPU, "waiting for a core": (RUN_QUEUE,), "waiting for storage": (BLOCK_IO,)}
"""What the time of a participant is said to have gone to: causes of the account."""


def time_line(jobs: Sequence[Row]) -> str:
    """What the time of a participant went to: medians over some of them, of what is known."""
    jobs, parts = accounted(jobs) or jobs, []
    for name, causes in SPENT.items():
        if known := [sum(job[cause] for cause in causes) for job in jobs if job[causes[0]] is not None]:
            parts.append(f"{seconds(statistics.median(known))} {name}")
    said = ", ".join(parts) or f"{seconds(statistics.median(job['cpu_s'] for job in jobs))} of CPU time"
    wall = seconds(statistics.median(job["wall_s"] for job in jobs))
    link = Markup(' <a href="#account">Where the time went</a>.') if parts else ""
    return Markup("A participant took {} (medians): {}.{}").format(wall, said, link)


def numbers(run: Row, data: ReportData) -> str:
    """How long the last run took, and how many ran at a time."""
    text = f"Makespan {seconds(run['makespan_s'])}"
    if span := clock(run["makespan_s"]):
        text += f" ({span})"
    if run["flushed_s"] is not None and (flushed := seconds(run["flushed_s"])) != seconds(run["makespan_s"]):
        text += f", on its device after {flushed}"
    room = f" of {counted(run['cores'], 'core')}" if run["cores"] and not data.cluster else ""
    text += f"; {three_digits(run['mean_parallelism'])} at a time on average{room}"
    return f"{text}, {run['peak_parallelism']:,} at most."
