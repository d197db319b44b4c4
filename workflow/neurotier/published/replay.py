"""Read everything in a checkout of the published data, and make tables from it."""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path

from neurotier.bigbrain.conditions import IncrementCondition
from neurotier.core.errors import InputError
from neurotier.core.tables import Rows, grouped, write_table
from neurotier.published.bids_app import find_published
from neurotier.published.bigbrain import DRIVER, HEADER, INCREMENT, TASK, WRITE, BlockRun, find_runs
from neurotier.published.conditions import APP_DIRECT, OPTANE_AS_MEMORY, device_and_mode, key_cells, order, tier_of
from neurotier.published.skipped import DAMAGED, FIX, Skipped
from neurotier.published.table_one import Bandwidth, equation_one_s, find_bandwidths
from neurotier.run.compared import Compared
from neurotier.storage.table_one import PUBLISHED_MB_S

AS_READ = ("label", "repetition", "missing_blocks", "data_bytes", "makespan_s", "span_s", "mean_parallelism")
"""Columns of ``published_runs.tsv`` that are attributes of a run with the same name."""


@dataclass(frozen=True)
class Replay:
    """What was found at or below a path: BigBrain runs, storage benchmarks, BIDS App runs, and files not read."""

    root: Path
    runs: list[BlockRun] = field(default_factory=list)
    bandwidths: list[Bandwidth] = field(default_factory=list)
    bids_app: Compared = field(default_factory=Compared)
    skipped: list[Skipped] = field(default_factory=list)

    @cached_property
    def conditions(self) -> dict[IncrementCondition, list[BlockRun]]:
        """The complete BigBrain runs by condition, in the order of the paper's figures, then by repetition."""
        whole = sorted((run for run in self.runs if not run.invalid_because), key=lambda run: order(run.condition))
        return grouped((run.condition, run) for run in whole)

    @cached_property
    def measured_mb_s(self) -> dict[str, tuple[float, float]]:
        """The mean read and write bandwidth of the storage benchmarks, MB/s, by device in a mode."""
        return {tier_of(one.device, one.mode): one.means for one in self.bandwidths}

    @cached_property
    def table_one_mb_s(self) -> dict[str, tuple[float, float]]:
        """The read and write bandwidth by device as in Table I, MB/s: means of the logs in App Direct mode, or the
        printed figures of devices without logs."""
        return PUBLISHED_MB_S | {one.device: one.means for one in self.bandwidths if one.mode == APP_DIRECT}

    def equation_one_s(self, condition: IncrementCondition) -> float | None:
        """The makespan of a condition by Eq. (1) with Table I, s; ``None`` for a device that is not in Table I."""
        return equation_one_s(condition, self.table_one_mb_s.get(device_and_mode(condition.tier)[0]))

    def drawn_equation_s(self, condition: IncrementCondition) -> float | None:
        """The same as drawn in the paper's figures, s; ``None`` where they use Table I.

        Optane in Memory mode is drawn with its own benchmark, and the SSD with the write bandwidth of DRAM.
        """
        tier, table = condition.tier, self.table_one_mb_s
        if tier.startswith("local SSD"):
            return equation_one_s(condition, (table["local SSD"][0], table["DRAM"][1]))
        return equation_one_s(condition, self.measured_mb_s.get(tier)) if tier == OPTANE_AS_MEMORY else None


def read_published(root: Path) -> Replay:
    """Read a checkout of the published data, or any part of one.

    Raises
    ------
    InputError
        If there are no readable published data at or below the path.
    """
    skipped = list[Skipped]()
    replay = Replay(
        root, find_runs(root, skipped), find_bandwidths(root, skipped), find_published(root, skipped), skipped
    )
    if not (replay.runs or replay.bandwidths or replay.bids_app.runs):
        damaged = [one for one in skipped if one.kind == DAMAGED]
        if damaged:
            more = f" (and {len(damaged) - 1} more files cannot be read)" if len(damaged) > 1 else ""
            raise InputError(f"{damaged[0].reason}{more}", damaged[0].path, FIX)
        fix = "give a checkout of big-data-lab-team/paper-memory-storage, or one of its folders"
        raise InputError("has no logs of the published experiment", root, fix)
    return replay


def write_tables(replay: Replay, folder: Path) -> None:
    """Write the tables of the folder ``published``."""
    write_table(folder / "published_runs.tsv", "published_runs", run_rows(replay))
    write_table(folder / "published_phases.tsv", "published_phases", phase_rows(replay))
    write_table(folder / "published_bids_app.tsv", "compared_runs", replay.bids_app.runs)
    write_table(folder / "published_skipped.tsv", "published_skipped", skipped_rows(replay))


def name_of(replay: Replay, path: Path) -> str:
    """A log's path relative to the root; its name if it is the root itself."""
    return path.name if path == replay.root else path.relative_to(replay.root).as_posix()


def run_rows(replay: Replay) -> Rows:
    """The rows of ``published_runs.tsv``: every BigBrain run, complete or not."""
    return [
        key_cells(run.condition)
        | {name: getattr(run, name) for name in AS_READ}
        | {
            "run": name_of(replay, run.path),
            "valid": f"invalid: {run.invalid_because}" if run.invalid_because else "valid",
            "variant": run.condition.variant or None,
            "iterations": run.condition.iterations,
            "blocks": len(run.blocks),
            "incomplete_blocks": len(run.incomplete_blocks),
            "equation_one_s": None if run.invalid_because else replay.equation_one_s(run.condition),
        }
        for run in replay.runs
    ]


def phase_rows(replay: Replay) -> Rows:
    """The rows of ``published_phases.tsv``: every phase of every BigBrain run."""
    return [
        {"run": name_of(replay, run.path), "phase": name, "sum_s": sum(times)}
        for run in replay.runs
        for name in (HEADER, INCREMENT, WRITE, TASK, DRIVER)
        if (times := [phase.duration_s for phase in run.named(name)])
    ]


def skipped_rows(replay: Replay) -> Rows:
    """The rows of ``published_skipped.tsv``: the files that were not read."""
    return [{"path": name_of(replay, one.path), "kind": one.kind, "reason": one.reason} for one in replay.skipped]
