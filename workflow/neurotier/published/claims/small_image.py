"""The paper's claims about the 40 um image by GNU Parallel (its section III-A), and what the logs say of each."""

from __future__ import annotations

import statistics

from neurotier.published.claims.facts import (
    DRAM,
    ISILON,
    ISILON_DIRECT,
    ISILON_MEMORY,
    OPTANE_DIRECT,
    OPTANE_MEMORY,
    SAME,
    SSD,
    Case,
    Facts,
    Place,
    modes,
    name,
    named,
)
from neurotier.published.claims.judging import (
    CONTRADICTED,
    PARTLY,
    Claim,
    Judgement,
    figure,
    listed,
    of_each,
    of_figures,
    of_truths,
)
from neurotier.published.conditions import PLACES


def fastest(facts: Facts) -> Judgement:
    times = {name(place): facts.makespan_s(place) for place in PLACES}
    truths = [min(times.values()) == times["DRAM"], abs(times["DRAM"] - 7.6) < 0.1]
    return of_truths(truths, listed(times, " s"))


def modes_alike(facts: Facts, processes: int) -> Judgement:
    """The makespans of a device in both modes, by Welch's test; of three repetitions each, it sees only much."""
    from scipy.stats import ttest_ind

    truths, texts = [], []
    for memory, direct in (SSD, ISILON):
        one, other = ([run.makespan_s for run in facts.runs(place, processes)] for place in (memory, direct))
        chance = float(ttest_ind(one, other, equal_var=False).pvalue) if min(len(one), len(other)) > 1 else 1.0
        truths.append(chance > 0.05)
        means = " and ".join(figure(statistics.fmean(values)) for values in (one, other))
        texts.append(f"{memory[0]} {means} s (p = {figure(chance)})")
    return of_truths(truths, "; ".join(texts))


def ssd_beyond_estimate(facts: Facts) -> Judgement:
    own_s, drawn_s = facts.equation_s(SSD[0]), facts.ssd_as_drawn_s()
    took_s = [facts.makespan_s(place) for place in SSD]
    own = " and ".join(figure(one / own_s) for one in took_s)
    drawn = " and ".join(figure(one / drawn_s) for one in took_s)
    text = f"{own} times with the SSD's own bandwidths ({figure(own_s)} s); {drawn} times as drawn, with DRAM's write"
    return Judgement(f"{text} bandwidth ({figure(drawn_s)} s)", CONTRADICTED if max(took_s) < own_s else PARTLY)


def memory_below_estimate(facts: Facts) -> Judgement:
    took_s, table_s = facts.makespan_s(OPTANE_MEMORY), facts.equation_s(OPTANE_MEMORY)
    drawn_s = facts.drawn_equation_s(OPTANE_MEMORY)
    text = f"{figure(drawn_s / took_s)} times by the benchmark of tmpfs in Memory mode, as drawn ({figure(drawn_s)} s)"
    text += f"; {figure(table_s / took_s)} times by Table I ({figure(table_s)} s)"
    return of_truths([abs(one / took_s / 3.8 - 1) < 0.1 for one in (drawn_s, table_s)], text)


def isilon_below_estimate(facts: Facts) -> Judgement:
    ratios = {mode: 1 / value for mode, value in facts.all_over_equation(modes(ISILON)).items()}
    truths = [abs(ratios["App Direct"] / 1.1 - 1) < 0.05, ratios["App Direct"] < ratios["Memory mode"]]
    return of_truths(truths, listed(ratios, " times"))


def slower_phases(facts: Facts, over: Case, under: Case, said: tuple[float, float]) -> Judgement:
    """How many times as long a device with so many processes reads and writes as another."""
    found = [facts.mean(phase, *over) / facts.mean(phase, *under) for phase in ("increment_s", "write_s")]
    truths = [abs(value / expected - 1) < 0.1 for value, expected in zip(found, said, strict=True)]
    return of_truths(truths, "{} times reading, {} times writing".format(*map(figure, found)))


def ssd_phases(facts: Facts) -> Judgement:
    reads, writes = (facts.ratios(phase, modes(SSD), Case(DRAM)) for phase in ("increment_s", "write_s"))
    truths = [abs(value / 96 - 1) < 0.1 for value in reads.values()]
    truths += [abs(value - 1) < 0.2 for value in writes.values()]
    return of_truths(truths, f"reads: {listed(reads, ' times')}; writes: {listed(writes, ' times')}")


def isilon_reads(facts: Facts) -> Judgement:
    found = {name(place): facts.mean("increment_s", place) for place in (*ISILON, *SSD)}
    truths = [found[name(one)] < found[name(other)] for one, other in zip(ISILON, SSD, strict=True)]
    return of_truths(truths, listed(found, " s"))


def parallel_tasks(facts: Facts, processes: int, said: dict[Place, tuple[float, float]]) -> Judgement:
    """Mean parallelism between two figures, by place."""
    found = {place: facts.parallelism(place, processes) for place in said}
    truths = [low * (1 - SAME) < found[place] < high * (1 + SAME) for place, (low, high) in said.items()]
    return of_truths(truths, listed({name(place): value for place, value in found.items()}))


def better_than_estimate(facts: Facts) -> Judgement:
    times = {place: facts.makespan_s(place, 96) for place in PLACES}
    better = [place for place in PLACES if times[place] < facts.equation_s(place)]
    said = DRAM, OPTANE_MEMORY
    as_said = abs(times[DRAM] - 5.7) < 0.1 and abs(times[OPTANE_MEMORY] - 9) < 0.1
    others = ", ".join(name(place) for place in better if place not in said)
    text = listed({name(place): times[place] for place in said}, " s")
    return of_truths([as_said, set(better) == set(said)], text + (f"; by Table I also {others}" if others else ""))


def ssd_variance(facts: Facts) -> Judgement:
    spreads = {}
    for place in PLACES:
        times_s = [run.makespan_s for run in facts.all_runs(place, 96)]
        spreads[name(place)] = max(times_s) / min(times_s)
    most = max(spreads, key=lambda place: spreads[place])
    return of_truths([most.startswith("local SSD")], f"slowest over fastest repetition: {listed(spreads)}")


def quadrupled(facts: Facts) -> Judgement:
    def total_s(place: Place, processes: int) -> float:
        return sum(facts.mean(phase, place, processes) for phase in ("header_s", "increment_s", "write_s"))

    return of_figures(4, {name(place): total_s(place, 96) / total_s(place, 25) for place in PLACES})


def isilon_only_writes(facts: Facts) -> Judgement:
    reads = facts.ratios("increment_s", named(PLACES, 96), named(PLACES, 25))
    writes = facts.ratios("write_s", modes(ISILON, 96), modes(ISILON, 25))
    truths = [value < 1.2 if place.startswith("Isilon") else value > 1.2 for place, value in reads.items()]
    truths += [value > 1.2 for value in writes.values()]
    return of_truths(truths, f"reads, 96 over 25: {listed(reads)}; Isilon's writes: {listed(writes)}")


CLAIMS = (
    Claim("III-A1", "DRAM is the most efficient, with a makespan of 7.6 s", fastest),
    Claim(
        "III-A1",
        "Memory mode is a close second with a makespan of 10.2 s",
        lambda facts: of_figures(10.2, {name(OPTANE_MEMORY): facts.makespan_s(OPTANE_MEMORY)}, " s"),
    ),
    Claim(
        "III-A1",
        "App Direct is approximately 12x slower than Memory mode",
        lambda facts: of_figures(12, facts.ratios("makespan_s", {"": Case(OPTANE_DIRECT)}, Case(OPTANE_MEMORY))),
    ),
    Claim(
        "III-A1",
        "Isilon in both modes is more than 120x slower than Optane in Memory mode",
        lambda facts: of_each(facts.ratios("makespan_s", modes(ISILON), Case(OPTANE_MEMORY)), lambda one: one > 120),
    ),
    Claim(
        "III-A1",
        "other than for Optane, no significant difference between the modes",
        lambda facts: modes_alike(facts, 25),
    ),
    Claim(
        "III-A1",
        "Optane (App Direct) was approximately 2.2x slower than expected",
        lambda facts: of_figures(2.2, {"": facts.over_equation(Case(OPTANE_DIRECT))}),
    ),
    Claim("III-A1", "local SSD was approximately 1.4x slower than expected, in both modes", ssd_beyond_estimate),
    Claim(
        "III-A1",
        "DRAM was almost 5x faster than what was estimated",
        lambda facts: of_figures(5, {"": facts.equation_s(DRAM) / facts.makespan_s(DRAM)}),
    ),
    Claim("III-A1", "Memory mode is 3.8x faster than expected", memory_below_estimate),
    Claim("III-A1", "Isilon in App Direct mode had a smaller difference, 1.1x faster", isilon_below_estimate),
    Claim(
        "III-A1",
        "App Direct 7x slower in terms of reading and 23x in terms of writing",
        lambda facts: slower_phases(facts, Case(OPTANE_DIRECT), Case(OPTANE_MEMORY), (7, 23)),
    ),
    Claim("III-A1", "SSD: similar write times as DRAM, reads approximately 96x slower", ssd_phases),
    Claim(
        "III-A1",
        "header loading for the SSD is 90x longer than that of DRAM",
        lambda facts: of_figures(90, facts.ratios("header_s", modes(SSD), Case(DRAM))),
    ),
    Claim(
        "III-A1",
        "Isilon's header load times are more than 5000x slower than DRAM's",
        lambda facts: of_each(facts.ratios("header_s", modes(ISILON), Case(DRAM)), lambda one: one > 5000),
    ),
    Claim("III-A1", "read/increment times on Isilon are faster than that of the SSD", isilon_reads),
    Claim(
        "III-A1",
        "Isilon's writes are around 184x slower than DRAM",
        lambda facts: of_figures(184, facts.ratios("write_s", modes(ISILON), Case(DRAM))),
    ),
    Claim(
        "III-A1",
        "parallel tasks: DRAM 17.2, Optane 24, SSD 24, Isilon 14",
        lambda facts: parallel_tasks(
            facts, 25, {DRAM: (17.2, 17.2), **dict.fromkeys((OPTANE_DIRECT, SSD[1]), (24, 24)), ISILON_DIRECT: (14, 14)}
        ),
    ),
    Claim(
        "III-A2",
        "no visible reduction in makespan (25 to 96)",
        lambda facts: of_each(facts.speed_ups(PLACES), lambda one: one < 1 + SAME, "25 over 96 processes: "),
    ),
    Claim("III-A2", "DRAM and Memory mode alone did better than anticipated, 5.7 s and 9 s", better_than_estimate),
    Claim(
        "III-A2",
        "App Direct and SSD both performed worse than the anticipated estimates",
        lambda facts: of_each(
            facts.all_over_equation(named((OPTANE_DIRECT, *SSD), 96)), lambda one: one > 1, "over Eq. (1): "
        ),
    ),
    Claim(
        "III-A2",
        "Isilon performed as expected",
        lambda facts: of_figures(1, facts.all_over_equation(modes(ISILON, 96))),
    ),
    Claim("III-A2", "variance was found to be high on the local SSD", ssd_variance),
    Claim("III-A2", "total task durations have nearly quadrupled", quadrupled),
    Claim("III-A2", "Isilon decreased with respect to writes only, most others in both", isilon_only_writes),
    Claim(
        "III-A2",
        "App Direct: reads nearly 6x slower, writes only about 2x",
        lambda facts: slower_phases(facts, Case(OPTANE_DIRECT, 96), Case(OPTANE_DIRECT), (6, 2)),
    ),
    Claim(
        "III-A2", "for SSD and Isilon no significant difference between the modes", lambda facts: modes_alike(facts, 96)
    ),
    Claim(
        "III-A2",
        "parallel tasks: App Direct 88, Isilon 38 and 45, others 61-66",
        lambda facts: parallel_tasks(
            facts,
            96,
            {
                OPTANE_DIRECT: (88, 88),
                **dict.fromkeys((OPTANE_MEMORY, DRAM, *SSD), (61, 66)),
                ISILON_MEMORY: (38, 38),
                ISILON_DIRECT: (45, 45),
            },
        ),
    ),
)
"""In the order of the paper."""
