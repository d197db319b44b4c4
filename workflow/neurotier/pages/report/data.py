"""What the run report is made from: the tables and records of a results folder, as far as they are there.

A report is wanted most when something went wrong, so nothing here fails for want of a file: what is missing or
cannot be read is listed, and the page says so.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any, TypeVar

from neurotier.core.errors import StateError, one_line
from neurotier.core.files import read_json
from neurotier.core.places import Places
from neurotier.core.settings import Settings
from neurotier.core.tables import Row, read_table
from neurotier.meter.usage import ACCOUNT
from neurotier.pages.report.cluster import Cluster
from neurotier.pages.report.times import ParticipantTime, participant_times

Record = dict[str, Any]
Content = TypeVar("Content")

SHOWN_COLUMNS = {
    "images": ("participant",),
    "profile": (
        *("run", "participant", "phase", "work_tier", "start_s", "end_s", "wall_s", "user_s", "cpu_s"),
        *("account", *ACCOUNT, "residual_s", "run_queue_s", "block_io_s", "memory_stall_s", "seen_share"),
        *("max_rss_bytes", "device_read_bytes", "staged_bytes", "left_behind", "input_bytes", "input_resident_before"),
    ),
    "group": ("participant", "site", "image", "brain_voxels", "brain_volume_mm3", "robust_z", "outlier"),
}
"""What figures and page use of tables with rows for every participant: all of it does not fit into memory."""


@dataclass(frozen=True)
class Tables:
    """What the figures are drawn from: rows of ``profile.tsv``, ``runs.tsv``, ``group.tsv`` and ``jobs.tsv``; any may
    be empty."""

    profile: Sequence[Row] = ()
    runs: Sequence[Row] = ()
    group: Sequence[Row] = ()
    jobs: Sequence[Row] = ()

    @cached_property
    def times(self) -> list[ParticipantTime]:
        """The participant jobs of the profile, slowest first."""
        return participant_times(self.profile)


@dataclass(frozen=True)
class ReportData:
    """Everything the run report shows.

    Attributes
    ----------
    results, figures, mosaics
        Folders: results folder, its figures, its mosaics; links on the page are relative to the page.
    settings
        The configuration at the time of the report.
    images, skipped, profile, traffic, runs, steps, group, jobs
        Rows of the tables of these names; empty if a table is missing.
    dataset, summary, container, facts
        ``index/dataset.json``, ``group/summary.json``, ``index/image.json`` (empty on the host), and the facts of the
        run started last; empty if missing.
    failures
        Records of failed participants, by participant.
    missing
        What was not there or could not be read, one sentence each.
    advice
        What was predicted, if anyone asked.
    probe
        What the tiers can do, if anyone has probed them.
    """

    results: Path
    figures: Path
    mosaics: Path
    settings: Settings
    images: list[Row] = field(default_factory=list)
    skipped: list[Row] = field(default_factory=list)
    profile: list[Row] = field(default_factory=list)
    traffic: list[Row] = field(default_factory=list)
    runs: list[Row] = field(default_factory=list)
    steps: list[Row] = field(default_factory=list)
    group: list[Row] = field(default_factory=list)
    jobs: list[Row] = field(default_factory=list)
    dataset: Record = field(default_factory=dict)
    summary: Record = field(default_factory=dict)
    container: Record = field(default_factory=dict)
    facts: Record = field(default_factory=dict)
    failures: list[Record] = field(default_factory=list)
    missing: list[str] = field(default_factory=list)
    advice: list[Row] = field(default_factory=list)
    probe: list[Row] = field(default_factory=list)

    @cached_property
    def selected(self) -> set[str]:
        """Participants to analyse; without the table of images, those that left any trace."""
        listed = {row["participant"] for row in self.images}
        return listed or {row["participant"] for row in self.profile} | {str(f["participant"]) for f in self.failures}

    @cached_property
    def failed(self) -> set[str]:
        """Participants whose last attempt failed."""
        return {str(failure["participant"]) for failure in self.failures} & self.selected

    @cached_property
    def done(self) -> set[str]:
        """Participants with results, whose last attempt did not fail."""
        return ({row["participant"] for row in self.profile} & self.selected) - self.failed

    @cached_property
    def not_run(self) -> set[str]:
        """Participants without results that did not fail either."""
        return self.selected - self.done - self.failed

    @property
    def last_run(self) -> Row | None:
        """Row of the last run that finished participant jobs."""
        return self.runs[-1] if self.runs else None

    @cached_property
    def cluster(self) -> Cluster | None:
        """Jobs and nodes of the last run; ``None`` if it was on one machine."""
        run = self.last_run
        return Cluster.of(self.jobs, participant_times(self.profile), run["run"]) if run else None

    @property
    def tier_kinds(self) -> dict[str, str]:
        """Kind of each tier by its name: as configured, and of the run started last as it was then."""
        kinds = {name: tier.kind for name, tier in self.settings.tiers.items()}
        facts = self.facts.get("tiers") or {}
        return kinds | {tier["name"]: tier["kind"] for tier in facts.values() if {"name", "kind"} <= tier.keys()}


def collect(places: Places, settings: Settings) -> ReportData:
    """Read a results folder; what is missing is noted in ``missing``."""
    missing: list[str] = []

    def read(path: Path, reader: Callable[[Path], Content], empty: Content) -> Content:
        try:
            return reader(path)
        except FileNotFoundError:
            missing.append(f"{path.relative_to(places.results)} is missing")
        except (OSError, StateError, ValueError, KeyError, TypeError) as error:
            missing.append(f"{path.relative_to(places.results)} cannot be read: {one_line(str(error))}")
        return empty

    def table(folder: Path, name: str) -> list[Row]:
        return read(folder / f"{name}.tsv", lambda path: read_shown(path, name), [])

    def record(path: Path) -> Record:
        return read(path, read_record, {})

    failures = [read(path, read_failure, None) for path in sorted(places.failures.rglob("*.json"))]
    return ReportData(
        results=places.results,
        figures=places.figures,
        mosaics=places.mosaics,
        settings=settings,
        images=table(places.index, "images"),
        skipped=table(places.index, "skipped"),
        profile=table(places.profile, "profile"),
        traffic=table(places.profile, "traffic"),
        runs=table(places.profile, "runs"),
        steps=table(places.profile, "steps"),
        group=table(places.group, "group"),
        jobs=table(places.profile, "jobs"),
        dataset=record(places.index / "dataset.json"),
        summary=record(places.group / "summary.json"),
        container=record(places.index / "image.json") if settings.image else {},
        facts=last_facts([record(path) for path in sorted(places.runs.glob("*.json"))]),
        failures=[failure for failure in failures if failure is not None],
        missing=missing,
        advice=table(places.advice, "advice") if (places.advice / "advice.tsv").exists() else [],
        probe=table(places.probe, "probe") if (places.probe / "probe.tsv").exists() else [],
    )


def read_shown(path: Path, table: str) -> list[Row]:
    """The rows of a table, with those columns that figures and page use."""
    return read_table(path, table, SHOWN_COLUMNS.get(table))


def read_record(path: Path) -> Record:
    """A JSON object; anything else is a ``ValueError``."""
    content = read_json(path)
    if not isinstance(content, dict):
        raise ValueError("not a JSON object")
    return content


def read_failure(path: Path) -> Record | None:
    """A failure's record, which must at least name the participant."""
    record = read_record(path)
    record["participant"]  # a KeyError here is reported as an unreadable record
    return record


def last_facts(facts: list[Record]) -> Record:
    """The facts of the run that started last."""
    return max(facts, key=lambda record: float(record.get("started_s") or 0.0), default={})
