"""Rows of the comparison's tables for tests: every number is given or follows from those given."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from neurotier.core.tables import columns
from neurotier.meter.usage import ACCOUNT

Rows = list[dict[str, Any]]


def run_row(run: str, placement: str, makespan_s: float | None, **changes: Any) -> dict[str, Any]:
    """One row of ``compared_runs.tsv``; the account, if any, comes with ``account`` as shares of the wall time."""
    account: Mapping[str, float] | None = changes.pop("account", None)
    wall_s = changes.pop("wall_sum_s", 100.0)
    shares = {name: (account or {}).get(name.removeprefix("account_").removesuffix("_s"), 0.0) for name in ACCOUNT}
    cpu_s = wall_s * (shares["account_user_s"] + shares["account_system_s"]) if account else 0.5 * wall_s
    return {
        **dict.fromkeys(columns("compared_runs")),
        "origin": "campaign",
        "run": run,
        "placement": placement,
        "parallelism": 2,
        "cache": "cold",
        "tool": "brainextractor",
        "valid": "valid",
        "oversubscribed": False,
        "participants": 10,
        "failed": 0,
        "start_s": 0.0,
        "makespan_s": makespan_s,
        "flushed_s": makespan_s,
        "wall_sum_s": wall_s,
        "cpu_sum_s": cpu_s,
        "io_sum_s": wall_s - cpu_s,
        **({f"{name[:-2]}_sum_s": wall_s * share for name, share in shares.items()} if account else {}),
        "mean_parallelism": 1.9,
        "peak_parallelism": 2,
        **changes,
    }


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
