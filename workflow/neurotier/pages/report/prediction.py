"""The section 'Predicted and measured' of the run report: what the advice said of the last run, beside what it took."""

from __future__ import annotations

from collections.abc import Sequence

from neurotier.advice.promise import advised
from neurotier.advice.words import interval
from neurotier.core.parallelism import PHASES
from neurotier.core.quantities import number, percent, seconds
from neurotier.core.tables import Row
from neurotier.pages.kit.causes import sum_causes
from neurotier.pages.report.times import ParticipantTime


def prediction_view(
    advice: Sequence[Row], run: Row | None, times: Sequence[ParticipantTime]
) -> tuple[str, list[tuple[str, str, str, str]]] | None:
    """What the advice said of a run, beside what it took; ``None`` if it said nothing of such a run.

    Parameters
    ----------
    advice
        Rows of ``advice.tsv``.
    run
        Row of ``runs.tsv``.
    times
        Its participant jobs.

    Returns
    -------
    tuple
        Both in a sentence, without a full stop; and lines of what, predicted, measured, and the ratio.
    """
    row = advised(advice, run) if run and run["makespan_s"] is not None else None
    if row is None or run is None:
        return None
    held = row["low_s"] <= run["makespan_s"] <= row["high_s"]
    finding = f"Predicted {interval(row)}, measured {seconds(run['makespan_s'])}" + ("" if held else ": not within it")
    lines = [line("Makespan", row["predicted_s"], run["makespan_s"])]
    for phase in PHASES:
        measured_s = sum(time.phase(phase, "wall_s") for time in times)
        if measured_s or row[f"{phase}_sum_s"]:
            lines.append(line(f"Sum of {phase}", row[f"{phase}_sum_s"], measured_s))
    limit = f"{row['limit']}, {percent(row['limit_share'])} of the jobs' time"
    return finding, [*lines, ("Limit", limit, measured_limit(times), "")]


def line(name: str, predicted_s: float, measured_s: float) -> tuple[str, str, str, str]:
    """A time predicted and measured, and the ratio of the two."""
    ratio = number(predicted_s / measured_s, 2) if measured_s else ""
    return name, seconds(predicted_s), seconds(measured_s), ratio


def measured_limit(times: Sequence[ParticipantTime]) -> str:
    """What took most of the jobs' time, as far as there is an account."""
    causes = sum_causes(row for time in times if time.accounted for row in time.phases.values())
    if not causes.made or causes.wall_s <= 0:
        return "not known"
    most, share = causes.ranked[0]
    return f"{most}, {percent(share)} of the jobs' time"
