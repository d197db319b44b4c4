"""Rows of ``advice.tsv``: a prediction for each placement, parallelism and state of the page cache."""

from __future__ import annotations

import statistics
from collections.abc import Mapping, Sequence
from dataclasses import replace
from itertools import accumulate

from neurotier.advice.calibration import costs_of
from neurotier.advice.placements import Placement, caches, candidates
from neurotier.advice.predict import Inputs, paper_s, predict
from neurotier.advice.room import free_on, room_for
from neurotier.advice.situation import Situation
from neurotier.advice.small_files import costs_here
from neurotier.advice.words import AT_ONCE, limit_text
from neurotier.analysis.app import app_name
from neurotier.analysis.needs import work_bytes
from neurotier.core.control_groups import usable_cores
from neurotier.core.parallelism import PHASES, fits
from neurotier.core.tables import Row, Rows, grouped
from neurotier.core.tiers import tier_named
from neurotier.model.this_machine import page_cache_here
from neurotier.run.needs import Needs, needs_of


def advice_rows(situation: Situation, inputs: Inputs, parallelism: Sequence[int], limits: Mapping[str, int]) -> Rows:
    """All rows of the table.

    Parameters
    ----------
    limits
        Snakemake resources that the jobs share, MB.
    """
    return [
        {"placement": name, **advice_row(situation, inputs, placement, cache, jobs, limits)}
        for jobs in parallelism
        for cache in caches(situation.settings)
        for name, placement in candidates(situation.settings, situation.checks).items()
        if placement["work"] in inputs.probes
    ]


def advice_row(
    situation: Situation, inputs: Inputs, placement: Placement, cache: str, jobs: int, limits: Mapping[str, int]
) -> Row:
    """One row. If memory or the work tier has room for fewer jobs than requested, the prediction is for those."""
    inputs, at_once, work = at_parallelism(situation, inputs, placement, jobs, limits)
    storage = situation.storage(placement, cache, inputs)
    prediction, count = predict(inputs, storage, at_once), len(situation.remaining)
    usual = prediction.usual
    tiers = {f"{role}_tier": tier for role, tier in placement.items()}
    return {
        "in_use": placement == situation.settings.placement,
        **tiers,
        "images_tier": tiers["images_tier"] if situation.settings.image else None,
        "tool": app_name(situation.settings),
        "cache": cache,
        "parallelism": jobs,
        "participants": count,
        "predicted_s": usual.makespan_s,
        "low_s": prediction.low_s,
        "high_s": prediction.high_s,
        "paper_s": paper_s(inputs, storage),
        "limit": limit_text(usual.limit, at_once, round(usable_cores()), situation.plan.threads)
        + (f", {at_once} at once, {AT_ONCE}" if at_once < min(jobs, count) else ""),
        "limit_share": usual.limits[usual.limit],
        "mean_parallelism": usual.mean_parallelism,
        **{f"{phase}_sum_s": usual.phase_sums_s[phase] for phase in PHASES},
        **files_of(inputs, placement, at_once),
        **room_of(situation, inputs, placement, work),
    }


def files_of(inputs: Inputs, placement: Placement, at_once: int) -> Row:
    """The number of all participants' files on the work tier, and what the files of one participant cost there, s."""
    cost = costs_here(inputs.observed, inputs.probes, at_once)[placement["work"]]
    made = costs_of(inputs.observed)["compute"]["made_files"]
    files = [made.of(one.size_bytes, one.images) for one in inputs.participants]
    return {"work_files": round(sum(files)), "files_s": statistics.fmean(files) * (cost.cpu_s + cost.wait_s)}


def at_parallelism(
    situation: Situation, inputs: Inputs, placement: Placement, jobs: int, limits: Mapping[str, int]
) -> tuple[Inputs, int, int]:
    """The model's inputs for ``jobs`` jobs at once; how many of these have a participant, memory, and room on the work
    tier, counted from the smallest participant; and the bytes that Snakemake reserves there for the largest.

    As many more participants are copied to the work tier while others compute as there is room for.
    """
    placed = replace(situation.settings, placement=placement)  # its work tier may be memory
    needs_mb = needs_of(Needs(placed, situation.places, situation.plan.on_cluster), situation.remaining)["mem_mb"]
    work = [work_bytes(situation.participants[name], placed) for name in situation.remaining]
    free_bytes = free_on(tier_named(placed, placement["work"]))[1]
    room_mb, room = limits.get("mem_mb", 1 << 60) or 1, sum(work) if free_bytes is None else max(1, free_bytes)
    at_once = min(jobs, *fits({"mem_mb": room_mb, "work": room}, {"mem_mb": needs_mb, "work": work}).values())
    participants = [
        replace(one, share=min(1.0, max(need_mb / room_mb, need / room)))
        for one, need_mb, need in zip(inputs.participants, needs_mb, work, strict=True)
    ]
    cache = page_cache_here(at_once * max(job.max_rss_bytes for job in inputs.observed))
    taken = [*accumulate(sorted(work, reverse=True))][: at_once + situation.copiers]
    reserved = max((one for one in taken if one <= room), default=taken[0])
    return replace(inputs, page_cache=cache, participants=participants), at_once, reserved


def room_of(situation: Situation, inputs: Inputs, placement: Placement, work: int) -> Row:
    """The room that a placement needs and has; ``work`` is what participants need on the work tier, bytes.

    An app's group level has a copy of all outputs of a site on the work tier, and leaves it with the results.
    """
    settings, sizes = situation.settings, situation.sizes
    left = costs_of(inputs.observed)["stage_out"]["written_bytes"].of
    sites = grouped((name.rpartition("/")[0], left(sizes[name])) for name in sizes)
    copies = [round(sum(of)) for of in sites.values() if settings.is_app and not settings.is_campaign]
    needed = {
        "dataset": 0 if situation.plan.is_plain else sum(situation.to_fetch(placement["dataset"]).values()),
        "work": max(work, *copies, 0),
        "results": round(sum(left(one.size_bytes, one.images) for one in inputs.participants)) + sum(copies),
    }
    return room_for(placement, needed, {name: free_on(tier_named(settings, name)) for name in placement.values()})
