"""The situation before a run: the participants that remain to be analysed, what exists already, and the machine with
its tiers."""

from __future__ import annotations

import os
import statistics
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path

from neurotier.advice.calibration import ObservedJob, choose, fit, proportional, read_observed
from neurotier.advice.placements import COLD, Placement, caches
from neurotier.advice.predict import Fetching, Inputs, Participant, Storage
from neurotier.advice.rehearsal import LONGEST_S, measure_cold_start, read_rehearsed, rehearse_shared
from neurotier.core.control_groups import usable_cores
from neurotier.core.errors import InputError, SourceError
from neurotier.core.files import Record, read_json
from neurotier.core.parallelism import peak
from neurotier.core.places import Places
from neurotier.core.settings import Settings
from neurotier.core.tables import grouped
from neurotier.dataset.bids import size_of
from neurotier.dataset.commands import ask_annex
from neurotier.dataset.contents import is_present
from neurotier.meter.others import others_share
from neurotier.meter.residency import resident_share
from neurotier.model.machine import Processors
from neurotier.model.this_machine import page_cache_here, processors_here, read_probed
from neurotier.run.disturbance import read_readings
from neurotier.run.jobs import clone_on, load_dataset
from neurotier.run.participants import Selected, names_of_shares, selected_by
from neurotier.run.plan import Plan

HALF = 0.5
"""Share of the CPU time of fetching that is attributed to the participant, and not to the start of the job."""


@dataclass(frozen=True)
class Situation:
    """The state of a results folder and of this machine, read on demand.

    Attributes
    ----------
    settings, places
        Of the run.
    checks
        Tables of what a node of a cluster found of the tiers; this machine is then a node of the same class. Empty if
        jobs run on this machine alone.
    """

    settings: Settings
    places: Places
    checks: Sequence[Path] = ()

    @cached_property
    def plan(self) -> Plan:
        return Plan(self.settings, self.places)

    @cached_property
    def participants(self) -> Selected:
        """All participants that the index selects, with their images."""
        return selected_by(self.places.images_table)

    @cached_property
    def sizes(self) -> dict[str, int]:
        """Size of every participant's images, bytes."""
        return {name: size_of(images) for name, images in self.participants.items()}

    @cached_property
    def remaining(self) -> list[str]:
        """The participants to analyse: those that are not done, or all of them if all are done, or in a campaign."""
        if self.settings.is_campaign:
            return list(self.participants)
        return [name for name in self.participants if not self.places.record(name).exists()] or list(self.participants)

    @cached_property
    def observed(self) -> list[ObservedJob]:
        """Participant jobs that have been run.

        Raises
        ------
        InputError
            If there are none.
        """
        observed = read_observed(self.settings, self.places)
        if not observed:
            raise InputError("no participant has been analysed with these settings", self.places.results)
        return observed

    def others_share(self, rehearsed: Record) -> float | None:
        """Share of the processors that other processes took during the rehearsal or, without that, during the
        calibration, if known."""
        shared = rehearsed.get("shared") or {}
        if shared.get("others_cpu_share") is not None:
            return float(shared["others_cpu_share"])
        if self.settings.advice.calibration:
            return None
        run = max(self.observed, key=lambda job: job.start_s).run
        jobs = [job for job in self.observed if job.run == run]
        facts = read_json(self.places.runs / f"{run}.json")
        if facts.get("row"):
            known: float | None = facts["row"].get("others_cpu_share")
            return known
        span = min(job.start_s for job in jobs), max(job.end_s for job in jobs)
        share = others_share(read_readings(self.places.readings(run)), *span, facts["cpus"])
        return share if isinstance(share, float) else None

    @cached_property
    def fetching(self) -> Fetching:
        """How images are fetched while participants are analysed.

        Not at all in runs of a campaign, since all images are present before they begin, nor in a cluster's jobs, since
        images are fetched on Snakemake's machine.
        """
        with_fetch = [(job.size_bytes, job.got) for job in self.observed if job.got]
        if self.settings.is_campaign or self.plan.is_plain or not with_fetch or self.checks:
            return Fetching()
        at_once = self.settings.dataset.concurrent_gets
        if self.settings.advice.calibration:  # the calibration's images, of another dataset, come from another source
            return Fetching(at_once=at_once)
        fetched = [size_bytes if got.get("fetched_files") else 0 for size_bytes, got in with_fetch]
        # the waits of several fetches at once may add up to more than the time that passed
        waits_s = [max(0.0, got["wall_s"] - got["cpu_s"] - got["run_queue_s"]) for _, got in with_fetch]
        took = fit(fetched, waits_s)
        if not took.per_byte:  # images of nearly one size show no growth: many would cost as much as one
            took = proportional(fetched, waits_s)
        cpu_s = HALF * statistics.median(got["cpu_s"] for _, got in with_fetch) if any(fetched) else 0.0
        known = min(at_once, sum(map(bool, fetched)) or at_once)
        return Fetching(cpu_s, took.base, took.per_byte, known, at_once - known)

    @property
    def jobs(self) -> list[list[int]]:
        """The participants of each job, as positions in ``remaining``, in the order in which they are started."""
        count = len(names_of_shares(len(self.remaining), self.settings, bool(self.checks)))
        order = sorted(range(len(self.remaining)), key=lambda number: -self.sizes[self.remaining[number]])
        return [order[first::count] for first in range(count)]

    @property
    def copiers(self) -> int:
        """How many participants of a job copy while others compute; none in the runs of a campaign."""
        return 0 if self.settings.is_campaign else self.settings.shares.staging_beside

    def rehearse(self, chosen: Sequence[str], log: Path) -> Record:
        """Analyse participants of the calibration once more, to learn what the calibration does not show.

        Parameters
        ----------
        chosen
            Participants of the calibration; none if the records of another results folder serve as calibration.
        log
            File for the jobs' output.

        Returns
        -------
        dict
            ``shared``: the result of :func:`neurotier.advice.rehearsal.rehearse_shared`, or ``None`` if participants do
            not share jobs, or take too long. ``load_s``: the result of
            :func:`neurotier.advice.rehearsal.measure_cold_start`. ``why``: why these are unknown; otherwise empty.
        """
        found: Record = {"shared": None, "load_s": {}, "why": ""}
        images = {name: self.participants[name] for name in chosen}
        dataset, links_to = load_dataset(self.places), self.settings.dataset.links_to
        missing = [
            name for name in chosen if not all(is_present(dataset.path, one.path, links_to) for one in images[name])
        ]
        if missing or not chosen:
            gone = f"images of {missing[0]} are not here any more" if missing else ""
            return found | {"why": gone or "its calibration is that of another results folder"}
        taken_s = sum(job.end_s - job.start_s for job in self.observed if job.participant in images)
        if len(chosen) > 1 and len(self.remaining) > 1 and taken_s <= LONGEST_S:
            found["shared"] = rehearse_shared(self.settings, self.places, images, log)
        if COLD in caches(self.settings):
            name = min(chosen, key=self.sizes.__getitem__)
            files = [dataset.path / image.path for image in images[name]]
            found["load_s"] = measure_cold_start(self.settings, self.places, name, images[name], files, log)
        return found

    def to_fetch(self, tier: str) -> dict[str, int]:
        """How many bytes of each participant's images are still to be fetched to the dataset tier."""
        clone, links_to = clone_on(self.settings, self.places, tier), self.settings.dataset.links_to
        return {
            name: size_of([image for image in self.participants[name] if not is_present(clone, image.path, links_to)])
            for name in self.remaining
        }

    def resident(self, cache: str, tier: str) -> float:
        """Share of the images that is in the page cache when jobs read them. Images that are still to be fetched count
        as cached."""
        if cache in ("cold", "warm"):
            return 0.0 if cache == "cold" else 1.0
        clone, links_to = clone_on(self.settings, self.places, tier), self.settings.dataset.links_to
        paths = [image.path for name in self.remaining for image in self.participants[name]]
        here = [clone / path for path in paths if is_present(clone, path, links_to)]
        share = resident_share(here)
        whole = sum(self.sizes[name] for name in self.remaining)
        here_bytes = sum(file.stat().st_size for file in here)
        return 1.0 if share is None or not whole else 1 - here_bytes * (1 - share) / whole

    def inputs(self, tables: Sequence[Path], rehearsed: Record) -> Inputs:
        """The inputs of the model.

        Parameters
        ----------
        tables
            Probe tables of the tiers.
        rehearsed
            What :meth:`rehearse` returned; empty if there was no rehearsal.
        """
        probes = {table.stem: read_probed(table) for table in tables}
        to_fetch = self.to_fetch(self.settings.placement["dataset"])
        tried = read_rehearsed(rehearsed, self.participants, self.plan.threads)
        share = self.others_share(rehearsed)
        # other processes wait for the processors as ours did
        queueing = statistics.fmean(job.queueing for job in tried or self.observed)
        cores = len(os.sched_getaffinity(0))
        others = max(0.0, (share or 0.0) * cores * queueing - (cores - usable_cores()))  # a quota leaves them the rest
        processors, runs = processors_here(self.plan.threads, others), grouped((job.run, job) for job in self.observed)
        return Inputs(
            observed=[job for each in runs.values() for job in on_own_cores(each, processors)],
            participants=[
                Participant(
                    self.sizes[name], to_fetch[name], images=1 if self.settings.is_app else len(self.participants[name])
                )
                for name in self.remaining
            ],
            fetching=self.fetching,
            probes=probes,
            processors=processors,
            page_cache=page_cache_here(0.0),
            jobs=self.jobs,
            copiers=self.copiers,
            rehearsed=on_own_cores(tried, processors),
            load_s=rehearsed.get("load_s") if COLD in caches(self.settings) else None,
            load_unknown_because=rehearsed.get("why", ""),
            others_cpu_share=share,
        )

    def storage(self, tiers: Placement, cache: str, inputs: Inputs) -> Storage:
        """The storage that a workload sees with a placement."""
        return Storage(
            tiers=tiers,
            figures={name: probe.usual for name, probe in inputs.probes.items()},
            resident=self.resident(cache, tiers["dataset"]),
            expiry_s=inputs.page_cache.expiry_s,
            load_s=(inputs.load_s or {}) if cache == COLD else {},
        )


def on_own_cores(jobs: Sequence[ObservedJob], processors: Processors) -> list[ObservedJob]:
    """The jobs of one run with the CPU time that each would have taken on a core of its own: hardware threads that
    share a core are slower, which the model itself takes into account."""
    at_once = peak([(job.start_s, job.end_s) for job in jobs])
    speed = replace(processors, others=0.0).speed(min(at_once, processors.threads))
    return [
        replace(job, phases={phase: took | {"cpu_s": took["cpu_s"] * speed} for phase, took in job.phases.items()})
        for job in jobs
    ]


def choose_first(situation: Situation) -> list[str]:
    """The participants to analyse first: some that are done already, otherwise some whose images are here, otherwise
    any; none if the records of another results folder serve as calibration.

    Raises
    ------
    SourceError
        If git-annex knows of no copy of an image of a chosen participant.
    """
    settings = situation.settings
    if settings.advice.calibration:
        situation.observed  # noqa: B018  # an error in that folder should be raised before minutes of probing
        return []
    sizes = situation.sizes
    count = min(settings.advice.participants, len(sizes))
    done = {name: size for name, size in sizes.items() if situation.places.record(name).exists()}
    if len(done) >= count:
        return choose(done, count)
    dataset, links_to = load_dataset(situation.places).path, settings.dataset.links_to
    missing = {
        name: [image.path for image in images if not is_present(dataset, image.path, links_to)]
        for name, images in situation.participants.items()
    }
    here = {name: size for name, size in sizes.items() if not missing[name]}
    if len(here) >= count:
        return choose(here, count)
    chosen = choose(sizes, count)
    records, _ = ask_annex(dataset, "whereis", [path for name in chosen for path in missing[name]])
    for record in records:
        if not (record["whereis"] or record["untrusted"]):
            raise SourceError(
                "cannot be analysed as a calibration: git-annex knows of no copy of its content",
                record["file"],
                "name in advice.calibration the results folder of another run with the same tool",
            )
    return chosen
