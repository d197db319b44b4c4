"""The paper's claims about the BIDS App example, and what the logs say of each."""

from __future__ import annotations

from neurotier.published.bids_app import CONDITIONS, PARALLELISMS
from neurotier.published.claims.facts import AbsentError, Facts, known
from neurotier.published.claims.judging import UNKNOWN, Claim, Judgement, listed, of_all, of_each, of_truths

MEMORY, DIRECT, SSD, ISILON = (placement for placement, _ in CONDITIONS.values())
GREW = 1.1
"""What grew by less than a tenth has not grown."""

SIMILAR = 1.15
"""Speed-ups are similar of which the greatest is at most so many times the least."""

DATALAD_SITES = 32
"""Sites of CoRR that are available, by the paper's introduction."""


def of_placements(facts: Facts, column: str, processes: int) -> dict[str, float]:
    """Means of a column by placement, of at least two that have runs; in the order that the paper gives them."""
    names = (MEMORY, DIRECT, SSD, ISILON) if column == "makespan_s" else (MEMORY, SSD, DIRECT, ISILON)
    found = known({name: name for name in names}, lambda name: facts.bids(column, name, processes))
    if len(found) < 2:
        raise AbsentError(f"runs of {next(iter(found))} alone with {processes} processes")
    return found


def without_runs(facts: Facts) -> list[str]:
    """Placements that have no runs with 25 and 96 processes."""
    known_of = facts.bids_placements(PARALLELISMS)
    return [placement for placement, _ in CONDITIONS.values() if placement not in known_of]


def direct_behind_ssd(facts: Facts) -> Judgement:
    truths, texts = [], []
    for processes in PARALLELISMS:
        found = {name: facts.bids("makespan_s", name, processes) for name in (SSD, DIRECT)}
        truths.append(found[DIRECT] > found[SSD])
        texts.append(f"{processes}: {listed(found, ' s')}")
    return of_truths(truths, "; ".join(texts))


def memory_first(facts: Facts) -> Judgement:
    truths, texts = [], []
    for processes in PARALLELISMS:
        found = of_placements(facts, "makespan_s", processes)
        truths.append(min(found.values()) == found.get(MEMORY))
        truths += [max(found.values()) == found[ISILON]] if ISILON in found else []
        texts.append(f"{processes}: {listed(found, ' s')}")
    return of_all(of_truths(truths, "; ".join(texts)), without_runs(facts))


def similar_factors(facts: Facts) -> Judgement:
    found = {placement: 1 / ratio for placement, ratio in facts.bids_growth("makespan_s").items()}
    if len(found) < 2:
        raise AbsentError("runs of fewer than two placements with 25 and 96 processes")
    judged = of_truths([max(found.values()) / min(found.values()) < SIMILAR], listed(found, " times"))
    return of_all(judged, without_runs(facts))


def grew(facts: Facts, column: str) -> Judgement:
    found = facts.bids_growth(column)
    if not found:
        raise AbsentError("no placement has runs with 25 and 96 processes")
    return of_each(found, lambda one: one > GREW, "96 over 25: ")


def least(facts: Facts) -> Judgement:
    truths, texts = [], []
    for column, what in (("io_sum_s", "I/O"), ("cpu_sum_s", "CPU")):
        for processes in PARALLELISMS:
            found = of_placements(facts, column, processes)
            truths.append(list(found.values()) == sorted(found.values()))
            texts.append(f"{what} with {processes}: {listed(found, ' s')}")
    return of_all(of_truths(truths, "; ".join(texts)), without_runs(facts))


def entire_dataset(facts: Facts) -> Judgement:
    tasks = {row["participant"] for row in facts.replay.bids_app.participants}
    if not tasks:
        return Judgement("no run of the BIDS App example", UNKNOWN)
    sites = {task.rpartition("_")[0] for task in tasks}
    text = f"{len(tasks)} participants of {len(sites)} sites; the introduction counts {DATALAD_SITES} available sites"
    return of_truths([len(sites) >= DATALAD_SITES], text)


CLAIMS = (
    Claim("II-D2", "we used the entire CoRR dataset", entire_dataset),
    Claim("III-C", "the makespan of App Direct is longer than that of the local disk", direct_behind_ssd),
    Claim("III-C", "Memory mode performs better than others while Isilon has the longest makespan", memory_first),
    Claim("III-C", "25 to 96: performance improved by a similar factor on all devices", similar_factors),
    Claim("III-C", "a significant increase in the I/O time at 96 processes", lambda facts: grew(facts, "io_sum_s")),
    Claim("III-C", "also an increase in CPU processing", lambda facts: grew(facts, "cpu_sum_s")),
    Claim("III-C", "tmpfs spends least I/O and CPU, then local disk, Optane, and Isilon", least),
)
"""In the order of the paper."""
