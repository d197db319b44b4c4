"""The figure ``account``: wall time per participant by its causes, and where it went by phase."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from matplotlib.figure import Figure

from neurotier.core.quantities import counted, percent, share_of
from neurotier.core.tables import Row
from neurotier.meter.usage import LABELS
from neurotier.pages.kit.style import CAUSE_COLOURS, empty_figure, house_style, save_figure, state
from neurotier.pages.report.causes import MEMORY_STALL, UNEXPLAINED, Causes, sum_causes, why_no_account
from neurotier.pages.report.findings import (
    NO_ACCOUNT,
    NONE_FINISHED,
    PHASES,
    ParticipantTime,
    account_finding,
    accounted,
    participant_times,
    present_phases,
)
from neurotier.pages.report.stacks import Part, Stack, draw_stacks

MADE = {
    "exact": "exact (one thread active at a time)",
    "scaled": "scaled (several threads at once: their seconds divide the time in which any was active)",
    "sampled": "sampled",
}
"""How an account was made, in words."""

ROUNDING_S = 1e-3
"""By so much, causes may exceed wall time without a word: the account's clocks differ by less."""


def draw_account(profile: Sequence[Row], stem: Path) -> None:
    """Draw the wall time of every participant in ``profile.tsv`` by cause, of whichever run; write SVG, PNG and TSV.

    Up to 40 participants get a bar each; more are ranked into one filled profile with the quartiles marked.
    Participants without an account of their waits are left out.
    """
    times = participant_times(profile)
    known = accounted(times)
    with house_style():
        if known:
            figure = draw(known, len(times) - len(known))
        else:
            figure = empty_figure(f"{NO_ACCOUNT}:\n{why_no_account(profile)}" if times else NONE_FINISHED)
        save_figure(figure, stem, table(known))


def draw(times: Sequence[ParticipantTime], left_out: int) -> Figure:
    """The figure of at least one participant; ``left_out`` more have no account."""
    phases = present_phases(times)
    whole = sum_causes(row for time in times for row in time.phases.values())
    by_participant = [sum_causes(time.phases.values()) for time in times]
    by_phase = [sum_causes(time.phases[phase] for time in times if phase in time.phases) for phase in phases]
    shown = [cause for cause in LABELS if cause != MEMORY_STALL or whole.memory_known or whole.parts[cause]]
    figure = draw_stacks(
        stack([time.participant for time in times], by_participant, shown), stack(phases, by_phase, shown)
    )
    state(figure, account_finding(times), note(by_participant, whole, left_out))
    return figure


def stack(names: Sequence[str], sums: Sequence[Causes], shown: Sequence[str]) -> Stack:
    """One bar per sum, its parts the causes."""
    parts = [
        Part(LABELS[cause], CAUSE_COLOURS[cause], [each.seconds_of(cause) for each in sums], cause == UNEXPLAINED)
        for cause in shown
    ]
    return Stack(names, [each.wall_s for each in sums], parts)


def note(sums: Sequence[Causes], whole: Causes, left_out: int) -> str:
    """How the accounts were made, and what they leave open."""
    text = f"Account: {'; '.join(words for kind, words in MADE.items() if kind in whole.made)}."
    if whole.seen_share is not None:
        text += f" Of the CPU time of what was sampled, {percent(whole.seen_share)} belongs to threads that were seen."
    if not whole.memory_known:
        text += " Where being short of memory is not known, it is part of asleep."
    text += f" Asleep: network, locks or timers. Unexplained: {percent(whole.share_of(UNEXPLAINED))} of wall time"
    if whole.unaccounted_s:
        text += f" ({percent(share_of(whole.unaccounted_s, whole.wall_s))} in phases without an account)"
    text += "."
    below_zero = sum(each.unexplained_s < -ROUNDING_S for each in sums)
    if below_zero:
        text += f" For {counted(below_zero, 'participant')} the causes exceed wall time; that is not drawn."
    if left_out:
        text += f" {counted(left_out, 'participant')} without an account {'is' if left_out == 1 else 'are'} left out."
    return text


def table(times: Sequence[ParticipantTime]) -> list[Row]:
    """The numbers behind the figure: one row per participant, slowest first, unclipped."""
    phases = present_phases(times)
    rows = []
    for time in times:
        row: Row = {"participant": time.participant, "run": time.run}
        for prefix, members in (("", list(PHASES)), *((f"{phase}_", [phase]) for phase in phases)):
            causes = sum_causes(time.phases[phase] for phase in members if phase in time.phases)
            row[f"{prefix}wall_s"] = causes.wall_s
            row |= {f"{prefix}{cause}": causes.seconds_of(cause) for cause in LABELS}
        rows.append(row)
    return rows
