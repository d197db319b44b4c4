"""The figure ``account``: wall time per participant by its causes, and where it went by phase."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path

from neurotier.core.parallelism import PHASES
from neurotier.core.quantities import counted, percent, share_of, shorten
from neurotier.core.tables import Row
from neurotier.meter.usage import LABELS
from neurotier.pages.kit import plot
from neurotier.pages.kit.causes import MEMORY_STALL, UNEXPLAINED, Causes, sum_causes, why_no_account
from neurotier.pages.kit.findings import Finding
from neurotier.pages.kit.stacks import Kind
from neurotier.pages.kit.style import CAUSE_COLOURS, write_figure
from neurotier.pages.report.data import Tables
from neurotier.pages.report.stacks import Stack, draw_stacks, note_on_tenths
from neurotier.pages.report.times import (
    LONGEST_NAME,
    NONE_FINISHED,
    ParticipantTime,
    present_phases,
)

NOTED_SHARE, NOTED_CAUSES = 0.005, 3
"""The title names so many causes after the largest, none below this share of the wall time."""

MADE = {
    "exact": "exact (one thread active at a time)",
    "scaled": "scaled (several threads at once: their seconds divide the time in which any was active)",
    "sampled": "sampled",
}
"""How an account was made, in words."""

ROUNDING_S = 1e-3
"""By so much, causes may exceed wall time without a word: the account's clocks differ by less."""


def accounted(tables: Tables) -> list[ParticipantTime]:
    """Participant jobs with an account of the wall time of at least one phase, slowest first."""
    return [time for time in tables.times if time.accounted]


def causes_of(times: Sequence[ParticipantTime], phases: Sequence[str] = PHASES) -> Causes:
    """The sums of some phases of some jobs."""
    return sum_causes(time.phases[phase] for time in times for phase in phases if phase in time.phases)


def finding(tables: Tables) -> Finding:
    """The causes that took most of the wall time of all who have an account, largest first."""
    if not tables.profile:
        return Finding(NONE_FINISHED, shown=False)
    known = accounted(tables)
    if not known:
        return Finding(f"Where the time went is not known: {why_no_account(tables.profile)}", shown=False)
    causes = causes_of(known)
    whom = shorten(known[0].participant, LONGEST_NAME) if len(known) == 1 else counted(len(known), "participant")
    if causes.wall_s <= 0:
        return Finding(f"No time was measured for {whom}")
    (first, most), *others = causes.ranked
    text = f"{causes.about}{percent(most)} of the time of {whom} {first}"
    more = [f"{percent(share)} {name}" for name, share in others if share >= NOTED_SHARE][:NOTED_CAUSES]
    return Finding(", ".join([text[:1].upper() + text[1:], *more]))


def draw(tables: Tables, stem: Path) -> None:
    """Draw the wall time of every participant by cause, of whichever run; write SVG, PNG and TSV.

    Up to 40 participants get a bar each; more are ranked into one filled profile with the quartiles marked. More than
    200 are drawn as tenths, and the slowest 50 one by one.
    Participants without an account of their waits are left out.
    """
    known = accounted(tables)
    left_out = len(tables.times) - len(known)
    write_figure(stem, finding(tables), table(known), lambda: figure_of(known), note(known, left_out))


def figure_of(times: Sequence[ParticipantTime]) -> plot.Figure:
    """The figure of at least one participant."""
    whole = causes_of(times)
    shown = [cause for cause in LABELS if cause != MEMORY_STALL or whole.memory_known or whole.parts[cause]]
    kinds = [Kind(LABELS[cause], CAUSE_COLOURS[cause], cause == UNEXPLAINED) for cause in shown]

    def stack(name: str, causes: Causes) -> Stack:
        return Stack(name, causes.wall_s, [causes.seconds_of(cause) for cause in shown])

    participants = (stack(time.participant, causes_of([time])) for time in times)
    phases = [stack(phase, causes_of(times, [phase])) for phase in present_phases(times)]
    return draw_stacks(list(participants), phases, kinds)


def note(times: Sequence[ParticipantTime], left_out: int) -> str:
    """How the accounts were made, and what they leave open; ``left_out`` more have none."""
    whole = causes_of(times)
    text = f"Account: {'; '.join(words for kind, words in MADE.items() if kind in whole.made)}."
    if whole.seen_share is not None:
        text += f" Of the CPU time of what was sampled, {percent(whole.seen_share)} belongs to threads that were seen."
    if not whole.memory_known:
        text += " Where being short of memory is not known, it is part of asleep."
    text += f" Asleep: network, locks or timers. Unexplained: {percent(whole.share_of(UNEXPLAINED))} of wall time"
    if whole.unaccounted_s:
        text += f" ({percent(share_of(whole.unaccounted_s, whole.wall_s))} in phases without an account)"
    text += "."
    below_zero = sum(causes_of([time]).unexplained_s < -ROUNDING_S for time in times)
    if below_zero:
        text += f" For {counted(below_zero, 'participant')} the causes exceed wall time; that is not drawn."
    if left_out:
        text += f" {counted(left_out, 'participant')} without an account {'is' if left_out == 1 else 'are'} left out."
    return text + note_on_tenths(len(times))


def table(times: Sequence[ParticipantTime]) -> Iterator[Row]:
    """The numbers behind the figure: one row per participant, slowest first, unclipped."""
    columns = {"": PHASES, **{f"{phase}_": (phase,) for phase in present_phases(times)}}
    for time in times:
        row: Row = {"participant": time.participant, "run": time.run}
        for prefix, phases in columns.items():
            causes = causes_of([time], phases)
            row[f"{prefix}wall_s"] = causes.wall_s
            row |= {f"{prefix}{cause}": causes.seconds_of(cause) for cause in LABELS}
        yield row
