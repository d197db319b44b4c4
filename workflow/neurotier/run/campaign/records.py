"""What a campaign keeps of its runs: ``campaign/runs/CONDITION/REPETITION``, a folder that appears by a rename."""

from __future__ import annotations

import shutil
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

from neurotier.core.files import flush_folder, flush_tree, partial_of, rename_durably, whole_json, write_json
from neurotier.core.places import Places
from neurotier.core.settings import Settings
from neurotier.run.campaign.matrix import PlannedRun, planned_runs
from neurotier.run.conditions import VALID, valid_unless
from neurotier.run.profile_tables import Record
from neurotier.run.scripting import Context
from neurotier.storage.page_cache import CacheState


@dataclass(frozen=True)
class Campaign:
    """A campaign and what it works with.

    Attributes
    ----------
    planned
        Its runs, in the order in which they are run.
    settings, places
        Of the results folder that keeps it.
    limits
        Snakemake resources that the jobs of a run share.
    say
        Where to tell the user.
    """

    planned: Sequence[PlannedRun]
    settings: Settings
    places: Places
    limits: Mapping[str, int]
    say: Callable[[str], None]

    @classmethod
    def of_script(cls, context: Context) -> Campaign:
        """The campaign that a script is about."""
        planned = planned_runs(context.params.configuration, context.settings)
        return cls(planned, context.settings, context.places, context.run_facts["limits"], context.say)

    def folder(self, run: PlannedRun) -> Path:
        """Where the records of a run are."""
        return self.places.campaign / "runs" / run.name / str(run.repetition)

    def condition_of(self, run: PlannedRun) -> Record | None:
        """What is noted of a run; ``None`` if it is not there."""
        return read_condition(self.folder(run))

    @property
    def to_do(self) -> list[PlannedRun]:
        """The runs that are to be done: one that was stopped, in whole or in part, tells nothing of its condition."""
        again = self.settings.campaign.repeat_invalid
        noted = [(run, self.condition_of(run)) for run in self.planned]
        return [
            run
            for run, condition in noted
            if condition is None or condition.get("stopped") or (again and condition["valid"] != VALID)
        ]


def read_condition(folder: Path) -> Record | None:
    """What was run, and what speaks against it; ``None`` if the run is not there, or that cannot be read any more."""
    return whole_json(folder / "condition.json")


def keep_run(
    campaign: Campaign,
    run: PlannedRun,
    row: Record,
    cache: CacheState,
    outputs: Mapping[str, str],
    taken_s: float = 0.0,
    killed: bool = False,
    stopped: bool = False,
) -> Record:
    """Judge a run, note what it was, and let its folder appear; what was noted.

    Parameters
    ----------
    campaign, run
        Which run it was; its records are in the folder's unfinished form.
    row
        Its row of ``runs.tsv``.
    cache
        The page cache before the participant jobs.
    outputs
        Checksums of what it made, by path.
    taken_s
        How long all of it took, s.
    killed
        Whether a job of it was killed: by somebody, or by the kernel for want of memory. Once that is an accident, and
        the run is done again; twice is none.
    stopped
        Whether it was told to stop from outside.
    """
    folder, before = campaign.folder(run), campaign.condition_of(run)
    stopped = stopped or (killed and not (before and before.get("stopped")))
    problems = [cache.problem] if cache.problem else []
    possible, most = min(run.condition.parallelism, row["participants"] + row["failed"]), row["peak_parallelism"]
    if most < possible:
        because = f": {row['limited_by']}" if row["limited_by"] else ""
        problems.append(f"{most} of {possible} jobs at most ran at once{because}")
    # Nobody has failed, either, in a job that was killed before its participants began.
    if campaign.settings.campaign.compare_outputs and not (row["failed"] or killed or stopped):
        problems += differing(campaign, run, outputs)
    condition = {
        **asdict(run.condition),
        "repetition": run.repetition,
        "position": run.position,
        "valid": valid_unless(problems, row["valid"]),
        "cache_state": asdict(cache),
        "participants": row["participants"],
        "makespan_s": row["makespan_s"],
        "taken_s": taken_s,
        "stopped": stopped,
    }
    partial = partial_of(folder)
    write_json(partial / "condition.json", condition)
    flush_tree(partial)
    shutil.rmtree(folder, ignore_errors=True)  # an invalid one that was done again
    rename_durably(partial, folder)
    flush_folder(folder.parent.parent)
    return condition


def differing(campaign: Campaign, run: PlannedRun, outputs: Mapping[str, str]) -> list[str]:
    """What differs from the outputs of the first run of the same tool, if anything.

    The first run with all its participants is noted; if that cannot be read any more, the next one is.
    """
    file = campaign.places.campaign / "outputs" / f"{run.analysis}.json"
    first = whole_json(file)
    if first is None:
        write_json(file, {"of": str(run.condition), "checksums": outputs})
        return []
    names = {*outputs, *first["checksums"]}
    apart = sorted(name for name in names if outputs.get(name) != first["checksums"].get(name))
    found = f"outputs differ from those of {first['of']}: {len(apart)} of {len(names)} files, first "
    return [found + apart[0]] if apart else []
