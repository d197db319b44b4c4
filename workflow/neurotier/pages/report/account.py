"""The figure ``account``: wall time per participant by its causes, and where it went by phase."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path

import numpy as np

from neurotier.core.parallelism import PHASES
from neurotier.core.quantities import counted, percent, seconds, share_of, shorten
from neurotier.core.spread import Spread
from neurotier.core.tables import Row
from neurotier.meter.usage import LABELS
from neurotier.pages.kit import plot
from neurotier.pages.kit.causes import MEMORY_STALL, UNEXPLAINED, Causes, sum_causes, why_no_account
from neurotier.pages.kit.chart import GREY, WIDTH_IN
from neurotier.pages.kit.findings import Finding
from neurotier.pages.kit.lanes import Lane, Panel, legend_above
from neurotier.pages.kit.spread import quartiles
from neurotier.pages.kit.stacks import Bar, Kind, draw_bars, edges
from neurotier.pages.kit.style import CAUSE_COLOURS, DRAWN_SINGLY, READABLE_LANES, write_figure
from neurotier.pages.report.data import Tables
from neurotier.pages.report.times import NONE_FINISHED, ParticipantTime, present_phases

BAR_IN = 0.22
RANKED_IN = 3.4
LONGEST_NAME = 60
"""Letters of a participant's name in a title."""

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

    Participants without an account of their waits are left out.
    """
    known = accounted(tables)
    left_out = len(tables.times) - len(known)
    write_figure(stem, finding(tables), table(known), lambda: figure_of(known), note(known, left_out))


def figure_of(times: Sequence[ParticipantTime]) -> plot.Figure:
    """A bar of each participant, or ranked areas of more than 40; below them, the sums by phase."""
    whole = causes_of(times)
    shown = [cause for cause in LABELS if cause != MEMORY_STALL or whole.memory_known or whole.parts[cause]]
    kinds = [Kind(LABELS[cause], CAUSE_COLOURS[cause], cause == UNEXPLAINED) for cause in shown]

    def bar(causes: Causes, text: str = "") -> Bar:
        return Bar([Spread((causes.seconds_of(cause),)) for cause in shown], text)

    by_phase = {phase: causes_of(times, [phase]) for phase in present_phases(times)}
    many = len(times) > READABLE_LANES
    heights = [RANKED_IN if many else BAR_IN * len(times) + 0.7, BAR_IN * len(by_phase) + 0.7]
    figure = plot.Figure(figsize=(WIDTH_IN, sum(heights) + 1.1))
    above, below = figure.subplots(2, 1, height_ratios=heights)
    if many:
        draw_ranked(above, times, [bar(causes_of([time])) for time in times], kinds)
    else:
        lanes = [Lane(time.participant, bar(causes_of([time]), seconds(time.wall_s))) for time in times]
        draw_bars(above, Panel("", tuple(lanes)), kinds)
        above.set_xlabel("Time per participant (s); beside the bar: wall time")
    handles = [plot.Patch(label=kind.label, **kind.filling) for kind in kinds]
    legend_above(above, handles)
    lanes = []
    for phase, causes in by_phase.items():
        share = percent(share_of(causes.wall_s, whole.wall_s))
        lanes.append(Lane(phase, bar(causes, f"{share} ({seconds(causes.wall_s)})")))
    draw_bars(below, Panel("", tuple(lanes)), kinds)
    below.set_xlabel("Sum over participants, by phase (s); beside the bar: share of all wall time")
    return figure


def draw_ranked(axes: plot.Axes, times: Sequence[ParticipantTime], bars: Sequence[Bar], kinds: Sequence[Kind]) -> None:
    """All participants, slowest first, as stacked areas; quartiles as lines. Of very many, areas are pixels."""
    count, bounds = len(bars), edges(bars)
    # one step per participant: areas between ranks would show times that nobody had
    rank, steps = np.arange(count + 1), np.column_stack([bounds, bounds[:, -1]])
    for kind, low, high in zip(kinds, steps, steps[1:], strict=False):
        axes.fill_between(rank, low, high, step="post", rasterized=count > DRAWN_SINGLY, **kind.filling)
    top = 1.08 * float(bounds[-1].max()) or 1
    axes.set(xlim=(0, count), ylim=(0, top), ylabel="Time per participant (s)")
    axes.set_xlabel(f"{counted(count, 'participant')}, ranked by wall time, slowest first")
    axes.grid(visible=False, axis="x")
    axes.yaxis.set_major_formatter(plot.StrMethodFormatter("{x:,.10g}"))
    axes.xaxis.set_major_locator(plot.MaxNLocator(integer=True, steps=[1, 2, 5, 10]))
    labels = ("fastest quarter below", "median", "slowest quarter above")
    for label, place, quartile_s in zip(
        labels, (0.75, 0.5, 0.25), quartiles([time.wall_s for time in times]), strict=True
    ):
        axes.vlines(place * count, 0, top, color=GREY, linewidth=0.8, linestyle=(0, (4, 3)))
        text = f"{label}\n{seconds(quartile_s)}"
        axes.annotate(text, (place * count, top), (4, -2), textcoords="offset points", va="top", fontsize=8)


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
    return text


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
