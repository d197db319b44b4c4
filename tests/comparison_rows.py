"""Rows of the comparison's tables for tests: every number is given, follows from those given, or is drawn by chance."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import product
from typing import Any

import numpy as np
from neurotier.core.tables import Row, Rows, columns
from neurotier.meter.usage import LABELS
from report_data import ROWS


def run_row(
    run: str,
    placement: str,
    makespan_s: float | None,
    account: Mapping[str, float] | None = None,
    wall_sum_s: float = 100.0,
    **changes: Any,
) -> Row:
    """One row of ``compared_runs.tsv``; the account, if any, is given as shares of the wall time."""
    computing = account["account_user_s"] + account["account_system_s"] if account else 0.5
    causes = {f"{name[:-2]}_sum_s": wall_sum_s * account.get(name, 0.0) for name in LABELS} if account else {}
    return {
        **dict.fromkeys(columns("compared_runs")),
        **ROWS["compared_runs"],
        "run": run,
        "placement": placement,
        "makespan_s": makespan_s,
        "flushed_s": makespan_s,
        "wall_sum_s": wall_sum_s,
        "cpu_sum_s": wall_sum_s * computing,
        "io_sum_s": wall_sum_s * (1 - computing),
        **causes,
        **changes,
    }


def repeated(makespans_s: Mapping[str, Sequence[float]], first: int = 1, **changes: Any) -> Rows:
    """Rows of runs: of each placement one in each repetition, with these makespans, s."""
    return [
        run_row(f"{placement}-{number}", placement, makespan_s, repetition=number, **changes)
        for placement, each_s in makespans_s.items()
        for number, makespan_s in enumerate(each_s, first)
    ]


def job_rows(run: str, walls_s: Sequence[float], phases: Mapping[str, float] | None = None, **changes: Any) -> Rows:
    """Rows of ``compared_participants.tsv``: participants with these wall times, divided over phases by share."""
    return [
        {
            "origin": "campaign",
            "run": run,
            "participant": f"sub-{number:03d}",
            "phase": phase,
            "start_s": 0.0,
            "end_s": wall_s * share,
            "wall_s": wall_s * share,
            "cpu_s": 0.5 * wall_s * share,
            "io_s": 0.5 * wall_s * share,
            **changes,
        }
        for number, wall_s in enumerate(walls_s)
        for phase, share in (phases or {"whole": 1.0}).items()
    ]


CAUSES = {
    "account_user_s": 0.80,
    "account_system_s": 0.05,
    "account_run_queue_s": 0.03,
    "account_block_io_s": 0.08,
    "account_other_s": 0.04,
}
PARTS = {"start_up": 0.3, "stage_in": 1.5, "container_start": 0.25, "compute": 12.0, "stage_out": 0.4}
"""Phases of a job and their typical wall times on a tier of slowness 1, s."""


def compared(
    slowness: Mapping[str, float],
    parallelisms: Sequence[int] = (2, 4),
    repetitions: int = 2,
    participants: int = 12,
    parts: Mapping[str, float] = PARTS,
    account: Mapping[str, float] | None = CAUSES,
    origin: str = "campaign",
    **changes: Any,
) -> tuple[Rows, Rows, Rows]:
    """Runs, jobs and traffic of placements, with how much slower than 1 their tier moves data; times scatter."""
    source, runs, jobs, traffic = np.random.default_rng(0), Rows(), Rows(), Rows()
    for placement, parallelism, repetition in product(slowness, parallelisms, range(1, repetitions + 1)):
        name, ends_s = f"{placement}-{parallelism}-{repetition}", [0.0] * parallelism
        for number in range(participants):
            for phase, typical_s in parts.items():
                slow = 1.0 if phase == "compute" else slowness[placement]
                start_s = ends_s[number % parallelism]
                end_s = start_s + typical_s * slow * float(source.lognormal(0.0, 0.25))
                about = {"origin": origin, "participant": f"sub-{number:03d}", "start_s": start_s, "end_s": end_s}
                jobs += job_rows(name, [end_s - start_s], {phase: 1.0}, **about)
                ends_s[number % parallelism] = end_s
        about = {"parallelism": parallelism, "repetition": repetition, "participants": participants, "origin": origin}
        runs.append(run_row(name, placement, max(ends_s), account, sum(ends_s), **about, **changes))
        where = {"origin": origin, "run": name}
        traffic.append({**where, "tier": placement, "read_bytes": 9_000_000, "written_bytes": 4_000_000})
        traffic.append({**where, "tier": "results", "read_bytes": None, "written_bytes": 2_000_000})
    return runs, jobs, traffic


def published(participants: int, repetitions: int) -> tuple[Rows, Rows, Rows]:
    """Published runs: whole jobs, no account, a logged makespan that is off."""
    about: dict[str, Any] = {
        "origin": "published",
        "tool": "bids-app-example",
        "oversubscribed": None,
        "logged_makespan_s": 1.0,
    }
    tiers = {"in-mem": 1.0, "disk": 1.1}
    return compared(tiers, (25, 96), repetitions, participants, {"whole": 88.0}, None, **about)
