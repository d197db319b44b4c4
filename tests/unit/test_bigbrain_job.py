"""The job that does the incrementation on a node: what it begins with, and what it finds of an earlier one."""

from __future__ import annotations

import shutil
from dataclasses import asdict
from pathlib import Path
from typing import Any

import pytest
from neurotier.bigbrain.plan import CHECKED, BigBrainPlan
from neurotier.bigbrain.room import fill_tier, make_room
from neurotier.bigbrain.run_folder import begin
from neurotier.bigbrain.tasks import Task
from neurotier.core.errors import TierError
from neurotier.core.places import Places
from neurotier.core.settings import ROLES, Settings
from neurotier.core.tables import write_table
from neurotier.core.tiers import find_mount
from neurotier.run.bigbrain_job import forget_interrupted, forget_others, run_here, why


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


def test_a_tier_that_the_node_lacks_is_said_in_a_line(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    given = configuration(tmp_path)
    plan = plan_for(given)
    asked = plan.asked_of_node(given)
    assert asked["tiers"].keys() == {"own", "disk"}, "what is not used need not be there"
    assert asked["tiers"]["own"]["path"].endswith("$JOB_OF_TEST"), "which the job alone knows"
    monkeypatch.setenv("JOB_OF_TEST", "7")
    with pytest.raises(TierError, match=r"^tier 'own' on .*/own is not an existing folder; correct tiers\.own\.path"):
        run_here(asked, plan.settings, plan.places, tmp_path / "log")
    assert not plan.places.bigbrain.exists()


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


def test_the_reason_is_what_was_said_last(tmp_path: Path) -> None:
    log = tmp_path / "log"
    log.write_text("$ snakemake\nneurotier: first\nneurotier: engine spark: Java is missing\nShutting down\n")
    assert why(log) == "engine spark: Java is missing"
    log.write_text("Error\n")
    assert why(log) == "its runs did not come to their end"


def test_blocks_on_a_tier_with_another_path_in_each_job_are_the_same(tmp_path: Path) -> None:
    """The folder of a job that has ended is gone, and the next job has one of another name."""

    def job(number: str, **bigbrain: Any) -> BigBrainPlan:
        own = tmp_path / "jobs" / number
        own.mkdir(parents=True, exist_ok=True)
        given = configuration(tmp_path, **bigbrain)
        given["tiers"]["own"] = {"path": str(own), "kind": find_mount(own).kind}
        return plan_for(given)

    def begun(plan: BigBrainPlan, run: str) -> Task:
        file = plan.places.bigbrain_run(run) / "plan.json"
        file.parent.mkdir(parents=True, exist_ok=True)
        begin(plan, run, file)
        return Task.load(file)

    first = job("1")
    (manifest,) = first.manifests()
    write_table(manifest, "bigbrain_blocks", map(asdict, fill_tier(first, "own", print)))
    shutil.rmtree(tmp_path / "jobs" / "1")
    second = job("2", repetitions=2)
    made = [begun(second, run).blocks for run in second.runs]
    assert made[0] == made[1]
    for block in made[0]:
        assert Path(block.file).is_relative_to(tmp_path / "jobs" / "2")
        assert Path(block.file).stat().st_size == block.bytes


def test_what_an_interrupted_run_wrote_goes_when_it_is_asked_for_no_more(tmp_path: Path) -> None:
    wide, narrow = (plan_for(configuration(tmp_path, tiers=["disk"], parallelism=[count])) for count in (25, 1))
    folders = {plan: Path(plan.folder("disk"), "runs", plan.runs[0]) for plan in (wide, narrow)}
    noted = wide.places.bigbrain_run(wide.runs[0])
    for folder in (*folders.values(), noted):
        folder.mkdir(parents=True)
        (folder / "written").touch()
    make_room(narrow)
    assert [folder.exists() for folder in (*folders.values(), noted)] == [False, True, False]
