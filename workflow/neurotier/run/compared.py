"""Collect the runs of results folders as rows of the comparison's tables, and decide which runs are compared."""

from __future__ import annotations

import statistics
from collections import Counter
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

from neurotier.core.errors import InputError, StateError, one_line
from neurotier.core.files import read_json, read_json_or_empty
from neurotier.core.kinds import is_in_memory
from neurotier.core.quantities import counted, share_of
from neurotier.core.tables import Row, Rows, checker, columns, read_table, write_table

MEMORY = "memory"
"""Cache state of inputs on a tier in memory."""

OWN_SOURCES = ("staging", "growth", "page_cache")
"""Sources of traffic figures that count different bytes, so that their figures can be added."""

OTHER_VIEW = "cgroup"
"""A source that counts the same bytes again where they reach a device; it is used only where no other has a figure."""

TABLES = ("compared_runs", "compared_participants", "compared_bytes")
WAYS = ["read_bytes", "written_bytes"]


@dataclass(frozen=True)
class Compared:
    """Rows of ``compared_runs.tsv``, ``compared_participants.tsv`` and ``compared_bytes.tsv``."""

    runs: Rows = field(default_factory=list)
    participants: Rows = field(default_factory=list)
    traffic: Rows = field(default_factory=list)

    def __add__(self, other: Compared) -> Compared:
        return Compared(self.runs + other.runs, self.participants + other.participants, self.traffic + other.traffic)


def is_compared(run: Row) -> bool:
    """Whether a run takes part in the comparison."""
    return bool(run["valid"] == VALID and run["makespan_s"] is not None)


def write_comparison_tables(compared: Compared, folder: Path) -> None:
    """Write the three tables of a comparison.

    Raises
    ------
    InputError
        If two runs have the same name: their participants could not be told apart.
    """
    for (origin, run), count in Counter((run["origin"], run["run"]) for run in compared.runs).items():
        if count > 1:
            raise InputError("is compared with itself", f"run {run} of {origin}", "name each folder once")
    for table, rows in zip(TABLES, (compared.runs, compared.participants, compared.traffic), strict=True):
        write_table(folder / f"{table}.tsv", table, rows)


def read_comparison_tables(folder: Path) -> Compared:
    """Read the three tables of a comparison."""
    return Compared(*(read_table(folder / f"{table}.tsv", table) for table in TABLES))


def runs_of_results(
    folder: Path,
    origin: str,
    placement: str | None = None,
    repetition: int | None = None,
    cache: str = "as found",
) -> Compared:
    """All runs of a results folder.

    Parameters
    ----------
    folder
        Results folder.
    origin
        What the comparison calls this folder; runs are compared within one origin.
    placement
        Name of the placement; by default derived from its tiers (:func:`placement_label`).
    repetition
        Repetition of the condition, if known.
    cache
        State of the page cache before the runs; ignored for a dataset on a tier in memory.

    Raises
    ------
    InputError
        If the folder has no tables of a run, or if they are not as this version writes them.
    """
    tables = {}
    for name in ("runs", "profile", "traffic"):
        with reading(folder / "profile" / f"{name}.tsv") as path:
            tables[name] = read_table(path, name)
            for row in tables[name]:
                checker(name)(row)
    everyone = len({row["participant"] for row in tables["profile"]})
    compared = Compared()
    for run in tables["runs"]:
        phases, flows = ([row for row in tables[name] if row["run"] == run["run"]] for name in ("profile", "traffic"))
        kept = len({row["participant"] for row in phases})
        whole_phases = phases
        if kept != run["participants"]:
            whole_phases, flows = [], []
        with reading(folder / "state" / "runs" / f"{run['run']}.json") as path:
            in_memory = path.exists() and is_in_memory(read_json(path)["tiers"]["dataset"]["kind"])
        starts = [row["wall_s"] for row in whole_phases if row["phase"] == "container_start"]
        known = {
            "origin": origin,
            "placement": placement or placement_label(run),
            "repetition": repetition,
            "cache": MEMORY if in_memory else cache,
            "logged_makespan_s": None,
            "container_start_median_s": statistics.median(starts) if starts else None,
            # a tier in memory has no page cache in front of it
            "input_resident_before": None if in_memory else resident_before(whole_phases),
            "valid": validity(run, everyone, kept),
        }
        with reading(folder / "profile" / "traffic.tsv"):
            moved = tier_bytes(flows)
        compared += Compared(
            [cells_of("compared_runs", run | known)],
            [cells_of("compared_participants", {"origin": origin, **row}) for row in phases],
            [{"origin": origin, "run": run["run"], **row} for row in moved],
        )
    return compared


def cells_of(table: str, row: Row) -> Row:
    """The cells of a row for the columns of a table."""
    return {name: row[name] for name in columns(table)}


@contextmanager
def reading(path: Path, fix: str = "let this version of neurotier write the folder's tables again") -> Iterator[Path]:
    """Raise :class:`InputError` if a file of another run is missing, or is not as this version writes it."""
    try:
        yield path
    except FileNotFoundError:
        raise InputError("is not there", path, "give a results folder with a finished run") from None
    except (ArithmeticError, AttributeError, LookupError, StateError, TypeError, ValueError) as error:
        reason = one_line(f"{type(error).__name__}: {error}")
        raise InputError(f"is not what this version writes ({reason})", path, fix) from None


def placement_label(run: Row) -> str:
    """Name of a placement from the tiers of dataset, work and results, as short as is unambiguous.

    The images tier is named only where a container was used: runs on the host are another placement.

    >>> tiers = {"dataset_tier": "nfs", "work_tier": "tmpfs", "images_tier": None, "results_tier": "nfs"}
    >>> placement_label(tiers), placement_label(tiers | {"work_tier": "nfs"})
    ('nfs→tmpfs', 'nfs')
    >>> placement_label(tiers | {"results_tier": "disk", "images_tier": "disk"})
    'nfs→tmpfs→disk, image on disk'
    """
    dataset, work, results, images = (run[f"{role}_tier"] for role in ("dataset", "work", "results", "images"))
    way = [dataset, work, results]
    if dataset == results:
        way = [dataset] if dataset == work else [dataset, work]
    label = "→".join(way)
    return label if images is None else f"{label}, image on {images}"


def validity(run: Row, everyone: int, kept: int) -> str:
    """Validity of a run, which also requires that it did all participants and that their records are still its own.

    If a run did only some participants (those that a killed run left), its makespan means something else; if records
    were replaced, the new ones may come from other settings.

    >>> validity({"valid": "valid", "participants": 3, "failed": 0}, everyone=60, kept=3)
    'invalid: 3 of 60 participants only, the others are from other runs'
    >>> validity({"valid": "valid", "participants": 60, "failed": 0}, everyone=60, kept=59)
    'invalid: later runs have replaced the records of 1 participant'
    """
    done, replaced = run["participants"], run["participants"] - kept
    reasons = []
    if done + run["failed"] < everyone:
        reasons.append(some_only(done, everyone))
    if replaced > 0:
        reasons.append(f"later runs have replaced the records of {counted(replaced, 'participant')}")
    return valid_unless(reasons, run["valid"])


def resident_before(phases: Iterable[Row]) -> float | None:
    """Share of the input bytes that were in the page cache before they were staged in."""
    known = [row for row in phases if row["phase"] == "stage_in" and row["input_resident_before"] is not None]
    total = sum(row["input_bytes"] or 0 for row in known)
    return share_of(sum(row["input_resident_before"] * (row["input_bytes"] or 0) for row in known), total)


def tier_bytes(flows: Iterable[Row]) -> Rows:
    """Bytes per tier, each counted once.

    Bytes counted while copying, bytes by which a work folder grew, and bytes of a container image that came into the
    page cache are different bytes and are added. Device bytes of the control group are the same bytes again: they are
    used only for phases of which nothing else is known. Device bytes of all processes are never used, since jobs run
    concurrently.

    Returns
    -------
    list
        Rows of ``tier``, ``read_bytes`` and ``written_bytes``, sorted by tier; ``None`` where nothing is known.
    """
    import pandas as pd  # imported late, since every start of a run imports this module

    table = pd.DataFrame(flows, columns=["tier", "participant", "phase", "traffic_source", *WAYS])
    kinds = table.traffic_source.where(~table.traffic_source.isin(OWN_SOURCES), "own")
    sums = (
        table.astype(dict.fromkeys(WAYS, "Int64"))
        .groupby(["tier", "participant", "phase", kinds])[WAYS]
        .sum(min_count=1)
    )
    own, seen = (sums[sums.index.get_level_values(-1) == kind].droplevel(-1) for kind in ("own", OTHER_VIEW))
    known = own.combine_first(seen).groupby("tier").sum(min_count=1).reindex(sorted(set(table.tier)))
    return list(known.astype(object).where(known.notna(), None).reset_index().to_dict("records"))


def campaign_runs(plan: Path) -> Compared:
    """The existing runs of a campaign; ``plan`` is its table, next to the folder of its runs."""
    compared = Compared()
    for row in read_table(plan, "plan"):
        folder = plan.parent / "runs" / row["folder"]
        condition = read_json_or_empty(folder / "condition.json")
        if condition:
            found = runs_of_results(
                folder, OF_CAMPAIGN, row["placement"], row["repetition"], condition["cache_state"]["state"]
            )
            judged = {"valid": condition["valid"], "parallelism": row["parallelism"], "cache": row["cache"]}
            compared += Compared([run | judged for run in found.runs], found.participants, found.traffic)
    return compared


def missing_runs_text(plan: Path) -> str:
    """What a campaign still has to do, as a sentence for people; empty if it is complete."""
    rows = read_table(plan, "plan")
    there = sum(bool(read_json_or_empty(plan.parent / "runs" / row["folder"] / "condition.json")) for row in rows)
    if there == len(rows):
        return ""
    return f"{there} of {counted(len(rows), 'run')} of the campaign are there; the same command goes on with the others"


# Conditions, and which runs are fit for comparison.

OF_CAMPAIGN = "campaign"
"""Origin of the runs of a campaign."""


@dataclass(frozen=True, order=True)
class Condition:
    """What repetitions have in common.

    Attributes
    ----------
    origin
        Where the runs are from; conditions are compared within one origin only.
    parallelism
        Participant jobs requested to run at once; if none were requested, the most that did.
    """

    origin: str
    tool: str
    cache: str
    parallelism: int
    placement: str

    @classmethod
    def of(cls, run: Row) -> Condition:
        """The condition of a row of ``compared_runs.tsv``."""
        parallelism = run["parallelism"] or run["peak_parallelism"]
        return cls(run["origin"], run["tool"], run["cache"], parallelism, run["placement"])

    def __str__(self) -> str:
        return f"{self.placement}, {self.parallelism} at once, cache {self.cache}, {self.tool}"


VALID, INVALID = "valid", "invalid: "
"""The validity of a run that is fit for comparison, and the beginning of that of any other run."""


def some_only(done: int, everyone: int) -> str:
    """Why the times of a run that did only some participants mean something else."""
    return f"{done} of {everyone} participants only, the others are from other runs"


def valid_unless(reasons: Iterable[str], before: str = VALID) -> str:
    """The validity of a run: ``valid``, or ``invalid: `` and the reasons; ``before`` is its validity so far.

    >>> valid_unless([]), valid_unless(["the machine swapped"], "invalid: 1 participant failed")
    ('valid', 'invalid: 1 participant failed; the machine swapped')
    """
    known = [] if before == VALID else [before.removeprefix(INVALID)]
    known += [reason for reason in reasons if reason not in before]
    return f"{INVALID}{'; '.join(known)}" if known else VALID
