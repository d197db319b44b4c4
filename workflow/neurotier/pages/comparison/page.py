"""The page of the comparison: which placement is fastest, by how much, whether that is certain, and why."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

from neurotier import __version__
from neurotier.core.places import Places
from neurotier.core.quantities import counted, number, seconds
from neurotier.core.settings import ROLES, Settings
from neurotier.core.tables import Row, gathered
from neurotier.pages.comparison.figures import (
    accounts,
    cpu_io_sums,
    differences,
    makespan,
    phases,
    tier_bytes,
)
from neurotier.pages.comparison.statistics import by_condition
from neurotier.pages.comparison.verdict import ComparisonVerdict, causes_text, judge
from neurotier.pages.kit.findings import own_reference, spread_text, words
from neurotier.pages.kit.page import BAD, GOOD, OPEN, Figure, Page, Section, Verdict
from neurotier.run.compared import Compared, is_compared, lacking, read_comparison_tables
from neurotier.storage.spread import spread

OPEN_ROWS = 6
"""Longer lists are folded."""

MEDIANS = ("flushed_s", "cpu_sum_s", "io_sum_s", "mean_parallelism", "peak_parallelism")


@dataclass(frozen=True)
class Comparison(Compared):
    """What is compared, and what is still to be done of a campaign, if anything."""

    lacking: str = ""

    @cached_property
    def verdict(self) -> ComparisonVerdict:
        """What it comes to."""
        return judge(self.runs, self.participants)


def read(places: Places, _settings: Settings) -> Comparison:
    """The comparison of a results folder."""
    plan = places.campaign / "plan.tsv"
    return Comparison(**vars(read_comparison_tables(places.comparison)), lacking=lacking(plan) if plan.exists() else "")


def under(data: Comparison) -> str:
    """How many runs there are, and where they were made."""
    origins = sorted({run["origin"] for run in data.runs})
    return f"{counted(len(data.runs), 'run')} of {', '.join(origins)}" if origins else "No runs"


def verdicts(data: Comparison) -> list[Verdict]:
    """Of each set of conditions that differ in their placement alone, which was fastest."""
    found = [Verdict(f"Partial: {data.lacking}", BAD)] if data.lacking else []
    found += [Verdict(family.headline, GOOD if family.sure else OPEN, family.name) for family in data.verdict.families]
    if not data.verdict.families:
        none = (
            f"None of {counted(len(data.runs), 'run')} can be compared" if data.runs else "There is no run to compare"
        )
        found.append(Verdict(none, BAD))
    return found


def counts(data: Comparison) -> Section:
    """How many runs are compared, and how many of them had more jobs than there are CPUs."""
    compared = [run for runs in by_condition(data.runs).values() for run in runs]
    crowded = sum(bool(run["oversubscribed"]) for run in compared)
    text = f"{data.verdict.counts}. Only valid runs are compared."
    return Section(text=text + f" Oversubscribed: {counted(crowded, 'run')} of {len(compared):,}." * bool(crowded))


def by_how_much(data: Comparison) -> Section:
    """Each placement against the fastest under the same conditions."""
    rows: list[Row] = []
    for family in data.verdict.families:
        for one in family.placements:
            pair, contrast, low_high = one.pair, one.contrast, ""
            if contrast and contrast.ends:
                low_high = " ({:.2f} to {:.2f})".format(*contrast.ends)
            sign = "+" if pair and pair.slower == one.condition else "-"
            alone = "shortest" if len(family.placements) > 1 else "alone"
            rows.append(
                {
                    "condition": family.name,
                    "placement": one.condition.placement,
                    "makespan": spread_text(one.makespan),
                    "ratio": f"{number(contrast.ratio, 2)}{low_high}" if contrast else "1",
                    "same_participants": pair
                    and f"{sign}{seconds(pair.median_s)}, {counted(pair.participants, 'participant')}",
                    "sure?": f"not sure: {'; '.join(one.doubts)}" if one.doubts else "sure" if contrast else alone,
                    "a_job_takes": causes_text(one.longer) if one.longer else "",
                }
            )
    return Section(
        "By how much, and why",
        "Each placement against the fastest one under the same conditions. Makespan: median, least and greatest. Ratio:"
        " how many times as long it took, over the repetitions that both have, with its 95 % interval (wider if there"
        " are several placements). Same participants: how much longer the median participant took. A job takes: where"
        " the additional time of a participant job went, on average.",
        rows,
    )


def reasons(data: Comparison) -> Section | None:
    """What may mislead about conditions; what holds for all of them is said once."""
    families = gathered((line, family.name) for family in data.verdict.families for line in family.reasons)
    every = len(data.verdict.families)
    items = [f"{line}." if len(of) == every else f"{'; '.join(of)}: {line}." for line, of in families.items()]
    folded = "What may mislead" if len(items) > OPEN_ROWS else ""
    return Section(items=items, folded=folded) if items else None


def conditions(data: Comparison) -> Section:
    """All conditions, with medians over their repetitions."""
    rows = []
    for one, runs in by_condition(data.runs).items():
        rows.append(
            {"runs": f"{one.origin}: {one.tool}", "inputs_and_page_cache": one.cache, "at_once": one.parallelism}
            | {"placement": one.placement, "tiers": tiers_text(one.placement, runs[0])}
            | {name: (found := spread(runs, name)) and found.median for name in MEDIANS}
            | {"cores": "oversubscribed" * any(run["oversubscribed"] for run in runs)}
            | {
                "why_not_as_many_as_asked_for": "; ".join(
                    dict.fromkeys(run["limited_by"] for run in runs if run["limited_by"])
                )
            }
        )
    return Section(
        "Conditions",
        "Medians over the repetitions of a condition. CPU time and I/O as the paper counts it (wall - CPU) are sums"
        " over all participant jobs of a run.",
        rows,
    )


def tiers_text(placement: str, run: Row) -> str:
    """Which roles are on which tier, as far as is known; empty if all are on the one that names the placement."""
    tiers = gathered((run[f"{role}_tier"], role) for role in ROLES if run[f"{role}_tier"] is not None)
    if list(tiers) == [placement]:
        return ""
    return "; ".join(f"{'all' if len(tiers) == 1 else ', '.join(roles)} on {tier}" for tier, roles in tiers.items())


def excluded(data: Comparison) -> Section:
    """Runs that are not compared, and why."""
    rows = [
        {name: run[name] for name in ("origin", "run", "placement", "parallelism", "repetition")}
        | {"reason": "no participant finished" if run["valid"] == "valid" else run["valid"]}
        for run in data.runs
        if not is_compared(run)
    ]
    folded = "Which, and why" if len(rows) > OPEN_ROWS else ""
    return Section(f"Left out: {counted(len(rows), 'run')}", rows=rows, folded=folded)


def method(data: Comparison) -> Section:
    """What the words mean, and a paragraph for a paper."""
    text = """
        Runs with the same origin, tool, page cache, parallelism and placement are repetitions of one another."""
    if tools := ", ".join(sorted({condition.tool for condition in by_condition(data.runs)})):
        text += f"""

        For a paper: participant jobs of {tools} were run and timed with neurotier {__version__} ({own_reference()}).
        Makespans of placements were compared by their logarithms: within repetitions by Student's paired t-test where
        they were run in turn, else by Welch's test; P values were adjusted over all pairs of placements (Holm, 1979,
        Scandinavian Journal of Statistics 6(2), 65-70)."""
    return Section("Methods", text)


PAGE = Page(
    name="comparison",
    title="Comparison of placements",
    category="Comparison",
    caption="The comparison on one page: for each set of conditions that differ only in their placement, which is"
    " fastest, by how much, whether that is certain, and why; runs left out with their reasons; all conditions and"
    " figures. The page shows which placement is worth it.",
    under=under,
    tables={name: f"comparison/{name}.tsv" for name in ("compared_runs", "compared_participants", "compared_bytes")},
    read=read,
    speaks=False,  # the end of the run says its verdict, last
    verdicts=verdicts,
    parts=(
        words("valid", "makespan", "on its device", "sure", "not told apart", "oversubscribed"),
        counts,
        Figure("Makespan", makespan),
        by_how_much,
        reasons,
        conditions,
        Figure("CPU time, and I/O as the paper counts it", cpu_io_sums),
        Figure("Where the wall time went", accounts),
        Figure("Differences by participant", differences),
        Figure("Time by phase", phases),
        Figure("Bytes by tier", tier_bytes),
        excluded,
        method,
    ),
)
