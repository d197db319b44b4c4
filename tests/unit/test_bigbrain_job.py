"""The job that does the incrementation on a node: what it begins with, and what it finds of an earlier one."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from configured import settings_at
from neurotier.bigbrain.plan import CHECKED, BigBrainPlan
from neurotier.core.places import Places
from neurotier.core.tiers import find_mount
from neurotier.run.bigbrain_job import forget_interrupted, forget_others


def test_runs_that_are_through_stay_and_others_begin_anew(tmp_path: Path) -> None:
    """On a tier that each node has for itself, and on one that all share."""
    own = {"path": f"{tmp_path}/own/$JOB_OF_TEST", "kind": find_mount(tmp_path).kind, "node": True}
    small = {"count": 2, "scale": 0.03, "engines": ["gnu-parallel", "snakemake"], "parallelism": [1], "predict": False}

    def inner(**changes: Any) -> BigBrainPlan:
        asked, results = {**small, "tiers": ["own"], **changes}, f"{tmp_path}/results/bigbrain/node"
        settings = settings_at(tmp_path, tiers={"own": own}, bigbrain=asked, results=results)
        return BigBrainPlan(settings, Places.from_settings(settings))

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
