"""The paper's claims about all devices and images (its abstract and section IV), and what the logs say of each."""

from __future__ import annotations

from contextlib import suppress

from neurotier.model.loaded import loaded
from neurotier.published.bids_app import CONDITIONS
from neurotier.published.bigbrain import GNU_PARALLEL, SPARK, TASK, BlockRun
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
    AbsentError,
    Facts,
    Place,
    name,
    named,
)
from neurotier.published.claims.judging import (
    Claim,
    Judgement,
    figure,
    known,
    listed,
    of_all,
    of_figures,
    of_truths,
)
from neurotier.published.evidence import streams_of
from neurotier.published.server import DRAM_BYTES, MEMORY_DEVICES

BIDS_MEMORY, BIDS_DIRECT, BIDS_SSD, BIDS_ISILON = (placement for placement, _ in CONDITIONS.values())


def memory_superior(facts: Facts) -> Judgement:
    cases = {
        f"{size} µm with {processes}{words}": (processes, size, engine)
        for size, engine, words in ((40, GNU_PARALLEL, ""), (20, GNU_PARALLEL, ""), (20, SPARK, ", Spark"))
        for processes in (25, 96)
    }

    def ratio(case: tuple[int, int, str]) -> float:
        return facts.makespan_s(OPTANE_DIRECT, *case) / facts.makespan_s(OPTANE_MEMORY, *case)

    found = known(cases, ratio)
    truths = {one: (value > 1 + SAME) != one.endswith("Spark") for one, value in found.items()}
    return of_truths(truths, f"App Direct over Memory mode: {listed(found, ' times')}")


def direct_always_beyond(facts: Facts) -> Judgement:
    cases = {f"{size} µm with {processes}": (processes, size) for size in (40, 20) for processes in (25, 96)}
    found = known(cases, lambda case: facts.makespan_s(OPTANE_DIRECT, *case) / facts.equation_s("Optane", case[1]))
    return of_truths({one: value > 1 for one, value in found.items()}, f"over Eq. (1): {listed(found, ' times')}")


def optane_superior(facts: Facts) -> Judgement:
    """Optane in either mode against the SSD and Isilon, on the 40 um image and in the BIDS App example."""

    def ratio(case: tuple[Place, int]) -> float:
        others = known(named((*SSD, *ISILON)), lambda place: facts.makespan_s(place, case[1]))
        return min(others.values()) / facts.makespan_s(*case)

    def bids_ratio(case: tuple[str, int]) -> float:
        others = known(
            {one: one for one in (BIDS_SSD, BIDS_ISILON)}, lambda one: facts.bids("makespan_s", one, case[1])
        )
        return min(others.values()) / facts.bids("makespan_s", *case)

    cases = {
        f"{place[1]} with {processes}": (place, processes)
        for place in (OPTANE_MEMORY, OPTANE_DIRECT)
        for processes in (25, 96)
    }
    bids = {
        f"BIDS, {one.removeprefix('Optane ')} with {processes}": (one, processes)
        for one in (BIDS_MEMORY, BIDS_DIRECT)
        for processes in (25, 96)
    }
    found = known(cases, ratio)
    with suppress(AbsentError):
        found |= known(bids, bids_ratio)
    truths = {one: value > 1 for one, value in found.items()}
    judged = of_truths(truths, f"the best of SSD and Isilon over Optane: {listed(found, ' times')}")
    return of_all(judged, [case for case in (*cases, *bids) if case not in found])


def never_exceeded(facts: Facts) -> Judgement:
    size = 2 * facts.runs(OPTANE_MEMORY, 25, 20)[0].data_bytes
    text = f"read and written on tmpfs: {figure(size / 1e9)} GB; DRAM: {figure(DRAM_BYTES / 1e9)} GB"
    took = {"20 µm": facts.read_s(OPTANE_MEMORY, 25, 20) / 1000, "40 µm": facts.read_s(OPTANE_MEMORY, 25) / 125}
    return of_truths({"fits": size < DRAM_BYTES}, f"{text}; reading a block of equal size: {listed(took, ' s')}")


def dram_twelfth(facts: Facts) -> Judgement:
    return of_figures(3, {"": facts.equation_s("DRAM") / MEMORY_DEVICES}, " s")


def link_speed(facts: Facts) -> Judgement:
    run = facts.runs(ISILON_MEMORY, 25)[0]
    seen = loaded(streams_of(run))
    found = {"only reads": 8 * seen.read_bytes_per_s / 1e9, "only writes": 8 * seen.write_bytes_per_s / 1e9}
    return of_truths({"10": min(found.values()) > 5}, f"{listed(found, ' Gbit/s')}: a link of 1 Gbit/s")


def gaps(facts: Facts) -> Judgement:
    def between_s(run: BlockRun) -> float:
        ended = {task.block for task in run.named(TASK)}
        inside_s = sum(one.duration_s for one in run.work if one.block in ended)
        return (run.sum_s(TASK) - inside_s) / max(len(ended), 1)

    places = DRAM, OPTANE_DIRECT, SSD_DIRECT, ISILON_DIRECT
    found = {name(place): facts.mean(between_s, place, 25) for place in places}
    truths = {one: (value > 1) == (one == name(ISILON_DIRECT)) for one, value in found.items()}
    return of_truths(truths, f"per task, outside its phases: {listed(found, ' s')}")


CLAIMS = (
    Claim("Abstract", "persistent memory is superior to other devices but DRAM, in both modes", optane_superior),
    Claim("IV-A", "in all cases but Spark, Memory mode was superior to App Direct", memory_superior),
    Claim("IV-A", "memory required at any moment did not exceed the available DRAM (20 µm)", never_exceeded),
    Claim("IV-C", "with all devices, DRAM's expected makespan is around 3 s", dram_twelfth),
    Claim("IV-C", "App Direct always took more time than its sequential estimates", direct_always_beyond),
    Claim("IV-C", "Isilon is limited by the network speed of 10 Gbps", link_speed),
    Claim("IV-C", "spacing between phases on Isilon and on no other device", gaps),
)
"""In the order of the paper."""
