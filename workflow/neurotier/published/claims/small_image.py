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
    SSD_DIRECT,
    Facts,
    Place,
    name,
    named,
)
from neurotier.published.claims.judging import (
    CONTRADICTED,
    PARTLY,
    Claim,
    Judgement,
    figure,
    known,
    listed,
    of_figures,
    of_truths,
)
from neurotier.published.conditions import PLACES

Case = tuple[Place, int]
"""A device in a mode, and how many processes."""


def fastest(facts: Facts) -> Judgement:
    times = {name(place): facts.makespan_s(place, 25) for place in PLACES}
    return of_truths(
        {"least": min(times, key=lambda one: times[one]) == "DRAM", "7.6": abs(times["DRAM"] - 7.6) < 0.1},
        listed(times, " s"),
    )


def optane_second(facts: Facts) -> Judgement:
    return of_figures(10.2, {name(OPTANE_MEMORY): facts.makespan_s(OPTANE_MEMORY, 25)}, " s")


def direct_12_times(facts: Facts) -> Judgement:
    return of_figures(12, {"": facts.makespan_s(OPTANE_DIRECT, 25) / facts.makespan_s(OPTANE_MEMORY, 25)}, " times")


def isilon_120_times(facts: Facts) -> Judgement:
    base_s = facts.makespan_s(OPTANE_MEMORY, 25)
    found = {place[1]: facts.makespan_s(place, 25) / base_s for place in ISILON}
    return of_truths({mode: value > 120 for mode, value in found.items()}, listed(found, " times"))


def modes_alike(facts: Facts, processes: int) -> Judgement:
    """The makespans of a device in both modes, by Welch's test; of three repetitions each, it sees only much."""
    from scipy.stats import ttest_ind

    truths, texts = {}, []
    for memory, direct in (SSD, ISILON):
        one, other = ([run.makespan_s for run in facts.runs(place, processes)] for place in (memory, direct))
        chance = float(ttest_ind(one, other, equal_var=False).pvalue) if min(len(one), len(other)) > 1 else 1.0
        truths[memory[0]] = chance > 0.05
        means = " and ".join(figure(statistics.fmean(values)) for values in (one, other))
        texts.append(f"{memory[0]} {means} s (p = {figure(chance)})")
    return of_truths(truths, "; ".join(texts))


def direct_beyond_estimate(facts: Facts) -> Judgement:
    return of_figures(2.2, {"": facts.makespan_s(OPTANE_DIRECT, 25) / facts.equation_s("Optane")}, " times")


def ssd_beyond_estimate(facts: Facts) -> Judgement:
    own_s, drawn_s = facts.equation_s("local SSD"), facts.ssd_as_drawn_s()
    took_s = [facts.makespan_s(place, 25) for place in SSD]
    own = " and ".join(figure(one / own_s) for one in took_s)
    drawn = " and ".join(figure(one / drawn_s) for one in took_s)
    text = f"{own} times with the SSD's own bandwidths ({figure(own_s)} s); {drawn} times as drawn, with DRAM's write"
    return Judgement(f"{text} bandwidth ({figure(drawn_s)} s)", CONTRADICTED if max(took_s) < own_s else PARTLY)


def dram_below_estimate(facts: Facts) -> Judgement:
    return of_figures(5, {"": facts.equation_s("DRAM") / facts.makespan_s(DRAM, 25)}, " times")


def memory_below_estimate(facts: Facts) -> Judgement:
    took_s, table_s = facts.makespan_s(OPTANE_MEMORY, 25), facts.equation_s("Optane")
    drawn_s = facts.drawn_equation_s(OPTANE_MEMORY)
    text = f"{figure(drawn_s / took_s)} times by the benchmark of tmpfs in Memory mode, as drawn ({figure(drawn_s)} s)"
    text += f"; {figure(table_s / took_s)} times by Table I ({figure(table_s)} s)"
    return of_truths(
        {"drawn": abs(drawn_s / took_s / 3.8 - 1) < 0.1, "table": abs(table_s / took_s / 3.8 - 1) < 0.1}, text
    )


def isilon_below_estimate(facts: Facts) -> Judgement:
    ratios = {place[1]: facts.equation_s("Isilon") / facts.makespan_s(place, 25) for place in ISILON}
    truths = {"1.1": abs(ratios["App Direct"] / 1.1 - 1) < 0.05, "less": ratios["App Direct"] < ratios["Memory mode"]}
    return of_truths(truths, listed(ratios, " times"))


def slower_phases(facts: Facts, over: Case, under: Case, said: tuple[float, float]) -> Judgement:
    """How many times as long a device with so many processes reads and writes as another."""
    reads = facts.read_s(*over) / facts.read_s(*under)
    writes = facts.write_s(*over) / facts.write_s(*under)
    truths = {"reads": abs(reads / said[0] - 1) < 0.1, "writes": abs(writes / said[1] - 1) < 0.1}
    return of_truths(truths, f"{figure(reads)} times reading, {figure(writes)} times writing")


def ssd_phases(facts: Facts) -> Judgement:
    reads = {place[1]: facts.read_s(place, 25) / facts.read_s(DRAM, 25) for place in SSD}
    writes = {place[1]: facts.write_s(place, 25) / facts.write_s(DRAM, 25) for place in SSD}
    truths = {f"reads, {mode}": abs(value / 96 - 1) < 0.1 for mode, value in reads.items()}
    truths |= {f"writes, {mode}": abs(value - 1) < 0.2 for mode, value in writes.items()}
    return of_truths(truths, f"reads: {listed(reads, ' times')}; writes: {listed(writes, ' times')}")


def ssd_headers(facts: Facts) -> Judgement:
    return of_figures(90, {place[1]: facts.header_s(place, 25) / facts.header_s(DRAM, 25) for place in SSD}, " times")


def isilon_headers(facts: Facts) -> Judgement:
    found = {place[1]: facts.header_s(place, 25) / facts.header_s(DRAM, 25) for place in ISILON}
    return of_truths({mode: value > 5000 for mode, value in found.items()}, listed(found, " times"))


def isilon_reads(facts: Facts) -> Judgement:
    found = {name(place): facts.read_s(place, 25) for place in (*ISILON, *SSD)}
    truths = {one[1]: found[name(one)] < found[name(other)] for one, other in zip(ISILON, SSD, strict=True)}
    return of_truths(truths, listed(found, " s"))


def isilon_writes(facts: Facts) -> Judgement:
    return of_figures(184, {place[1]: facts.write_s(place, 25) / facts.write_s(DRAM, 25) for place in ISILON}, " times")


def parallelism_25(facts: Facts) -> Judgement:
    said = {DRAM: 17.2, OPTANE_DIRECT: 24.0, SSD_DIRECT: 24.0, ISILON_DIRECT: 14.0}
    found = {place: facts.parallelism(place, 25) for place in said}
    truths = {name(place): abs(found[place] / said[place] - 1) < SAME for place in said}
    return of_truths(truths, listed({name(place): value for place, value in found.items()}))


def no_reduction(facts: Facts) -> Judgement:
    found = known(named(PLACES), facts.speed_up)
    truths = {one: value < 1 + SAME for one, value in found.items()}
    return of_truths(truths, f"25 over 96 processes: {listed(found, ' times')}")


def better_than_estimate(facts: Facts) -> Judgement:
    times = {place: facts.makespan_s(place, 96) for place in PLACES}
    better = {place: times[place] < facts.equation_s(place[0]) for place in PLACES}
    truths = {"7.6": abs(times[DRAM] - 5.7) < 0.1 and abs(times[OPTANE_MEMORY] - 9) < 0.1}
    truths["only"] = {place for place, is_better in better.items() if is_better} == {DRAM, OPTANE_MEMORY}
    others = [name(place) for place, is_better in better.items() if is_better and place not in (DRAM, OPTANE_MEMORY)]
    text = listed({name(place): times[place] for place in (DRAM, OPTANE_MEMORY)}, " s")
    return of_truths(truths, text + (f"; by Table I also {', '.join(others)}" if others else ""))


def worse_than_estimate(facts: Facts) -> Judgement:
    found = {name(place): facts.makespan_s(place, 96) / facts.equation_s(place[0]) for place in (OPTANE_DIRECT, *SSD)}
    return of_truths({one: value > 1 for one, value in found.items()}, f"over Eq. (1): {listed(found, ' times')}")


def isilon_as_expected(facts: Facts) -> Judgement:
    return of_figures(
        1, {place[1]: facts.makespan_s(place, 96) / facts.equation_s("Isilon") for place in ISILON}, " times"
    )


def ssd_variance(facts: Facts) -> Judgement:
    spreads = {}
    for place in PLACES:
        times_s = [run.makespan_s for run in facts.all_runs(place, 96)]
        spreads[place] = max(times_s) / min(times_s)
    most = max(spreads, key=lambda place: spreads[place])
    truths = {"most": most[0] == "local SSD"}
    return of_truths(truths, f"slowest over fastest repetition: {listed({name(one): spreads[one] for one in PLACES})}")


def quadrupled(facts: Facts) -> Judgement:
    def total_s(place: Place, processes: int) -> float:
        return facts.mean(lambda run: run.header_s + run.increment_s + run.write_s, place, processes)

    return of_figures(4, {name(place): total_s(place, 96) / total_s(place, 25) for place in PLACES}, " times")


def isilon_only_writes(facts: Facts) -> Judgement:
    reads = {place: facts.read_s(place, 96) / facts.read_s(place, 25) for place in PLACES}
    writes = {place: facts.write_s(place, 96) / facts.write_s(place, 25) for place in ISILON}
    truths = {f"reads, {place[1]}": reads[place] < 1.2 for place in ISILON}
    truths |= {f"writes, {place[1]}": value > 1.2 for place, value in writes.items()}
    truths["others"] = all(value > 1.2 for place, value in reads.items() if place not in ISILON)
    text = f"reads, 96 over 25: {listed({name(place): value for place, value in reads.items()})}"
    return of_truths(truths, f"{text}; Isilon's writes: {listed({place[1]: value for place, value in writes.items()})}")


def parallelism_96(facts: Facts) -> Judgement:
    said: dict[Place, tuple[float, float]] = {
        OPTANE_DIRECT: (88, 88),
        **dict.fromkeys((OPTANE_MEMORY, DRAM, *SSD), (61, 66)),
        ISILON_MEMORY: (38, 38),
        ISILON_DIRECT: (45, 45),
    }
    found = {place: facts.parallelism(place, 96) for place in said}
    truths = {name(place): low * (1 - SAME) < found[place] < high * (1 + SAME) for place, (low, high) in said.items()}
    return of_truths(truths, listed({name(place): value for place, value in found.items()}))


CLAIMS = (
    Claim("III-A1", "DRAM is the most efficient, with a makespan of 7.6 s", fastest),
    Claim("III-A1", "Memory mode is a close second with a makespan of 10.2 s", optane_second),
    Claim("III-A1", "App Direct is approximately 12x slower than Memory mode", direct_12_times),
    Claim("III-A1", "Isilon in both modes is more than 120x slower than Optane in Memory mode", isilon_120_times),
    Claim(
        "III-A1",
        "other than for Optane, no significant difference between the modes",
        lambda facts: modes_alike(facts, 25),
    ),
    Claim("III-A1", "Optane (App Direct) was approximately 2.2x slower than expected", direct_beyond_estimate),
    Claim("III-A1", "local SSD was approximately 1.4x slower than expected, in both modes", ssd_beyond_estimate),
    Claim("III-A1", "DRAM was almost 5x faster than what was estimated", dram_below_estimate),
    Claim("III-A1", "Memory mode is 3.8x faster than expected", memory_below_estimate),
    Claim("III-A1", "Isilon in App Direct mode had a smaller difference, 1.1x faster", isilon_below_estimate),
    Claim(
        "III-A1",
        "App Direct 7x slower in terms of reading and 23x in terms of writing",
        lambda facts: slower_phases(facts, (OPTANE_DIRECT, 25), (OPTANE_MEMORY, 25), (7, 23)),
    ),
    Claim("III-A1", "SSD: similar write times as DRAM, reads approximately 96x slower", ssd_phases),
    Claim("III-A1", "header loading for the SSD is 90x longer than that of DRAM", ssd_headers),
    Claim("III-A1", "Isilon's header load times are more than 5000x slower than DRAM's", isilon_headers),
    Claim("III-A1", "read/increment times on Isilon are faster than that of the SSD", isilon_reads),
    Claim("III-A1", "Isilon's writes are around 184x slower than DRAM", isilon_writes),
    Claim("III-A1", "parallel tasks: DRAM 17.2, Optane 24, SSD 24, Isilon 14", parallelism_25),
    Claim("III-A2", "no visible reduction in makespan (25 to 96)", no_reduction),
    Claim("III-A2", "DRAM and Memory mode alone did better than anticipated, 5.7 s and 9 s", better_than_estimate),
    Claim("III-A2", "App Direct and SSD both performed worse than the anticipated estimates", worse_than_estimate),
    Claim("III-A2", "Isilon performed as expected", isilon_as_expected),
    Claim("III-A2", "variance was found to be high on the local SSD", ssd_variance),
    Claim("III-A2", "total task durations have nearly quadrupled", quadrupled),
    Claim("III-A2", "Isilon decreased with respect to writes only, most others in both", isilon_only_writes),
    Claim(
        "III-A2",
        "App Direct: reads nearly 6x slower, writes only about 2x",
        lambda facts: slower_phases(facts, (OPTANE_DIRECT, 96), (OPTANE_DIRECT, 25), (6, 2)),
    ),
    Claim(
        "III-A2", "for SSD and Isilon no significant difference between the modes", lambda facts: modes_alike(facts, 96)
    ),
    Claim("III-A2", "parallel tasks: App Direct 88, Isilon 38 and 45, others 61-66", parallelism_96),
)
"""In the order of the paper."""
