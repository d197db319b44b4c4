"""What an advice rests on, in sentences: who was analysed first, what that showed, and what is supposed."""

from __future__ import annotations

import statistics
from collections.abc import Sequence

from neurotier.advice.calibration import size_of
from neurotier.advice.predict import Known
from neurotier.advice.scaling import FEW, costs_of, scatter
from neurotier.advice.situation import Situation
from neurotier.core.quantities import counted, percent, seconds, size

SHOWN = 3
MUCH = 0.2
"""So many busy processes of others are said."""


def basis(situation: Situation, known: Known, chosen: Sequence[str]) -> list[str]:
    """Sentences without full stops."""
    sizes = [size_of(images) for images in situation.people.values()]
    done = len(situation.people) - len(situation.left)
    lines = [
        f"{counted(len(situation.left), 'participant')} to analyse"
        + (f", {done} of {len(situation.people)} done" if done else "")
        + f"; a participant's images have {size(statistics.median(sizes))} (median)",
        calibrated(situation, known, chosen),
        launching(known),
    ]
    to_fetch = 0 if situation.settings.campaign.placements else sum(one.to_fetch_bytes for one in known.participants)
    fetching_s = situation.launch.fetch_s_per_byte * to_fetch
    if to_fetch and not fetching_s:
        lines.append(f"{size(to_fetch)} of images are to be fetched; how long that takes is not known, and left out")
    elif to_fetch:
        lines.append(f"{size(to_fetch)} of images are to be fetched as jobs need them, {seconds(fetching_s)} in all")
    if known.processors.others >= MUCH:
        lines.append(
            f"Others kept {known.processors.others:.1f} processors busy meanwhile; supposed is that they go on"
            " (the interval: from none to twice as much)"
        )
    return lines


def calibrated(situation: Situation, known: Known, chosen: Sequence[str]) -> str:
    """Which records tell, and how well."""
    named = situation.settings.advice.calibration
    if named:
        where = f"{counted(len(known.seen), 'record')} of {named}"
    elif len(known.seen) > len(chosen):
        where = f"{counted(len(known.seen), 'participant')} already analysed"
    else:
        who = [f"{name} ({size(size_of(situation.people[name]))})" for name in chosen[:SHOWN]]
        where = " and ".join(who) + (f" and {len(chosen) - SHOWN} more" if len(chosen) > SHOWN else "")
    costs = costs_of(known.seen)
    cpu = costs["compute"]["cpu_s"]
    text = f"CPU time and bytes by {where}: compute takes {seconds(cpu.base)} and {seconds(cpu.per_byte * 1e6)} per MB"
    if len(known.seen) < FEW:
        return f"{text}, which so few records hardly tell apart (the interval tries both alone)"
    return f"{text}, to {percent(scatter(known.seen, costs))}"


def launching(known: Known) -> str:
    """What passes between two jobs."""
    launch = known.launch
    if launch.gap_s is None:
        return "What passes between two jobs is not known: no record tells, and it is left out"
    text = f"Between two jobs of a slot {seconds(launch.gap_s)} pass (median of {len(known.gaps_s)})"
    if launch.get_cpu_s is None:
        return text
    return f"{text}; the job before it that sees to the images takes {seconds(launch.get_cpu_s)} of CPU time"
