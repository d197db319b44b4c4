"""The paper's claims about the 20 um image and about Spark (its section III-B), and what the logs say of each."""

from __future__ import annotations

from neurotier.published.bigbrain import SPARK
from neurotier.published.claims.facts import (
    ISILON,
    ISILON_DIRECT,
    ISILON_MEMORY,
    OPTANE,
    OPTANE_DIRECT,
    OPTANE_MEMORY,
    Case,
    Facts,
    known,
    modes,
    name,
    named,
)
from neurotier.published.claims.judging import Claim, Judgement, listed, of_figures, of_truths

LARGE = (25, 20)
"""25 processes, 20 um."""


def large_memory_estimate(facts: Facts) -> Judgement:
    took_s = facts.makespan_s(OPTANE_MEMORY, *LARGE)
    expected_s = {
        "as drawn": facts.drawn_equation_s(OPTANE_MEMORY, 20),
        "by Table I": facts.equation_s(OPTANE_MEMORY, 20),
    }
    return of_figures(2, {which: one / took_s for which, one in expected_s.items()})


def spark_direct_estimate(facts: Facts) -> Judgement:
    found = facts.all_over_equation(modes((OPTANE_DIRECT, OPTANE_MEMORY), *LARGE, SPARK))
    truths = [abs(found["App Direct"] / 2 - 1) < 0.1, found["Memory mode"] < 1.2]
    return of_truths(truths, f"over Eq. (1): {listed(found, ' times')}")


def spark_writes(
    facts: Facts, said: float | tuple[float, float], processes: int, places: tuple[tuple[str, str], ...]
) -> Judgement:
    """How many times as long Spark writes as GNU Parallel."""
    cases = {name(place): (place, processes, 20) for place in places}
    return of_figures(
        said, known(cases, lambda case: facts.mean("write_s", *case, SPARK) / facts.mean("write_s", *case))
    )


def spark_same(facts: Facts) -> Judgement:
    found = {mode: facts.makespan_s(*case) for mode, case in modes(OPTANE, 96, 20, SPARK).items()}
    slower_s, ratio = min(found.values()), found["Memory mode"] / found["App Direct"]
    found["Eq. (1)"] = facts.equation_s(OPTANE_MEMORY, 20)
    truths = [abs(ratio - 1) < 0.1, slower_s > 1.2 * found["Eq. (1)"]]
    return of_truths(truths, listed(found, " s"))


CLAIMS = (
    Claim("III-B1", "Memory mode approximately twice as fast as the estimates (20 µm)", large_memory_estimate),
    Claim(
        "III-B1",
        "Isilon is around 1.1x faster (20 µm)",
        lambda facts: of_figures(1.1, known(named(ISILON, *LARGE), lambda case: 1 / facts.over_equation(case))),
    ),
    Claim(
        "III-B1",
        "Optane (App Direct) was 1.8x slower than anticipated (20 µm)",
        lambda facts: of_figures(1.8, {"": facts.over_equation(Case(OPTANE_DIRECT, *LARGE))}),
    ),
    Claim(
        "III-B1",
        "App Direct spends almost 12x more time writing (20 µm)",
        lambda facts: of_figures(
            12, facts.ratios("write_s", {"": Case(OPTANE_DIRECT, *LARGE)}, Case(OPTANE_MEMORY, *LARGE))
        ),
    ),
    Claim(
        "III-B1",
        "Isilon around 1.4x more time reading in App Direct mode",
        lambda facts: of_figures(
            1.4, facts.ratios("increment_s", {"": Case(ISILON_DIRECT, *LARGE)}, Case(ISILON_MEMORY, *LARGE))
        ),
    ),
    Claim(
        "III-B1", "Spark: only App Direct significantly exceeded the estimates, by a factor of 2", spark_direct_estimate
    ),
    Claim(
        "III-B1",
        "Spark's writes are 1.4-1.6x longer with Optane",
        lambda facts: spark_writes(facts, (1.4, 1.6), 25, OPTANE),
    ),
    Claim("III-B1", "Spark's writes are 1.1x longer with Isilon", lambda facts: spark_writes(facts, 1.1, 25, ISILON)),
    Claim(
        "III-B1",
        "conversion takes almost twice as much time on Optane than on Isilon",
        lambda facts: of_figures(
            2, facts.ratios("header_s", named(OPTANE, *LARGE, SPARK), Case(ISILON_MEMORY, *LARGE, SPARK))
        ),
    ),
    Claim(
        "III-B2",
        "very slight improvement (1-1.3x faster) in Optane",
        lambda facts: of_figures((1.0, 1.3), facts.speed_ups(OPTANE, 20)),
    ),
    Claim(
        "III-B2",
        "Isilon: slight decrease (1.1x slower)",
        lambda facts: of_figures(1 / 1.1, facts.speed_ups(ISILON, 20)),
    ),
    Claim("III-B2", "Spark: both modes the same, significantly worse than the estimate", spark_same),
    Claim(
        "III-B2",
        "Spark's performance on Isilon did not really differ",
        lambda facts: of_figures(1.0, facts.speed_ups(ISILON, 20, SPARK)),
    ),
    Claim(
        "III-B2",
        "Spark spent nearly half as much time writing as GNU Parallel",
        lambda facts: spark_writes(facts, 0.5, 96, (*OPTANE, *ISILON)),
    ),
)
"""In the order of the paper."""
