"""What advice rests on, in sentences: who was analysed first, what that showed, and what is assumed."""

from __future__ import annotations

import math
import statistics
from collections.abc import Sequence
from pathlib import Path

from neurotier.advice.calibration import size_of
from neurotier.advice.predict import MODEL_ERROR, UNEVENNESS, Inputs
from neurotier.advice.scaling import FEW, costs_of, scatter
from neurotier.advice.situation import Situation
from neurotier.core.kinds import is_in_memory
from neurotier.core.quantities import counted, percent, seconds, size
from neurotier.model.this_machine import tier_speed

SHOWN = 3
BUSY_SHOWN = 0.2
"""Busy processes of others from which on the page mentions them."""


def basis(situation: Situation, inputs: Inputs, chosen: Sequence[str], parallelism: Sequence[int]) -> list[str]:
    """The sentences, without full stops."""
    sizes = [size_of(images) for images in situation.participants.values()]
    done = len(situation.participants) - len(situation.remaining)
    lines = [
        f"{counted(len(situation.remaining), 'participant')} to analyse"
        + (f", {done} of {len(situation.participants)} done" if done else "")
        + f"; a participant's images have {size(statistics.median(sizes))} (median)",
        calibrated(situation, inputs, chosen),
        *(on_one_node(table) for table in situation.checks),
        *([] if situation.checks else [between_jobs(inputs), *spawning(inputs)]),
        *(shared_jobs(inputs) if not situation.checks and situation.shares_jobs(parallelism) else []),
        *copying_beside(situation),
        *tiers_by_their_probes(inputs),
        *cold_programs(inputs),
    ]
    to_fetch = 0 if situation.settings.campaign.placements else sum(one.to_fetch_bytes for one in inputs.participants)
    fetching_s = situation.job_start.fetch_s_per_byte * to_fetch
    if to_fetch and not fetching_s:
        lines.append(f"{size(to_fetch)} of images are to be fetched; how long that takes is not known and not included")
    elif to_fetch:
        at_once = situation.job_start.fetches_at_once
        how = f"while others are analysed, {at_once} at once" if at_once else "before the jobs that need them"
        lines.append(f"{size(to_fetch)} of images are to be fetched {how}, {seconds(fetching_s)} one after the other")
    return [*lines, *others_meanwhile(inputs, situation.settings.validity.others_cpu_share), *assumed(inputs)]


def others_meanwhile(inputs: Inputs, most: float) -> list[str]:
    """What others took during the calibration, and whether that is more than they may take."""
    share, busy = inputs.others_cpu_share, inputs.processors.others
    if share is None:
        return ["What others took of the processors during the calibration is not known, and taken for nothing"]
    lines = []
    if share > most:
        said = f"The calibration was disturbed: others took {percent(share)} of the processors' time"
        lines.append(f"{said}; ask again on a quiet machine" + (" (--forcerun rehearse)" if inputs.rehearsed else ""))
    if busy >= BUSY_SHOWN:
        until = "they are assumed to go on (the interval: from none to twice as much)"
        lines.append(f"Others had {busy:.1f} busy processes during the calibration; {until}")
    return lines


def assumed(inputs: Inputs) -> list[str]:
    """What is assumed where nothing was measured on this machine, and how wide the interval is for it."""
    lines = []
    networks = [name for name, probe in inputs.probes.items() if probe.usual.kind == "network"]
    if networks:
        lines.append(
            f"The page cache may drop what a job has written to {listed(networks)}: half is assumed to be read back"
            " (the interval: from none to all)"
        )
    if inputs.job_start.get_each:
        each = percent(inputs.job_start.get_each)
        lines.append(
            f"Of the CPU time of fetching, {each} is assumed to be each participant's, the rest that of a job's start"
            " (the interval: from none to all)"
        )
    uneven = f"Streams of a tier are assumed to differ by {percent(UNEVENNESS)}; published devices have shown 2 to 20 %"
    error = f"Intervals hold that the model was off by {percent(math.exp(MODEL_ERROR) - 1)} (standard deviation)"
    return [*lines, uneven, f"{error} on published conditions that it had not seen"]


def shared_jobs(inputs: Inputs) -> list[str]:
    """What a job of several participants takes beside them."""
    tried = inputs.rehearsed
    if tried is None:
        return ["What participants take that share a job was not tried: Python's start is counted once for all of them"]
    cpu_s = statistics.fmean(job.cpu_s for job in tried.observed)
    first = f"it takes {seconds(tried.launch_s)} of CPU time to begin the first, each of them takes {seconds(cpu_s)}"
    last = f"and it ends {seconds(tried.closing_s)} after the last"
    return [f"Participants share jobs: by one that was tried, {first}, {last}"]


def copying_beside(situation: Situation) -> list[str]:
    """That participants copy while others compute, which is predicted as the key says it."""
    beside = situation.batches.staging_beside
    if not beside:
        return []
    more = f"Beside those of a job that compute, up to {beside} more copy images in or results out"
    return [f"{more} (batches.staging_beside), as far as they share a job; in the calibration nobody did"]


def spawning(inputs: Inputs) -> list[str]:
    """How long Snakemake takes to start one more job."""
    spawn_s = inputs.job_start.spawn_s
    return (
        [f"Snakemake takes {seconds(spawn_s)} of CPU time to start a job, as between the first two"] if spawn_s else []
    )


def tiers_by_their_probes(inputs: Inputs) -> list[str]:
    """What the tiers give when they read and write at once, and how long small requests take; nothing of memory."""
    probed = {name: probe.usual for name, probe in inputs.probes.items() if not is_in_memory(probe.usual.kind)}
    if not probed:
        return []
    both = [f"{name} {tier_speed(tier, max(tier.mixed_bytes_per_s)).mixed:.2f}" for name, tier in probed.items()]
    small = [f"{name} {1000 * tier.random_read_s:.2g} ms" for name, tier in probed.items()]
    at_once = f"By the probes, reading and writing at once gives {listed(both)} times what one of them gives alone"
    return [f"{at_once}, and a small request takes {listed(small)}"]


def cold_programs(inputs: Inputs) -> list[str]:
    """What loading programs takes in a cold run, if there is to be one."""
    if inputs.load_s is None:
        return []
    if inputs.load_unknown_because:
        return [f"What a cold job loads of programs is not known and not included: {inputs.load_unknown_because}"]
    load_s = sum(inputs.load_s.values())
    if not load_s:
        return ["Programs are in the page cache in cold runs, too, since only root may drop all of it"]
    return [f"The first jobs of a cold run wait {seconds(load_s)} for their programs, as one did that was tried"]


def listed(words: Sequence[str]) -> str:
    """Words as in a sentence.

    >>> listed(["a"]), listed(["a", "b", "c"])
    ('a', 'a, b and c')
    """
    return " and ".join(filter(None, [", ".join(words[:-1]), words[-1]]))


def calibrated(situation: Situation, inputs: Inputs, chosen: Sequence[str]) -> str:
    """Which records the costs come from, and how well they determine them."""
    named = situation.settings.advice.calibration
    if named:
        where = f"{counted(len(inputs.observed), 'record')} of {named}"
    elif len(inputs.observed) > len(chosen):
        where = f"{counted(len(inputs.observed), 'participant')} already analysed"
    else:
        who = [f"{name} ({size(size_of(situation.participants[name]))})" for name in chosen[:SHOWN]]
        where = " and ".join(who) + (f" and {len(chosen) - SHOWN} more" if len(chosen) > SHOWN else "")
    costs = costs_of(inputs.observed)
    cpu = costs["compute"]["cpu_s"]
    text = f"CPU time and bytes by {where}: compute takes {seconds(cpu.base)} and {seconds(cpu.per_byte * 1e6)} per MB"
    if len(inputs.observed) < FEW:
        return f"{text}, which so few records hardly separate (the interval tries each of them alone)"
    return f"{text}, to {percent(scatter(inputs.observed, costs))}"


def on_one_node(table: Path) -> str:
    """What a prediction for a cluster means."""
    return (
        f"Predicted for one node of class {table.stem} that analyses everyone, with what one job has of it; more nodes"
        " are faster while the tiers that they share keep up, and waiting in the queue is not included"
    )


def between_jobs(inputs: Inputs) -> str:
    """The time between two jobs."""
    job_start = inputs.job_start
    if job_start.gap_s is None:
        return "The time between two jobs is not known, since no record has it, and is not included"
    text = f"Between two jobs of a slot, {seconds(job_start.gap_s)} pass (median of {len(inputs.gaps_s)})"
    if job_start.get_cpu_s is None:
        return text
    return f"{text}; the job that fetches the images takes {seconds(job_start.get_cpu_s)} of CPU time"
