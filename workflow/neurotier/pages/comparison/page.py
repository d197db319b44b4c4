"""The page of the comparison: which placement is fastest, by how much, whether that is certain, and why.

In figures, a condition is drawn as a bar: the median over its repetitions, which are its valid runs.
"""

from __future__ import annotations

import statistics
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from neurotier import __version__
from neurotier.core.files import without
from neurotier.core.kinds import is_in_memory
from neurotier.core.places import Places
from neurotier.core.quantities import counted, percent, seconds, share_of, size
from neurotier.core.settings import ROLES, Settings
from neurotier.core.tables import Row, grouped
from neurotier.pages.comparison.verdict import (
    Comparison,
    causes_of,
    causes_text,
    counts_text,
    families,
    inputs_text,
    judge,
    run_key,
    sum_of,
    without_runs,
)
from neurotier.pages.kit.causes import CAUSES, CPU, PAPER_IO
from neurotier.pages.kit.chart import BLUE, ORANGE, PHASE_COLOURS, SKY, UNITS, VERMILION, Chart
from neurotier.pages.kit.findings import at_once, between, glossary, own_reference, spread_text
from neurotier.pages.kit.marks import Box, Kind, Lanes, Mark, Points, Stack
from neurotier.pages.kit.page import BAD, GOOD, OPEN, Figure, Page, Section, Verdict
from neurotier.run.compared import MEMORY, Condition, is_compared, missing_runs_text, read_comparison_tables
from neurotier.storage.spread import Spread, spread

NO_RUN = Chart("No valid run finished a participant job")
WHOLE = "whole"
MOST_PAIRS = 60
"""Pairs of placements that are drawn at most."""

PHASES = {phase: Kind(phase, colour) for phase, colour in PHASE_COLOURS.items()}
WAYS = {"read": Kind("read", SKY), "written": Kind("written", VERMILION)}

Parts = Mapping[str, Mapping[str, Spread | None]]
"""Spreads over the runs of a condition, by tier (empty for a condition as a whole), then by name of the part."""

Bars = Mapping[tuple[Condition, str], Mapping[str, Spread]]
"""The known parts of each bar by name; bars are by condition, and by tier if a condition has several bars."""


def in_panels(says: str, rows: Sequence[tuple[Condition, Row]], note: str, mark: Mark, x: str, **look: Any) -> Chart:
    """A chart of rows about conditions, in the panels to which these belong."""
    lanes = [
        {"panel": f"{family.origin}: {family.tool}, {inputs_text(family.cache)}", "group": at_once(family.parallelism)}
        | {"lane": member.placement}
        | row
        for family, members in families({condition for condition, _ in rows}).items()
        for member in members
        for condition, row in rows
        if condition == member
    ]
    table = [without(row, "lane") for _, row in rows]
    return Lanes(says, table, f"{note} Valid runs only.", (mark, Points("dots")), x, lanes=lanes, **look)


def bars_of(data: Comparison, parts_of: Callable[[Sequence[Row]], Parts]) -> Bars:
    """The bars of each condition, with the parts that ``parts_of`` gives for its runs."""
    found = {
        (condition, tier): {name: one for name, one in parts.items() if one}
        for condition, runs in data.conditions.items()
        for tier, parts in parts_of(runs).items()
    }
    return {key: parts for key, parts in found.items() if parts}


def spread_cells(name: str, unit: str, value: Spread | None) -> Row:
    """The median and range as cells ``<name>_median_<unit>`` and so on; empty if not known."""
    return {f"{name}_{kind}_{unit}": value and getattr(value, kind) for kind in ("median", "low", "high")}


def length(parts: Mapping[str, Spread], *names: str) -> float:
    """The drawn length of some parts of a bar together, by default all; negative parts are not drawn."""
    return sum(max(0.0, part.median) for name, part in parts.items() if not names or name in names)


def sums(says: str, bars: Bars, kinds: Mapping[str, Kind], note: str, unit: str = "s") -> Chart:
    """A chart of what the participant jobs of a run took together, by parts; parts that no bar has are left out."""
    present = [name for name in kinds if any(name in parts for parts in bars.values())]
    rows = []
    for (condition, tier), parts in bars.items():
        row = vars(condition) | ({"tier": tier, "lane": f"{condition.placement}: {tier}"} if tier else {})
        for name in present:
            row |= spread_cells(name, unit, parts.get(name))
        rows.append((condition, row | {"text": UNITS[unit].words(length(parts))}))
    note = f"Medians over repetitions of the sums over participant jobs. {note}"
    stack = Stack({f"{name}_median_{unit}": kinds[name] for name in present})
    return in_panels(says, rows, note, stack, "Sum over participant jobs", unit=unit)


def shares_text(bars: Bars, what: str, *names: str) -> str:
    """The share of some parts in the bars, in words."""
    shares = sorted(share_of(length(parts, *names), length(parts)) or 0.0 for parts in bars.values())
    return f"{what}: {between(map(percent, shares))} of the summed time"


def makespan(data: Comparison) -> Chart:
    """A bar per condition, a dot per repetition. As the published Figure 9."""
    times = {one: Spread.of(runs, "makespan_s") for one, runs in data.conditions.items()}
    if not times:
        return NO_RUN
    rows = []
    for one, time in times.items():
        cells = {"repetitions": len(time.values)} | spread_cells("makespan", "s", time)
        rows.append((one, vars(one) | cells | {"dots": [*time.values], "text": spread_text(time)}))
    fastest = min(times, key=lambda one: times[one].median)
    families_won = [family for family in judge(data) if family.sure and family.placements[0].condition == fastest]
    is_sure = {one.condition for family in families_won for one in family.placements} == times.keys()
    return in_panels(
        f"Makespan {'is shortest with' if len(times) > 1 else 'with'} {fastest}: {spread_text(times[fastest])}"
        + ("" if is_sure or len(times) == 1 else "; this is not sure"),
        rows,
        "Bar: median over repetitions; dot: a repetition; in brackets least, greatest and number.",
        Stack({"makespan_median_s": Kind("", SKY)}),
        "Makespan",
    )


def wall_time(data: Comparison) -> Chart:
    """Sums over all participant jobs of a run by cause, medians over repetitions; of runs without an account of their
    waits, such as published ones, CPU time and I/O as the paper counts it. As the published Figure 10.
    """
    bars = bars_of(data, lambda runs: {"": {cause: spread(runs, sum_of(cause)) for cause in causes_of(runs)}})
    if not bars:
        return NO_RUN
    return sums(
        shares_text(bars, "On a CPU", *CPU, "cpu_s"),
        bars,
        CAUSES | {"cpu_s": Kind("CPU time", BLUE), "io_s": Kind(PAPER_IO, ORANGE)},
        "The medians of the parts need not add up to that of the whole. System: copying from and to page cache, tmpfs"
        " and persistent memory is part of it. Asleep: network, locks or timers. I/O as the paper counts it contains"
        " waiting for a core; where CPU time exceeds wall time (several cores at once), it is below 0, and not drawn.",
    )


def differences(data: Comparison) -> Chart:
    """The same participant with two placements: how much longer the slower one took."""
    if not data.differences:
        none = Chart("No two placements ran the same participants under the same conditions")
        return none if data.conditions else NO_RUN
    largest = sorted(data.differences.items(), key=lambda item: -data.contrasts[item[0]].ratio)
    left = f" Of {len(largest):,} pairs of placements, the {MOST_PAIRS} that differ most are drawn."
    rows, said = [], []
    for (slower, faster), longer in largest[:MOST_PAIRS]:
        contrast, median_s = data.contrasts[slower, faster], statistics.median(longer.values())
        low, high = contrast.ends or (None, None)
        cells = {name: getattr(slower, name) for name in ("origin", "tool", "parallelism")} | {
            "slower": slower.placement,
            "slower_cache": slower.cache,
            "faster": faster.placement,
            "faster_cache": faster.cache,
            "median_s": median_s,
            "repetitions": contrast.repetitions,
            "ratio": contrast.ratio,
            "ratio_low": low,
            "ratio_high": high,
            "lane": f"{slower.placement} - {faster.placement}",
            "text": f"{seconds(median_s)}, {counted(len(longer), 'participant')}",
        }
        both = min(slower, faster, key=lambda condition: condition.cache == MEMORY)
        rows += [(both, cells | {"participant": name, "difference_s": value}) for name, value in longer.items()]
        said.append(
            f"The median participant took {seconds(median_s)} longer with {slower} than with {faster.placement}"
        )
    return in_panels(
        said[0],
        rows,
        "Mean wall time of each participant's job with the first placement minus that with the second, from runs on the"
        " same node if there are several. Box: quartiles; line: 5th to 95th percentile; dots: participants, if few;"
        " diamond: median. This shows how far participants agree, not how far whole runs do: for that, see the dots in"
        f" the figure of makespans.{left if len(largest) > MOST_PAIRS else ''}",
        Box("difference_s", "participant"),
        "Difference of wall time per participant",
        marked=0.0,
    )


def phases(data: Comparison) -> Chart:
    """Sums over all participant jobs of a run by phase, medians over repetitions."""
    sums_s = Counter[tuple[str, str, str]]()
    for row in data.participants:
        sums_s[*run_key(row), row["phase"]] += row["wall_s"]

    def parts_of(runs: Sequence[Row]) -> Parts:
        found = {phase: Spread(tuple(sums_s[*run_key(run), phase] for run in runs)) for phase in PHASES}
        return {"": {phase: one if one.high else None for phase, one in found.items()}}

    bars = bars_of(data, parts_of)
    if not bars:
        return NO_RUN
    of_phases = {key: parts for key, parts in bars.items() if WHOLE not in parts}
    says = shares_text(of_phases, "Phase compute", "compute") if of_phases else "Published logs have no phases"
    return sums(says, bars, PHASES, "For published jobs, only the time of the whole job is known.")


def tier_bytes(data: Comparison) -> Chart:
    """What is known to have been read from and written to each tier: D of the model."""
    flows = grouped((run_key(row), row) for row in data.traffic)

    def parts_of(runs: Sequence[Row]) -> Parts:
        tiers = grouped((row["tier"], row) for run in runs for row in flows.get(run_key(run), []))
        return {tier: {name: spread(tiers[tier], f"{name}_bytes") for name in WAYS} for tier in sorted(tiers)}

    bars = bars_of(data, parts_of)
    if not bars:
        return Chart("How many bytes the compared runs moved is not known") if data.conditions else NO_RUN
    (condition, tier), parts = max(bars.items(), key=lambda item: (length(item[1]), item[0]))
    says = f"At least {size(length(parts))} cross one tier, such as {tier} with {condition}"
    note = "Lanes: placement: tier. What tools read or overwrite in their work folders is not known, and not included."
    return sums(says, bars, WAYS, note, "bytes")


OPEN_ROWS = 6
"""Lists with more rows are folded."""

MEDIANS = ("flushed_s", "cpu_sum_s", "io_sum_s", "mean_parallelism", "peak_parallelism")


def read(places: Places, settings: Settings) -> Comparison:
    """Read the comparison of a results folder."""
    plan, found = places.campaign / "plan.tsv", read_comparison_tables(places.comparison)
    in_memory = [name for name, tier in settings.tiers.items() if is_in_memory(tier.kind)]
    return Comparison(**vars(found), missing_runs=missing_runs_text(plan) if plan.exists() else "", in_memory=in_memory)


def subtitle(data: Comparison) -> str:
    """The text below the title: how many runs there are, and where they were done."""
    origins = sorted({run["origin"] for run in data.runs})
    return f"{counted(len(data.runs), 'run')} of {', '.join(origins)}" if origins else "No runs"


def verdicts(data: Comparison) -> list[Verdict]:
    """Which placement was fastest, for each set of conditions that differ only in their placement."""
    found = [Verdict(f"Partial: {data.missing_runs}", BAD)] if data.missing_runs else []
    found += [Verdict(family.headline, GOOD if family.sure else OPEN, family.name) for family in judge(data)]
    found += [Verdict(text, BAD, name) for name, text in without_runs(data).items()]
    none = "No run can be compared" if data.runs else "There is no run to compare"
    return found if data.conditions else [*found, Verdict(none, BAD)]


def counts(data: Comparison) -> Section:
    """The section on how many runs are compared, and how many of them had more jobs than there are CPUs."""
    compared = [run for runs in data.conditions.values() for run in runs]
    crowded = sum(bool(run["oversubscribed"]) for run in compared)
    text = f"{counts_text(data)}. Only valid runs are compared."
    return Section(text=text + f" Oversubscribed: {counted(crowded, 'run')} of {len(compared):,}." * bool(crowded))


def by_how_much(data: Comparison) -> Section:
    """The section that compares each placement with the fastest under the same conditions."""
    rows = [
        {
            "condition": family.name,
            "placement": one.condition.placement,
            "makespan": spread_text(one.makespan),
            "took": str(one.contrast or ""),
            "median_participant_longer_s": one.longer_s,
            "sure?": f"not sure: {'; '.join(one.doubts)}" if one.doubts else "sure" if one.contrast else "shortest",
            "a_job_takes": causes_text(one.causes) if one.causes else "",
        }
        for family in judge(data)
        for one in family.placements
    ]
    return Section(
        "By how much, and why",
        "Each placement against the fastest one under the same conditions. Makespan: median, least and greatest. Took:"
        " how many times as long, over the repetitions in which both were run in turn (without any, over all runs), and"
        " its 95 % interval (wider if there are several placements). Median participant: among those that both ran. A"
        " job takes: where the additional time of a participant job went, on average.",
        rows,
    )


def reasons(data: Comparison) -> Section | None:
    """The section on what may mislead in a comparison; a remark that applies to all conditions appears once."""
    families = judge(data)
    found = grouped((line, family.name) for family in families for line in family.reasons)
    items = [f"{line}." if len(of) == len(families) else f"{'; '.join(of)}: {line}." for line, of in found.items()]
    return Section(items=items) if items else None


def conditions(data: Comparison) -> Section:
    """The section on all conditions, with medians over their repetitions."""
    rows = []
    for one, runs in data.conditions.items():
        limits = dict.fromkeys(run["limited_by"] for run in runs if run["limited_by"])
        rows.append(
            {
                "runs": f"{one.origin}: {one.tool}",
                "inputs_and_page_cache": one.cache,
                "at_once": one.parallelism,
                "placement": one.placement,
                "tiers": tiers_text(one.placement, runs[0]),
                **{name: (found := spread(runs, name)) and found.median for name in MEDIANS},
                "cores": "oversubscribed" * any(run["oversubscribed"] for run in runs),
                "why_not_as_many_as_asked_for": "; ".join(limits),
            }
        )
    return Section(
        "Conditions",
        "Medians over the repetitions of a condition. CPU time and I/O as the paper counts it (wall - CPU) are sums"
        " over all participant jobs of a run.",
        rows,
    )


def tiers_text(placement: str, run: Row) -> str:
    """The tier of each role, as far as known; empty if all roles are on the tier that gives the placement its name."""
    tiers = grouped((run[f"{role}_tier"], role) for role in ROLES if run[f"{role}_tier"] is not None)
    if list(tiers) == [placement]:
        return ""
    return "; ".join(f"{'all' if len(tiers) == 1 else ', '.join(roles)} on {tier}" for tier, roles in tiers.items())


def excluded(data: Comparison) -> Section:
    """The section on runs that are not compared, and why."""
    rows = [
        {name: run[name] for name in ("origin", "run", "placement", "parallelism", "repetition")}
        | {"reason": "no participant finished" if run["valid"] == "valid" else run["valid"]}
        for run in data.runs
        if not is_compared(run)
    ]
    folded = "Which, and why" if len(rows) > OPEN_ROWS else ""
    return Section(f"Left out: {counted(len(rows), 'run')}", rows=rows, folded=folded)


def method(data: Comparison) -> Section:
    """The section with the meaning of words, and a paragraph for a paper's methods."""
    text = """
        Runs with the same origin, tool, page cache, parallelism and placement are repetitions of one another."""
    if tools := ", ".join(sorted({condition.tool for condition in data.conditions})):
        text += f"""

        For a paper: participant jobs of {tools} were run and timed with neurotier {__version__} ({own_reference()}).
        Makespans of placements were compared by their logarithms: within repetitions by Student's paired t-test where
        they were run in turn, else by Welch's test; P values were adjusted over all pairs of placements at one
        parallelism (Holm, 1979, Scandinavian Journal of Statistics 6(2), 65-70)."""
    return Section("Methods", text)


PAGE = Page(
    name="comparison",
    title="Comparison of placements",
    caption="The comparison on one page: for each set of conditions that differ only in their placement, which is"
    " fastest, by how much, whether that is certain, and why; runs left out with their reasons; all conditions and"
    " figures. The page shows which placement is worth it.",
    subtitle=subtitle,
    tables=("comparison/compared_runs", "comparison/compared_participants", "comparison/compared_bytes"),
    read=read,
    prints_verdicts=False,  # the end of the run prints its verdict, last
    verdicts=verdicts,
    parts=(
        glossary("valid", "makespan", "on its device", "sure", "not told apart", "oversubscribed"),
        counts,
        Figure("Makespan", makespan),
        by_how_much,
        reasons,
        conditions,
        Figure("Where the wall time went", wall_time),
        Figure("Differences by participant", differences),
        Figure("Time by phase", phases),
        Figure("Bytes by tier", tier_bytes),
        excluded,
        method,
    ),
)
