"""The page of the comparison: which placement is fastest, by how much, whether that is certain, and why."""

from __future__ import annotations

from neurotier import __version__
from neurotier.core.places import Places
from neurotier.core.quantities import counted
from neurotier.core.settings import ROLES, Settings
from neurotier.core.tables import Row, gathered
from neurotier.pages.comparison.figures import differences, makespan, phases, tier_bytes, wall_time
from neurotier.pages.comparison.statistics import Comparison
from neurotier.pages.comparison.verdict import causes_text, counts_text, judge
from neurotier.pages.kit.findings import own_reference, spread_text, words
from neurotier.pages.kit.page import BAD, GOOD, OPEN, Figure, Page, Section, Verdict
from neurotier.run.compared import is_compared, lacking, read_comparison_tables
from neurotier.storage.spread import spread

OPEN_ROWS = 6
"""Longer lists are folded."""

MEDIANS = ("flushed_s", "cpu_sum_s", "io_sum_s", "mean_parallelism", "peak_parallelism")


def read(places: Places, _settings: Settings) -> Comparison:
    """The comparison of a results folder."""
    plan = places.campaign / "plan.tsv"
    return Comparison(**vars(read_comparison_tables(places.comparison)), lacking=lacking(plan) if plan.exists() else "")


def under(data: Comparison) -> str:
    """How many runs there are, and where they were done."""
    origins = sorted({run["origin"] for run in data.runs})
    return f"{counted(len(data.runs), 'run')} of {', '.join(origins)}" if origins else "No runs"


def verdicts(data: Comparison) -> list[Verdict]:
    """Which placement was fastest, for each set of conditions that differ only in their placement."""
    found = [Verdict(f"Partial: {data.lacking}", BAD)] if data.lacking else []
    found += [Verdict(family.headline, GOOD if family.sure else OPEN, family.name) for family in judge(data)]
    none = f"None of {counted(len(data.runs), 'run')} can be compared" if data.runs else "There is no run to compare"
    return found if data.conditions else [*found, Verdict(none, BAD)]


def counts(data: Comparison) -> Section:
    """How many runs are compared, and how many of them had more jobs than there are CPUs."""
    compared = [run for runs in data.conditions.values() for run in runs]
    crowded = sum(bool(run["oversubscribed"]) for run in compared)
    text = f"{counts_text(data)}. Only valid runs are compared."
    return Section(text=text + f" Oversubscribed: {counted(crowded, 'run')} of {len(compared):,}." * bool(crowded))


def by_how_much(data: Comparison) -> Section:
    """Each placement against the fastest under the same conditions."""
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
        " its 95 % interval (wider if there are several placements). Median participant: of those that both have. A job"
        " takes: where the additional time of a participant job went, on average.",
        rows,
    )


def reasons(data: Comparison) -> Section | None:
    """What may mislead about conditions; what applies to all of them is said once."""
    families = judge(data)
    found = gathered((line, family.name) for family in families for line in family.reasons)
    items = [f"{line}." if len(of) == len(families) else f"{'; '.join(of)}: {line}." for line, of in found.items()]
    return Section(items=items) if items else None


def conditions(data: Comparison) -> Section:
    """All conditions, with medians over their repetitions."""
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
    """Which roles are on which tier, as far as known; empty if all are on the tier that names the placement."""
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
    under=under,
    tables={name: f"comparison/{name}.tsv" for name in ("compared_runs", "compared_participants", "compared_bytes")},
    read=read,
    speaks=False,  # the end of the run prints its verdict, last
    verdicts=verdicts,
    parts=(
        words("valid", "makespan", "on its device", "sure", "not told apart", "oversubscribed"),
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
