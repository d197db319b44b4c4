"""The paper's claims about the 20 um image and about Spark (its section III-B), and what the logs say of each."""

from __future__ import annotations

from neurotier.published.bigbrain import GNU_PARALLEL, SPARK
from neurotier.published.claims.facts import (
    ISILON,
    ISILON_DIRECT,
    ISILON_MEMORY,
    OPTANE_DIRECT,
    OPTANE_MEMORY,
    Facts,
    Place,
    named,
)
from neurotier.published.claims.judging import (
    Claim,
    Judgement,
    known,
    listed,
    of_figures,
    of_truths,
)


def large_memory_estimate(facts: Facts) -> Judgement:
    took_s = facts.makespan_s(OPTANE_MEMORY, 25, 20)
    found = {
        "as drawn": facts.drawn_equation_s(OPTANE_MEMORY, 20) / took_s,
        "by Table I": facts.equation_s("Optane", 20) / took_s,
    }
    return of_figures(2, found, " times")


def large_isilon_estimate(facts: Facts) -> Judgement:
    expected_s = facts.equation_s("Isilon", 20)
    return of_figures(1.1, known(named(ISILON), lambda place: expected_s / facts.makespan_s(place, 25, 20)), " times")


def large_direct_estimate(facts: Facts) -> Judgement:
    return of_figures(1.8, {"": facts.makespan_s(OPTANE_DIRECT, 25, 20) / facts.equation_s("Optane", 20)}, " times")


def large_writes(facts: Facts) -> Judgement:
    return of_figures(12, {"": facts.write_s(OPTANE_DIRECT, 25, 20) / facts.write_s(OPTANE_MEMORY, 25, 20)}, " times")


def large_isilon_reads(facts: Facts) -> Judgement:
    return of_figures(1.4, {"": facts.read_s(ISILON_DIRECT, 25, 20) / facts.read_s(ISILON_MEMORY, 25, 20)}, " times")


def spark_direct_estimate(facts: Facts) -> Judgement:
    found = {
        place[1]: facts.makespan_s(place, 25, 20, SPARK) / facts.equation_s("Optane", 20)
        for place in (OPTANE_DIRECT, OPTANE_MEMORY)
    }
    truths = {"2": abs(found["App Direct"] / 2 - 1) < 0.1, "only": found["Memory mode"] < 1.2}
    return of_truths(truths, f"over Eq. (1): {listed(found, ' times')}")


def spark_writes(
    facts: Facts, said: float | tuple[float, float], processes: int, places: tuple[Place, ...]
) -> Judgement:
    def ratio(place: Place) -> float:
        return facts.write_s(place, processes, 20, SPARK) / facts.write_s(place, processes, 20)

    return of_figures(said, known(named(places), ratio), " times")


def spark_conversion(facts: Facts) -> Judgement:
    def convert_s(place: Place) -> float:
        return facts.mean(lambda run: run.header_s, place, 25, 20, SPARK)

    base_s = convert_s(ISILON_MEMORY)
    return of_figures(
        2, known(named((OPTANE_MEMORY, OPTANE_DIRECT)), lambda place: convert_s(place) / base_s), " times"
    )


def large_speed_up(
    facts: Facts, said: float | tuple[float, float], places: tuple[Place, ...], engine: str
) -> Judgement:
    return of_figures(said, known(named(places), lambda place: facts.speed_up(place, 20, engine)), " times")


def spark_same(facts: Facts) -> Judgement:
    memory_s, direct_s = (facts.makespan_s(place, 96, 20, SPARK) for place in (OPTANE_MEMORY, OPTANE_DIRECT))
    found = {"Memory mode": memory_s, "App Direct": direct_s, "Eq. (1)": facts.equation_s("Optane", 20)}
    truths = {"same": abs(memory_s / direct_s - 1) < 0.1, "worse": min(memory_s, direct_s) > 1.2 * found["Eq. (1)"]}
    return of_truths(truths, listed(found, " s"))


CLAIMS = (
    Claim("III-B1", "Memory mode approximately twice as fast as the estimates (20 µm)", large_memory_estimate),
    Claim("III-B1", "Isilon is around 1.1x faster (20 µm)", large_isilon_estimate),
    Claim("III-B1", "Optane (App Direct) was 1.8x slower than anticipated (20 µm)", large_direct_estimate),
    Claim("III-B1", "App Direct spends almost 12x more time writing (20 µm)", large_writes),
    Claim("III-B1", "Isilon around 1.4x more time reading in App Direct mode", large_isilon_reads),
    Claim(
        "III-B1", "Spark: only App Direct significantly exceeded the estimates, by a factor of 2", spark_direct_estimate
    ),
    Claim(
        "III-B1",
        "Spark's writes are 1.4-1.6x longer with Optane",
        lambda facts: spark_writes(facts, (1.4, 1.6), 25, (OPTANE_MEMORY, OPTANE_DIRECT)),
    ),
    Claim("III-B1", "Spark's writes are 1.1x longer with Isilon", lambda facts: spark_writes(facts, 1.1, 25, ISILON)),
    Claim("III-B1", "conversion takes almost twice as much time on Optane than on Isilon", spark_conversion),
    Claim(
        "III-B2",
        "very slight improvement (1-1.3x faster) in Optane",
        lambda facts: large_speed_up(facts, (1.0, 1.3), (OPTANE_MEMORY, OPTANE_DIRECT), GNU_PARALLEL),
    ),
    Claim(
        "III-B2",
        "Isilon: slight decrease (1.1x slower)",
        lambda facts: large_speed_up(facts, 1 / 1.1, ISILON, GNU_PARALLEL),
    ),
    Claim("III-B2", "Spark: both modes the same, significantly worse than the estimate", spark_same),
    Claim(
        "III-B2",
        "Spark's performance on Isilon did not really differ",
        lambda facts: large_speed_up(facts, 1.0, ISILON, SPARK),
    ),
    Claim(
        "III-B2",
        "Spark spent nearly half as much time writing as GNU Parallel",
        lambda facts: spark_writes(facts, 0.5, 96, (OPTANE_MEMORY, OPTANE_DIRECT, *ISILON)),
    ),
)
"""In the order of the paper."""
