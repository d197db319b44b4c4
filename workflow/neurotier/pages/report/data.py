"""What the run report is made from: the tables and records of a results folder, as far as they are there.

A report is wanted most when something went wrong, so nothing here fails for want of a file: what is missing or
cannot be read is listed, and the page says so.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any

from neurotier.core.errors import StateError, one_line
from neurotier.core.files import read_json
from neurotier.core.places import Places
from neurotier.core.settings import Settings
from neurotier.core.tables import Row, read_table
from neurotier.meter.usage import ACCOUNT
from neurotier.pages.report.cluster import Cluster
from neurotier.pages.report.times import ParticipantTime, participant_times

Record = dict[str, Any]

TABLES = {
    "profile": ("profile", "traffic", "runs", "steps", "jobs"),
    "group": ("group",),
    "index": ("images", "skipped"),
}
"""The tables, by their folders."""

SHOWN_COLUMNS = {
    "images": ("participant",),
    "profile": (
        *("run", "participant", "phase", "work_tier", "start_s", "end_s", "wall_s", "user_s", "cpu_s"),
        *("account", *ACCOUNT, "residual_s", "run_queue_s", "block_io_s", "memory_stall_s"),
        *("max_rss_bytes", "staged_bytes", "left_behind", "input_bytes", "input_resident_before"),
    ),
    "group": ("participant", "site", "image", "brain_voxels", "brain_volume_mm3", "robust_z", "outlier"),
}
"""What figures and page use of tables with rows for every participant: all of it does not fit into memory."""


LEAST_MM3, MOST_MM3 = 880e3, 1950e3
"""Volumes that masks of adult brains have.

Brains of 975 to 1,499 cm3 were measured in 46 adults (Allen, Damasio and Grabowski, 2002, American Journal of Physical
Anthropology 118, 341-358) and of 1,173 to 1,626 cm3 in 20 (Filipek et al., 1994, Cerebral Cortex 4, 344-360). These are
10 % less than the least and 20 % more than the most, for masks hold some of the fluid around the brain as well.
"""


@dataclass(frozen=True, kw_only=True)
class ReportData:
    """Everything the run report shows.

    Attributes
    ----------
    places
        The results folder; links on the page are relative to the page.
    settings
        The configuration at the time of the report.
    profile, runs, group, jobs, images, skipped, traffic, steps, advice
        Rows of the tables of these names; empty if a table is missing.
    dataset, container, facts
        ``index/dataset.json``, ``index/image.json`` (empty on the host), and the facts of the
        run started last; empty if missing.
    failures
        Records of failed participants, by participant.
    missing
        What was not there or could not be read, one sentence each.
    """

    places: Places
    settings: Settings
    profile: Sequence[Row] = ()
    runs: Sequence[Row] = ()
    group: Sequence[Row] = ()
    jobs: Sequence[Row] = ()
    images: Sequence[Row] = ()
    skipped: Sequence[Row] = ()
    traffic: Sequence[Row] = ()
    steps: Sequence[Row] = ()
    advice: Sequence[Row] = ()
    dataset: Record = field(default_factory=dict)
    container: Record = field(default_factory=dict)
    facts: Record = field(default_factory=dict)
    failures: Sequence[Record] = ()
    missing: Sequence[str] = ()

    @cached_property
    def times(self) -> list[ParticipantTime]:
        """The participant jobs of the profile, slowest first."""
        return participant_times(self.profile)

    @property
    def last_run(self) -> Row | None:
        """Row of the last run that finished participant jobs."""
        return self.runs[-1] if self.runs else None

    @cached_property
    def last_times(self) -> list[ParticipantTime]:
        """The participant jobs of the last run, slowest first."""
        return [time for time in self.times if self.last_run and time.run == self.last_run["run"]]

    @cached_property
    def cluster(self) -> Cluster | None:
        """Jobs and nodes of the last run; ``None`` if it was on one machine."""
        jobs = [row for row in self.jobs if self.last_run and row["run"] == self.last_run["run"]]
        of_participants = [row for row in jobs if row["share"] is not None]
        return Cluster(of_participants, self.last_times) if of_participants else None

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
    def tier_kinds(self) -> dict[str, str]:
        """Kind of each tier by its name."""
        return {name: tier.kind for name, tier in self.settings.tiers.items()}


def is_plausible(row: Row) -> bool:
    """Whether an adult may have the brain volume of an image."""
    return bool(LEAST_MM3 <= row["brain_volume_mm3"] <= MOST_MM3)


def doubts(row: Row) -> str:
    """Why the mask of an image is to be looked at; nothing for most."""
    found = [f"outlier (robust z {row['robust_z']:+.1f})"] if row["outlier"] else []
    return ", ".join(found if is_plausible(row) else [*found, "beyond what adults have"])


def collect(places: Places, settings: Settings) -> ReportData:
    """Read a results folder; what is missing is noted in ``missing``."""
    missing: list[str] = []

    def read(path: Path, reader: Callable[[Path], Any]) -> Any:
        try:
            return reader(path)
        except FileNotFoundError:
            missing.append(f"{path.relative_to(places.results)} is missing")
        except (OSError, StateError) as error:
            missing.append(f"{path.relative_to(places.results)} cannot be read: {one_line(str(error))}")
        return None

    def table(folder: Path, name: str) -> list[Row]:
        return read(folder / f"{name}.tsv", lambda path: read_table(path, name, SHOWN_COLUMNS.get(name))) or []

    def record(path: Path) -> Record:
        return read(path, read_record) or {}

    tables: dict[str, Any] = {
        name: table(places.results / folder, name) for folder, names in TABLES.items() for name in names
    }
    failures = [record(path) for path in sorted(places.failures.rglob("*.json"))]
    facts = [record(path) for path in sorted(places.runs.glob("*.json"))]
    return ReportData(
        places=places,
        settings=settings,
        **tables,
        advice=table(places.advice, "advice") if (places.advice / "advice.tsv").exists() else [],
        dataset=record(places.index / "dataset.json"),
        container=record(places.index / "image.json") if settings.image else {},
        facts=max(facts, key=lambda each: float(each.get("started_s") or 0.0), default={}),
        failures=[failure for failure in failures if "participant" in failure],
        missing=missing,
    )


def read_record(path: Path) -> Record:
    """A JSON object."""
    content = read_json(path)
    if not isinstance(content, dict):
        raise StateError(path)
    return content
