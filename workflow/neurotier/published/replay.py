"""Everything that a checkout of the published data holds, and the tables made of it."""

from __future__ import annotations

import statistics
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path

from neurotier.bigbrain.conditions import IncrementCondition
from neurotier.core.errors import InputError
from neurotier.core.tables import Row, write_table
from neurotier.published.bids_app import find_published
from neurotier.published.bigbrain import (
    DRIVER,
    FIX,
    HEADER,
    INCREMENT,
    MEMORY_MODE,
    TASK,
    WRITE,
    BlockRun,
    Found,
    find_runs,
)
from neurotier.published.conditions import by_condition, device_and_mode
from neurotier.published.skipped import DAMAGED, Skipped
from neurotier.published.table_one import Bandwidth, device_bandwidths, equation_one_s, find_bandwidths
from neurotier.run.compared import Compared

AS_READ = (
    *("resolution_um", "engine", "processes", "device", "mode", "label", "iterations", "repetition"),
    *("missing_blocks", "data_bytes", "makespan_s", "span_s", "mean_parallelism"),
)
"""Columns of ``published_runs.tsv`` that a run has under the same name."""


@dataclass(frozen=True)
class Replay:
    """What was found below a path: BigBrain runs, storage benchmarks, BIDS App runs.

    Attributes
    ----------
    others_skipped
        What was not read of the last two.
    """

    root: Path
    bigbrain: Found = field(default_factory=Found)
    bandwidths: list[Bandwidth] = field(default_factory=list)
    bids_app: Compared = field(default_factory=Compared)
    others_skipped: list[Skipped] = field(default_factory=list)

    @property
    def skipped(self) -> list[Skipped]:
        """All that was not read."""
        return [*self.bigbrain.skipped, *self.others_skipped]

    @cached_property
    def conditions(self) -> dict[IncrementCondition, list[BlockRun]]:
        """The whole BigBrain runs by condition."""
        return by_condition(self.bigbrain.runs)

    def equation_one_s(self, condition: IncrementCondition) -> float | None:
        """Makespan of a condition by Eq. (1) with Table I, s; ``None`` of a device that is not in it."""
        return equation_of(condition, device_bandwidths(self.bandwidths).get(device_and_mode(condition)[0]))

    def drawn_equation_s(self, condition: IncrementCondition) -> float | None:
        """The same as the paper's figures draw it where that is not with Table I, s: Memory mode by its own benchmark,
        and the SSD with DRAM's write bandwidth."""
        place, table = device_and_mode(condition), device_bandwidths(self.bandwidths)
        if place[0] == "local SSD":
            return equation_of(condition, (table["local SSD"][0], table["DRAM"][1]))
        own = [one.of(statistics.fmean) for one in self.bandwidths if (one.device, one.mode) == place]
        return equation_of(condition, own[0]) if own and place == ("Optane", MEMORY_MODE) else None


def equation_of(condition: IncrementCondition, bandwidth_mb_s: tuple[float, float] | None) -> float | None:
    """Eq. (1) with a read and a write bandwidth, s; ``None`` without."""
    return equation_one_s(condition.block_bytes * condition.iterations, *bandwidth_mb_s) if bandwidth_mb_s else None


def read_published(root: Path) -> Replay:
    """Read a checkout, or any part of it.

    Raises
    ------
    InputError
        If there is nothing of the published data below the path that can be read.
    """
    bigbrain = find_runs(root)
    bandwidths, spoiled = find_bandwidths(root)
    bids_app, broken = find_published(root)
    replay = Replay(root, bigbrain, bandwidths, bids_app, spoiled + broken)
    if not (bigbrain.runs or bandwidths or bids_app.runs):
        damaged = [one for one in replay.skipped if one.kind == DAMAGED]
        if damaged:
            more = f" (and {len(damaged) - 1} more files cannot be read)" if len(damaged) > 1 else ""
            raise InputError(f"{damaged[0].reason}{more}", str(damaged[0].path), FIX)
        fix = "give a checkout of big-data-lab-team/paper-memory-storage, or one of its folders"
        raise InputError("has no logs of the published experiment", str(root), fix)
    return replay


def write_tables(replay: Replay, folder: Path) -> None:
    """Write the tables of folder ``published``."""
    write_table(folder / "published_runs.tsv", "published_runs", run_rows(replay))
    write_table(folder / "published_phases.tsv", "published_phases", phase_rows(replay))
    write_table(folder / "published_bids_app.tsv", "compared_runs", replay.bids_app.runs)
    write_table(folder / "table_one.tsv", "table_one", bandwidth_rows(replay))
    write_table(folder / "published_skipped.tsv", "published_skipped", skipped_rows(replay))


def name_of(replay: Replay, path: Path) -> str:
    """A log's path below the root; its name if it is the root itself."""
    return path.name if path == replay.root else path.relative_to(replay.root).as_posix()


def run_rows(replay: Replay) -> list[Row]:
    """Rows of ``published_runs.tsv``: every BigBrain run, whole or not."""
    conditions = {id(run): condition for condition, runs in replay.conditions.items() for run in runs}
    rows = []
    for run in replay.bigbrain.runs:
        condition = conditions.get(id(run))
        rows.append(
            {name: getattr(run, name) for name in AS_READ}
            | {
                "run": name_of(replay, run.path),
                "valid": f"invalid: {run.invalid_because}" if run.invalid_because else "valid",
                "variant": (condition.variant if condition else run.variant) or None,
                "blocks": len(run.blocks),
                "incomplete_blocks": len(run.incomplete_blocks),
                "equation_one_s": replay.equation_one_s(condition) if condition else None,
            }
        )
    return rows


def phase_rows(replay: Replay) -> list[Row]:
    """Rows of ``published_phases.tsv``: every phase of every BigBrain run."""
    rows = []
    for run in replay.bigbrain.runs:
        for name in (HEADER, INCREMENT, WRITE, TASK, DRIVER):
            times = [phase.duration_s for phase in run.named(name)]
            if times:
                values = {"sum_s": sum(times), "median_s": statistics.median(times), "max_s": max(times)}
                rows.append({"run": name_of(replay, run.path), "phase": name, "count": len(times), **values})
    return rows


def bandwidth_rows(replay: Replay) -> list[Row]:
    """Rows of ``table_one.tsv``: every device in every mode."""
    rows = []
    for one in replay.bandwidths:
        (read, write), (read_median, write_median) = one.of(statistics.fmean), one.of(statistics.median)
        printed = one.published or (None, None)
        rows.append(
            {
                "device": one.device,
                "mode": one.mode,
                "label": one.label,
                "samples": len(one.read_mb_s),
                "read_mean_mb_s": read,
                "read_median_mb_s": read_median,
                "read_published_mb_s": printed[0],
                "write_mean_mb_s": write,
                "write_median_mb_s": write_median,
                "write_published_mb_s": printed[1],
                "cached_read_mean_mb_s": statistics.fmean(one.cached_read_mb_s),
            }
        )
    return rows


def skipped_rows(replay: Replay) -> list[Row]:
    """Rows of ``published_skipped.tsv``: files that were not read, and runs that are not whole."""
    return [{"path": name_of(replay, one.path), "kind": one.kind, "reason": one.reason} for one in replay.skipped]
