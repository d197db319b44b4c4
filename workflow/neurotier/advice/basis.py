"""What an advice is based on, in sentences: which participants were analysed first, what that showed, and what is
unknown."""

from __future__ import annotations

import socket
import statistics
from collections.abc import Sequence

from neurotier.advice.calibration import costs_of, scatter, ways_of
from neurotier.advice.placements import candidates
from neurotier.advice.predict import Inputs
from neurotier.advice.situation import Situation
from neurotier.core.quantities import counted, first_of, percent, seconds, size

BUSY_SHOWN = 0.2
"""The page mentions the busy processes of others if there are at least this many."""


def basis(situation: Situation, inputs: Inputs, chosen: Sequence[str]) -> list[str]:
    """The sentences, without full stops."""
    done = len(situation.participants) - len(situation.remaining)
    return [
        (
            f"{counted(len(situation.remaining), 'participant')} to analyse"
            f"{f', {done} of {len(situation.participants)} done' if done else ''}"
            f"; a participant's images have {size(statistics.median(situation.sizes.values()))} (median)"
        ),
        calibrated(situation, inputs, chosen),
        *other_hosts(inputs, bool(situation.checks)),
        *(
            f"Predicted for one node of class {table.stem} that analyses everyone, with what one job has of it, and"
            f" the room that {socket.gethostname()} has; more nodes, and waiting in the queue, are not predicted"
            for table in situation.checks
        ),
        *(shared_jobs(inputs) if not situation.checks and len(situation.remaining) > 1 else []),
        *passed_over(situation, inputs),
        *cold_programs(inputs),
        *fetching(situation, inputs),
        *others_during_calibration(inputs, situation.settings.validity.others_cpu_share, situation.plan.threads),
    ]


def other_hosts(inputs: Inputs, on_cluster: bool) -> list[str]:
    """A sentence if the records are of another machine or, on a cluster, which machines they are of: the classes of
    these are unknown."""
    hosts = sorted({job.host for job in inputs.observed} - {"" if on_cluster else socket.gethostname(), ""})
    classes = "if nodes of this class have other processors, name results of theirs as advice.calibration"
    not_here = f"; {classes}" if on_cluster else ", not of this machine"
    return [f"Their times are those of {first_of(hosts)}{not_here}"] if hosts else []


def calibrated(situation: Situation, inputs: Inputs, chosen: Sequence[str]) -> str:
    """Which records the costs come from, and how well these determine the costs."""
    named = situation.settings.advice.calibration
    if named:
        where = f"{counted(len(inputs.observed), 'record')} of {named}"
    elif len(inputs.observed) > len(chosen):
        where = f"{counted(len(inputs.observed), 'participant')} already analysed"
    else:
        where = first_of([f"{name} ({size(situation.sizes[name])})" for name in chosen])
    if any(job.was_disturbed for job in inputs.observed):
        where += ", of runs that others disturbed"
    costs = costs_of(inputs.observed)
    cpu = costs["compute"]["cpu_s"]
    text = (
        f"CPU time and bytes by {where}: compute takes {seconds(cpu.base)}"
        f"{'' if situation.settings.is_app else ' an image'} and {seconds(cpu.per_byte * 1e6)} per MB"
    )
    if len(ways_of(inputs.observed)) > 1:
        return f"{text}, which these records hardly separate (the interval tries each of them alone)"
    return f"{text}, to {percent(scatter(inputs.observed, costs))}"


def shared_jobs(inputs: Inputs) -> list[str]:
    """The CPU time of each participant if several share a job."""
    if not inputs.rehearsed:
        return ["Participants that share a job were not tried: Python's start is counted once for all of them"]
    cpu_s = statistics.fmean(job.cpu_s for job in inputs.rehearsed)
    return [f"Participants share jobs: in one that was tried, each took {seconds(cpu_s)} of CPU time"]


def passed_over(situation: Situation, inputs: Inputs) -> list[str]:
    """Tiers that exist but were too full to be probed."""
    tiers = [one["work"] for one in candidates(situation.settings, situation.checks).values()]
    full = [f"tier {name}" for name in tiers if name not in inputs.probes]
    return [f"Not judged, since the smallest probe has no room there: {', '.join(full)}"] if full else []


def cold_programs(inputs: Inputs) -> list[str]:
    """How long programs take to load in a cold run, if one is planned."""
    if inputs.load_s is None:
        return []
    if inputs.load_unknown_because:
        return [f"What a cold job loads of programs is not known and not included: {inputs.load_unknown_because}"]
    load_s = sum(inputs.load_s.values())
    if not load_s:
        return ["Programs are in the page cache in cold runs, too, since only root may drop all of it"]
    return [f"The first jobs of a cold run wait {seconds(load_s)} for their programs, as one did that was tried"]


def fetching(situation: Situation, inputs: Inputs) -> list[str]:
    """What is still to be fetched, and how long that takes; empty for a campaign, which fetches before its runs."""
    to_fetch = 0 if situation.settings.is_campaign else sum(one.to_fetch_bytes for one in inputs.participants)
    if not to_fetch:
        return []
    fetching_s = inputs.fetching.s_per_byte * to_fetch
    if not fetching_s:
        return [f"{size(to_fetch)} of images are to be fetched; how long that takes is not known and not included"]
    how = f"while others are analysed, {inputs.fetching.at_once} at once"
    return [f"{size(to_fetch)} of images are to be fetched {how}, {seconds(fetching_s)} one after the other"]


def others_during_calibration(inputs: Inputs, most: float, threads: int) -> list[str]:
    """What other processes took during the calibration, and whether that exceeds ``most``; ``threads`` are those of a
    job."""
    share, busy = inputs.others_cpu_share, inputs.processors.others * threads
    if share is None:
        return ["How much of the processors others will take is not known; none is assumed"]
    lines = []
    if share > most:
        said = f"The calibration was disturbed: others took {percent(share)} of the processors' time"
        lines.append(f"{said}; ask again on a quiet machine" + (" (--forcerun rehearse)" if inputs.rehearsed else ""))
    if busy >= BUSY_SHOWN:
        until = "they are assumed to go on (the interval: from none to twice as much)"
        lines.append(f"Others had {busy:.1f} busy processes during the calibration; {until}")
    return lines
