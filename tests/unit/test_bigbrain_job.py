"""The job that does the incrementation on a node: what it begins with, and what it finds of an earlier one."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from neurotier.bigbrain.plan import CHECKED, BigBrainPlan
from neurotier.core.places import Places
from neurotier.core.settings import ROLES, Settings
from neurotier.core.tiers import find_mount
from neurotier.run.bigbrain_job import forget_interrupted, forget_others


def configuration(folder: Path, **bigbrain: Any) -> dict[str, Any]:
    """A disk that all share, and one that each node has for itself."""
    kind = find_mount(folder).kind
    own = {"path": f"{folder}/own/$JOB_OF_TEST", "kind": kind, "node": True}
    asked = {"count": 2, "scale": 0.03, "tiers": ["own"], "predict": False, "parallelism": [1], **bigbrain}
    return {
        "tiers": {
            "disk": {"path": str(folder), "kind": kind},
            "own": own,
            "gone": {"path": f"{folder}/gone", "kind": kind},
        },
        "placement": dict.fromkeys(ROLES, "disk"),
        "bigbrain": {"engines": ["gnu-parallel", "snakemake"], **asked},
    }


def plan_for(given: dict[str, Any]) -> BigBrainPlan:
    settings = Settings.from_config(given)
    return BigBrainPlan(settings, Places.from_settings(settings))


def test_runs_that_are_through_stay_and_others_begin_anew(tmp_path: Path) -> None:
    def inner(**bigbrain: Any) -> BigBrainPlan:
        return plan_for(configuration(tmp_path, **bigbrain) | {"results": "results/bigbrain/node"})

    plan = inner()
    through, begun = (plan.places.bigbrain_run(run) for run in plan.runs)
    for folder in (through, begun):
        folder.mkdir(parents=True)
        (folder / "plan.json").touch()
    (through / CHECKED).touch()
    forget_others(plan.settings, plan)
    assert not through.exists(), "nobody knows what these were"
    for folder in (through, begun):
        folder.mkdir(parents=True)
    (through / CHECKED).touch()
    for again in (inner(), inner(repetitions=3, parallelism=[1, 2], engines=["gnu-parallel"], tiers=["own", "disk"])):
        forget_others(again.settings, again)
        assert through.exists()
    forget_interrupted(plan)
    assert (through.exists(), begun.exists()) == (True, False)
    other = inner(scale=0.04)
    forget_others(other.settings, other)
    assert not through.exists()
