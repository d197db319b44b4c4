"""The paper's claims about all devices and images (its abstract and section IV), and what the logs say of each."""

from __future__ import annotations

import statistics
from contextlib import suppress
from typing import Any

from neurotier.bigbrain.image import BLOCKS
from neurotier.model.loaded import loaded
from neurotier.published.bids_app import CONDITIONS
from neurotier.published.bigbrain import SPARK, TASK, BlockRun
from neurotier.published.claims.facts import (
    DRAM,
    ISILON,
    ISILON_DIRECT,
    ISILON_MEMORY,
    OPTANE,
    OPTANE_DIRECT,
    OPTANE_MEMORY,
    SAME,
    SSD,
    AbsentError,
    Case,
    Facts,
    known,
    name,
    named,
)
from neurotier.published.claims.judging import (
    Claim,
    Judgement,
    figure,
    listed,
    of_all,
    of_each,
    of_figures,
    of_truths,
)
from neurotier.published.evidence import streams_of
from neurotier.published.server import DRAM_BYTES, MEMORY_DEVICES

BIDS_MEMORY, BIDS_DIRECT, BIDS_SSD, BIDS_ISILON = (placement for placement, _ in CONDITIONS.values())
SIZES = [(processes, size) for size in (40, 20) for processes in (25, 96)]


def memory_superior(facts: Facts) -> Judgement:
    abouts: dict[str, tuple[Any, ...]] = {f"{size} µm with {processes}": (processes, size) for processes, size in SIZES}
    abouts |= {f"20 µm with {processes}, Spark": (processes, 20, SPARK) for processes in (25, 96)}
    found = known(
        abouts, lambda about: facts.makespan_s(OPTANE_DIRECT, *about) / facts.makespan_s(OPTANE_MEMORY, *about)
    )
    truths = [(value > 1 + SAME) != one.endswith("Spark") for one, value in found.items()]
    return of_truths(truths, f"App Direct over Memory mode: {listed(found, ' times')}")


def optane_superior(facts: Facts) -> Judgement:
    """Optane in either mode against the SSD and Isilon, on the 40 um image and in the BIDS App example."""

    def ratio(case: Case) -> float:
        others = known(named((*SSD, *ISILON), case.processes), lambda one: facts.makespan_s(*one))
        return min(others.values()) / facts.makespan_s(*case)

    def bids_ratio(case: tuple[str, int]) -> float:
        placement, processes = case
        others = known(
            {BIDS_SSD: BIDS_SSD, BIDS_ISILON: BIDS_ISILON}, lambda one: facts.bids("makespan_s", one, processes)
        )
        return min(others.values()) / facts.bids("makespan_s", placement, processes)

    cases = {f"{place[1]} with {processes}": Case(place, processes) for place in OPTANE for processes in (25, 96)}
    bids = {
        f"BIDS, {one.removeprefix('Optane ')} with {processes}": (one, processes)
        for one in (BIDS_MEMORY, BIDS_DIRECT)
        for processes in (25, 96)
    }
    found = known(cases, ratio)
    with suppress(AbsentError):
        found |= known(bids, bids_ratio)
    judged = of_each(found, lambda one: one > 1, "the best of SSD and Isilon over Optane: ")
    return of_all(judged, [case for case in (*cases, *bids) if case not in found])


def never_exceeded(facts: Facts) -> Judgement:
    size = 2 * facts.runs(OPTANE_MEMORY, 25, 20)[0].data_bytes
    text = f"read and written on tmpfs: {figure(size / 1e9)} GB; DRAM: {figure(DRAM_BYTES / 1e9)} GB"
    took = {f"{um} µm": facts.mean("increment_s", OPTANE_MEMORY, 25, um) / BLOCKS[um] for um in (20, 40)}
    return of_truths([size < DRAM_BYTES], f"{text}; reading a block of equal size: {listed(took, ' s')}")


def link_speed(facts: Facts) -> Judgement:
    seen = loaded(streams_of(facts.runs(ISILON_MEMORY)[0]))
    found = {"only reads": 8 * seen.read_bytes_per_s / 1e9, "only writes": 8 * seen.write_bytes_per_s / 1e9}
    return of_truths([min(found.values()) > 5], f"{listed(found, ' Gbit/s')}: a link of 1 Gbit/s")


def gaps(facts: Facts) -> Judgement:
    def between_s(run: BlockRun) -> float:
        ended = {task.block for task in run.named(TASK)}
        inside_s = sum(one.duration_s for one in run.work if one.block in ended)
        return (run.sum_s(TASK) - inside_s) / max(len(ended), 1)

    places = DRAM, OPTANE_DIRECT, SSD[1], ISILON_DIRECT
    found = {name(place): statistics.fmean(map(between_s, facts.runs(place))) for place in places}
    truths = [(value > 1) == (one == name(ISILON_DIRECT)) for one, value in found.items()]
    return of_truths(truths, f"per task, outside its phases: {listed(found, ' s')}")


CLAIMS = (
    Claim("Abstract", "persistent memory is superior to other devices but DRAM, in both modes", optane_superior),
    Claim("IV-A", "in all cases but Spark, Memory mode was superior to App Direct", memory_superior),
    Claim("IV-A", "memory required at any moment did not exceed the available DRAM (20 µm)", never_exceeded),
    Claim(
        "IV-C",
        "with all devices, DRAM's expected makespan is around 3 s",
        lambda facts: of_figures(3, {"": facts.equation_s(DRAM) / MEMORY_DEVICES}, " s"),
    ),
    Claim(
        "IV-C",
        "App Direct always took more time than its sequential estimates",
        lambda facts: of_each(
            known(
                {f"{about[1]} µm with {about[0]}": Case(OPTANE_DIRECT, *about) for about in SIZES}, facts.over_equation
            ),
            lambda one: one > 1,
            "over Eq. (1): ",
        ),
    ),
    Claim("IV-C", "Isilon is limited by the network speed of 10 Gbps", link_speed),
    Claim("IV-C", "spacing between phases on Isilon and on no other device", gaps),
)
"""In the order of the paper."""
