"""Read what the run report is made from: the tables and records of a results folder, as far as they exist.

A report is needed most when something went wrong, so nothing here fails because a file is missing: missing and
unreadable files are listed on the page.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any

from neurotier.core.errors import StateError, all_without_credentials, one_line
from neurotier.core.files import read_json
from neurotier.core.parallelism import PHASES
from neurotier.core.places import Places
from neurotier.core.settings import Settings
from neurotier.core.tables import Row, Rows, grouped, read_table
from neurotier.meter.usage import ACCOUNT
from neurotier.pages.kit.page import Data
from neurotier.run.profile_tables import account_sum_s

Record = dict[str, Any]

TABLES = (
    *("profile/profile", "profile/traffic", "profile/runs", "profile/steps", "profile/jobs"),
    *("group/group", "index/images", "index/skipped"),
)
"""The tables, by their paths in the results folder."""

SUMMED = ("staged_bytes",)
"""Columns of the profile that the table of participants shows as sums over phases, besides its times."""

SHOWN_COLUMNS = {
    "images": ("participant",),
    "profile": (
        *("run", "participant", "phase", "work_tier", "start_s", "end_s", "wall_s", "user_s", "cpu_s"),
        *("account", *ACCOUNT, "residual_s", "run_queue_s", "block_io_s", "memory_stall_s"),
        *("max_rss_bytes", "fetch_s", *SUMMED, "left_behind", "input_bytes", "input_resident_before"),
    ),
    "group": ("participant", "site", "image", "brain_voxels", "brain_volume_mm3", "robust_z", "outlier"),
}
"""The columns read from tables with rows for every participant, which might not fit into memory as a whole."""


LEAST_MM3, MOST_MM3 = 880e3, 1950e3
"""The volumes that masks of adult brains should have at least and at most.

Brains of 975 to 1,499 cm3 were measured in 46 adults (Allen, Damasio and Grabowski, 2002, American Journal of Physical
Anthropology 118, 341-358) and of 1,173 to 1,626 cm3 in 20 (Filipek et al., 1994, Cerebral Cortex 4, 344-360). These
limits are 10 % below the least and 20 % above the greatest, since masks include some of the fluid around the brain.
"""

CLOCKS_S = 3.0
"""How far the clocks of a node and of the scheduler may differ, s; the scheduler's times are whole seconds."""


class Known(Record):
    """A record that gives ``None`` for a missing key, since the record of a killed run may lack some."""

    def __missing__(self, key: str) -> None:
        return None


@dataclass(frozen=True, kw_only=True)
class ReportData(Data):
    """Everything that the run report shows: tables, without rows if they are missing, and records.

    Attributes
    ----------
    dataset, container, tool, facts
        ``index/dataset.json``, ``index/image.json`` (empty without a container), ``index/tool.json``, and the facts of
        the run started last; each gives ``None`` for a missing key.
    versions
        The software of each run, oldest run first.
    failures
        Records of failed participants.
    missing
        A sentence for each file that is missing or cannot be read.
    """

    dataset: Record = field(default_factory=Known)
    container: Record = field(default_factory=Known)
    tool: Record = field(default_factory=Known)
    facts: Record = field(default_factory=Known)
    versions: Mapping[str, Record] = field(default_factory=dict)
    failures: Sequence[Record] = ()
    missing: Sequence[str] = ()

    @property
    def last_run(self) -> Row | None:
        """The row of the last run that finished participant jobs; if none did, of the last run."""
        finished = [run for run in self["runs"] if run["participants"]] or self["runs"]
        return finished[-1] if finished else None

    @cached_property
    def jobs(self) -> Rows:
        """The participant jobs of the profile, slowest first."""
        return participant_jobs(self["profile"])

    @cached_property
    def cluster(self) -> Rows:
        """Rows of ``jobs.tsv``: starts of cluster jobs with participants in the last run; none on one machine."""
        last = self.last_run
        return [row for row in self["jobs"] if last and row["run"] == last["run"] and row["share"] is not None]

    @cached_property
    def last_jobs(self) -> Rows:
        """The participant jobs of the last run, slowest first, each with its ``node`` if known."""
        jobs = [job for job in self.jobs if self.last_run and job["run"] == self.last_run["run"]]
        nodes = node_of(self.cluster, jobs)
        return [job | {"node": nodes.get(job["participant"])} for job in jobs]

    @property
    def nodes(self) -> list[str]:
        """The nodes that ran a job in the last run, sorted by name."""
        return sorted({row["node"] for row in self.cluster if row["node"]})

    @cached_property
    def selected(self) -> set[str]:
        """The participants to analyse; without the table of images, those in the profile and among the failures."""
        known = self["images"] or [*self["profile"], *self.failures]
        return {str(row["participant"]) for row in known}

    @cached_property
    def failed(self) -> set[str]:
        """The participants whose last attempt failed."""
        return {str(failure["participant"]) for failure in self.failures} & self.selected

    @cached_property
    def done(self) -> set[str]:
        """The participants with results whose last attempt did not fail."""
        return ({row["participant"] for row in self["profile"]} & self.selected) - self.failed

    @cached_property
    def not_run(self) -> set[str]:
        """The participants without results who did not fail."""
        return self.selected - self.done - self.failed

    @property
    def tier_kinds(self) -> dict[str, str]:
        """Kind of each tier by its name."""
        return {name: tier.kind for name, tier in self.settings.tiers.items()}


def node_of(cluster: Iterable[Row], participants: Iterable[Row]) -> dict[str, str]:
    """The node of each participant: that of the latest job with the participant that began before the participant."""
    began_s = {row["participant"]: row["start_s"] for row in participants}
    return {
        name: row["node"]
        for row in sorted(began(cluster), key=lambda row: float(row["started_s"]))
        for name in (row["members"] or "").split()
        if row["node"] and name in began_s and row["started_s"] <= began_s[name] + CLOCKS_S
    }


def began(cluster: Iterable[Row]) -> Rows:
    """The jobs that began."""
    return [row for row in cluster if row["started_s"] is not None]


def participant_jobs(profile: Iterable[Row]) -> Rows:
    """A row for each participant job, slowest first: its ``phases``, which are rows of the profile, and their sums;
    those of causes are unknown if more than 1 % of the wall time has no account."""
    rows = []
    for (participant, run), phases in grouped(((row["participant"], row["run"]), row) for row in profile).items():
        found: Row = {"participant": participant, "run": run, "phases": phases}
        found |= {"start_s": min(row["start_s"] for row in phases), "fetch_s": phases[0]["fetch_s"]}
        found |= {name: total(row[name] for row in phases) for name in ("wall_s", "cpu_s", *SUMMED)}
        found |= {name: account_sum_s(phases, name) for name in ACCOUNT}
        found |= {f"{phase}_s": total(row["wall_s"] for row in phases if row["phase"] == phase) for phase in PHASES}
        rows.append(found | {"largest_process_bytes": max(row["max_rss_bytes"] for row in phases)})
    return sorted(rows, key=lambda row: (-row["wall_s"], row["participant"]))


def accounted(jobs: Iterable[Row]) -> Rows:
    """The participant jobs with an account of the wall time of at least one phase."""
    return [job for job in jobs if any(row["account"] is not None for row in job["phases"])]


def phases_of(jobs: Iterable[Row], *names: str) -> Rows:
    """The phases of some participant jobs with these names, by default all."""
    return [row for job in jobs for row in job["phases"] if not names or row["phase"] in names]


def total(values: Iterable[float | None]) -> float | None:
    """The sum of the known values; ``None`` if none is known."""
    known = [value for value in values if value is not None]
    return sum(known) if known else None


def doubts(row: Row) -> str:
    """Why a person should look at the mask of an image; empty for most."""
    found = [f"outlier (robust z {row['robust_z']:+.1f})"] if row["outlier"] else []
    found += [] if LEAST_MM3 <= row["brain_volume_mm3"] <= MOST_MM3 else ["outside the range of adults"]
    return ", ".join(found)


def collect(places: Places, settings: Settings) -> ReportData:
    """Read a results folder; missing files are noted in ``missing``."""
    missing: list[str] = []

    def read(path: Path, reader: Callable[[Path], Any]) -> Any:
        try:
            return reader(path)
        except FileNotFoundError:
            missing.append(f"{path.relative_to(places.results)} is missing")
        except (OSError, StateError) as error:
            missing.append(f"{path.relative_to(places.results)} cannot be read: {one_line(str(error))}")
        return None

    def table(path: Path) -> Rows:
        return read(path, lambda path: read_table(path, path.stem, SHOWN_COLUMNS.get(path.stem))) or []

    def record(path: Path) -> Record:
        return read(path, read_record) or Known()

    files = [places.results / f"{name}.tsv" for name in TABLES]
    files += [advice] if (advice := places.advice / "advice.tsv").exists() else []
    tables = {file.stem: table(file) for file in files}
    failures = [record(path) for path in sorted(places.failures.rglob("*.json"))]
    facts = [record(path) for path in sorted(places.runs.glob("*.json"))]
    facts.sort(key=lambda each: each["started_s"] or 0.0)
    return ReportData(
        tables,
        settings,
        places,
        dataset=record(places.dataset_facts),
        container=record(places.index / "image.json") if settings.image else Known(),
        tool=record(places.index / "tool.json"),
        facts=facts[-1] if facts else Known(),
        versions={each["run"]: each["versions"] or {} for each in facts},
        failures=[failure for failure in failures if failure["participant"]],
        missing=missing,
    )


def read_record(path: Path) -> Record:
    """A JSON object, without credentials."""
    content = read_json(path)
    if not isinstance(content, dict):
        raise StateError(path)
    return Known(all_without_credentials(content))
