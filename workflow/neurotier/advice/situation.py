"""The situation before a run: who is left, what is there already, and what the machine and its tiers are."""

from __future__ import annotations

import statistics
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

from neurotier.advice.calibration import choose_calibration, read_seen, size_of
from neurotier.advice.observed import Seen, gaps_s, others_busy
from neurotier.advice.placements import Candidate, candidates
from neurotier.advice.predict import Known
from neurotier.advice.scaling import fit
from neurotier.advice.workload import Launch, Participant, Placed
from neurotier.analysis.app import app_name
from neurotier.core.errors import InputError, SettingsError
from neurotier.core.files import read_json
from neurotier.core.places import Places
from neurotier.core.settings import Settings
from neurotier.core.tiers import Tier
from neurotier.dataset.bids import Image
from neurotier.dataset.contents import is_present
from neurotier.meter.residency import resident_share
from neurotier.model.this_machine import page_cache_here, processors_here, read_probed
from neurotier.run.plan import Plan


@dataclass(frozen=True)
class Situation:
    """What a results folder and this machine tell before a run."""

    settings: Settings
    places: Places

    @cached_property
    def plan(self) -> Plan:
        return Plan(self.settings, self.places)

    @cached_property
    def people(self) -> Mapping[str, Sequence[Image]]:
        """Everyone whom the index selects."""
        return self.plan.read(self.places.index / "images.tsv")

    @cached_property
    def left(self) -> list[str]:
        """Who is to be analysed: everyone in a campaign; else those who are not done, or all again if all are."""
        if self.settings.campaign.placements:
            return list(self.people)
        return [name for name in self.people if not self.places.record(name).exists()] or list(self.people)

    @cached_property
    def is_folder(self) -> bool:
        """Whether the dataset is a plain folder, which is read where it lies."""
        return bool(read_json(self.places.index / "dataset.json")["kind"] == "folder")

    @cached_property
    def seen(self) -> list[Seen]:
        """Participant jobs that have been run.

        Raises
        ------
        InputError
            If there are none.
        """
        named = self.settings.advice.calibration
        seen = read_seen(self.settings, self.places, Path(named) if named else None)
        if not seen:
            raise InputError("no participant has been analysed with these settings", where=str(self.places.results))
        return seen

    @cached_property
    def gaps_s(self) -> list[float]:
        """What passed between two jobs of a slot, s."""
        return gaps_s(self.seen)

    @cached_property
    def others(self) -> float:
        """How many processes of others kept the processors busy meanwhile; not known of another run."""
        if self.settings.advice.calibration:
            return 0.0
        facts = {file.stem: read_json(file) for file in self.places.runs.glob("*.json")}
        here = [job for job in self.seen if facts[job.run]["host"] == job.host]
        slots = {run: fact["parallelism"] or 1 for run, fact in facts.items()}
        return others_busy(here, facts[here[0].run]["cpus"], slots) if here else 0.0

    @cached_property
    def launch(self) -> Launch:
        """What comes before a job. The runs of a campaign fetch nothing: all is there before they begin."""
        gap_s = statistics.median(self.gaps_s) if self.gaps_s else None
        got = [job for job in self.seen if job.get_cpu_s is not None]
        if self.settings.campaign.placements or self.is_folder or not got:
            return Launch(gap_s)
        cpu_s = statistics.median(job.get_cpu_s or 0.0 for job in got)
        if self.settings.advice.calibration:  # another dataset comes from elsewhere
            return Launch(gap_s, cpu_s)
        fetched = [job.size_bytes if job.fetched_files else 0 for job in got]
        fetching = fit(fetched, [job.get_wait_s or 0.0 for job in got])
        return Launch(gap_s, cpu_s, fetching.base, fetching.per_byte)

    @cached_property
    def job_bytes(self) -> int:
        """Memory that a job takes, at most."""
        return max(job.max_rss_bytes for job in self.seen)

    def clone_on(self, tier: str) -> Path:
        """Where the dataset is, or would be, with the role dataset on a tier."""
        path = Path(read_json(self.places.index / "dataset.json")["path"])
        return path if self.is_folder else Tier.from_settings(self.settings.tiers[tier]).folder("datasets") / path.name

    def to_fetch(self, tier: str) -> dict[str, int]:
        """Bytes that everyone who is left still needs on the dataset tier."""
        clone, links_to = self.clone_on(tier), self.settings.dataset.links_to
        return {
            name: size_of([image for image in self.people[name] if not is_present(clone, image.path, links_to)])
            for name in self.left
        }

    def resident(self, cache: str, tier: str) -> float:
        """Share of the images that is in the page cache when the jobs read them; what is fetched has just come in."""
        if cache in ("cold", "warm"):
            return 0.0 if cache == "cold" else 1.0
        clone, links_to = self.clone_on(tier), self.settings.dataset.links_to
        paths = [image.path for name in self.left for image in self.people[name]]
        here = [clone / path for path in paths if is_present(clone, path, links_to)]
        share = resident_share(here)
        whole = sum(size_of(self.people[name]) for name in self.left)
        there = sum(file.stat().st_size for file in here)
        return 1.0 if share is None or not whole else 1 - there * (1 - share) / whole

    def known(self, tables: Sequence[Path]) -> Known:
        """What the model is given, by tables of the tiers' probes."""
        probes = {table.stem: read_probed(table) for table in tables}
        to_fetch = self.to_fetch(self.settings.placement["dataset"])
        return Known(
            seen=self.seen,
            gaps_s=self.gaps_s,
            participants=[Participant(size_of(self.people[name]), to_fetch[name]) for name in self.left],
            launch=self.launch,
            probes=probes,
            processors=processors_here(self.plan.threads, self.others),
            page_cache=page_cache_here(0.0),
        )

    def placed(self, candidate: Candidate, cache: str, known: Known) -> Placed:
        """A placement as a workload sees it."""
        return Placed(
            tiers=candidate.tiers,
            kinds={name: tier.kind for name, tier in self.settings.tiers.items()},
            create_s={name: probe.usual.create_s for name, probe in known.probes.items()},
            resident=self.resident(cache, candidate.tiers["dataset"]),
            expiry_s=known.page_cache.expiry_s,
        )

    @property
    def candidates(self) -> list[Candidate]:
        """Placements to judge."""
        return candidates(self.settings)

    @property
    def tool(self) -> str:
        """Name of the tool or app."""
        return app_name(self.settings)


def choose_first(situation: Situation, facts: Mapping[str, Any]) -> list[str]:
    """Who is analysed first; nobody if the records of another results folder are given.

    Parameters
    ----------
    situation
        What there is.
    facts
        What the run noted of itself.

    Raises
    ------
    SettingsError
        If the jobs go to a cluster: only this machine can be predicted.
    """
    settings = situation.settings
    if facts["parallelism"] is None and not settings.campaign.placements:
        fix = "start it with --cores and without a cluster's profile, on a node like those of the jobs"
        raise SettingsError("predicts runs on one machine, and jobs go to a cluster", where="target advise", fix=fix)
    if settings.advice.calibration:
        situation.seen  # noqa: B018  # what is wrong with that folder is said before tiers are probed for minutes
        return []
    return choose_calibration(situation.people, settings, situation.places)
