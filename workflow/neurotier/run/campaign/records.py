"""What a campaign keeps of its runs: ``campaign/runs/CONDITION/REPETITION``, a folder that appears by a rename."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass
from pathlib import Path

from neurotier.core.errors import StateError
from neurotier.core.files import flush_folder, flush_tree, read_json, rename_durably, write_json
from neurotier.core.places import Places
from neurotier.core.settings import Settings
from neurotier.run.campaign.matrix import PlannedRun
from neurotier.run.campaign.outputs import difference
from neurotier.run.campaign.snakemake_run import Outcome, hidden
from neurotier.run.profile_tables import Record


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

    def condition_of(self, run: PlannedRun) -> Record | None:
        """What is noted of a run; ``None`` if it is not there."""
        return read_condition(folder_of(self.places, run))

    @property
    def to_do(self) -> list[PlannedRun]:
        """The runs that are to be done."""
        return [run for run in self.planned if self.is_wanted(run)]

    def is_wanted(self, run: PlannedRun) -> bool:
        """Whether a run is to be done: one that was stopped tells nothing of its condition."""
        condition = self.condition_of(run)
        return (
            condition is None
            or was_stopped(condition)
            or (self.settings.campaign.repeat_invalid and not is_valid(condition))
        )


def folder_of(places: Places, planned: PlannedRun) -> Path:
    """Where the records of a run are."""
    return places.campaign / "runs" / planned.name / str(planned.repetition)


def read_condition(folder: Path) -> Record | None:
    """What was run, and what speaks against it; ``None`` if the run is not there, or that cannot be read any more."""
    file = folder / "condition.json"
    try:
        found: Record | None = read_json(file) if file.exists() else None
    except StateError:
        return None
    return found


def is_valid(condition: Record | None) -> bool:
    """Whether a run is there and counts."""
    return condition is not None and condition["valid"] == "valid"


def was_stopped(condition: Record | None) -> bool:
    """Whether a run is there, but it or one of its jobs was told to stop, or killed, from outside."""
    return condition is not None and bool(condition.get("stopped"))


def keep_run(places: Places, planned: PlannedRun, outcome: Outcome, compare_outputs: bool) -> Record:
    """Judge a run, note what it was, and let its folder appear; what was noted.

    The first run with all its participants gives the checksums that the others are compared with; if these cannot be
    read any more, the next run does.
    """
    folder = folder_of(places, planned)
    problems = list(outcome.problems)
    # Nobody has failed, either, in a job that was killed before its participants began.
    is_whole = outcome.row["failed"] == 0 and not outcome.killed and not outcome.stopped
    problems += compared(places, planned, outcome) if compare_outputs and is_whole else []
    reasons = [outcome.row["valid"].removeprefix("invalid: ")] if outcome.row["valid"] != "valid" else []
    condition = {
        **asdict(planned.condition),
        "repetition": planned.repetition,
        "position": planned.position,
        "valid": f"invalid: {'; '.join(reasons + problems)}" if reasons + problems else "valid",
        "cache_state": asdict(outcome.cache),
        "participants": outcome.row["participants"],
        "makespan_s": outcome.row["makespan_s"],
        "taken_s": outcome.taken_s,
        "stopped": outcome.stopped,
    }
    write_json(hidden(folder) / "condition.json", condition)
    flush_tree(hidden(folder))
    rename_durably(hidden(folder), folder)
    flush_folder(folder.parent.parent)
    folder.with_name(f".{folder.name}.yaml").unlink(missing_ok=True)
    return condition


def compared(places: Places, planned: PlannedRun, outcome: Outcome) -> list[str]:
    """What differs from the outputs of the first run of the same tool, if anything; the first one is noted."""
    file = places.campaign / "outputs" / f"{planned.analysis}.json"
    with suppress(FileNotFoundError, StateError):
        first = read_json(file)
        return list(filter(None, [difference(outcome.outputs, first["checksums"], first["of"])]))
    write_json(file, {"of": str(planned.condition), "checksums": outcome.outputs})
    return []
