"""Campaigns: from nothing to the comparison report; how they go on after a stop: ``test_stops.py``."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from conftest import missing
from published_logs import bids_tasks
from shown_values import shown
from slurm_hosts import becoming
from support import (
    NOBODY,
    STAND_INS,
    Ended,
    Project,
    read_json,
    save_image,
    script,
    slow_project,
    small_head,
    system,
    t1w,
)

PLACEMENTS = {"disk": {"work": "local"}, "memory": {"work": "tmpfs"}}


def configure(project: Project, demo_source: Path, campaign: dict[str, Any], **sections: Any) -> None:
    """A campaign on two participants with a tool that lasts for a moment, so that both are at work at once."""
    usual = {"placements": PLACEMENTS, "parallelism": [2], "repetitions": 1}
    dataset = {"source": demo_source, "sites": ["SiteB"]}
    project.configure(**{"dataset": dataset, "tool": "bet", "campaign": usual | campaign, **sections})


@pytest.fixture(scope="module")
def campaign(tmp_path_factory: pytest.TempPathFactory, demo_source: Path) -> Project:
    """A campaign of two runs."""
    project = slow_project(tmp_path_factory.mktemp("campaign"))
    configure(project, demo_source, {})
    project.succeeds()
    return project


def test_each_condition_is_run_once_and_nothing_is_left(campaign: Project) -> None:
    found = sorted(shown(run, "placement repetition valid") for run in campaign.conditions().values())
    assert found == ["disk 1 valid", "memory 1 valid"]
    assert sorted(run["position"] for run in campaign.conditions().values()) == [1, 2]
    assert not list(campaign.folder.glob("neurotier-*/campaign"))
    assert not list(campaign.folder.glob("neurotier-*/work"))


def test_runs_begin_cold_and_make_the_same(campaign: Project) -> None:
    for file, run in campaign.conditions().items():
        assert run["cache_state"]["resident"] <= 0.01
        assert not file.with_name("derivatives").exists()
        assert len(list(file.parent.glob("profile/records/**/sub-*.json"))) == 2
    (outputs,) = (campaign.results / "campaign/outputs").iterdir()
    assert any(name.endswith("_mask.nii.gz") for name in read_json(outputs)["checksums"])


def test_the_comparison_report_is_made_of_them(campaign: Project) -> None:
    drawn = campaign.columns("placement repetitions", "comparison/figures/makespan.tsv")
    assert drawn == ["disk 1", "memory 1"]
    compared = campaign.columns("origin cache work_tier", "comparison/compared_runs.tsv")
    assert set(compared) == {"campaign cold local", "campaign cold tmpfs"}
    page = campaign.page("comparison")
    assert "2 runs compared, 0 left out" in page
    assert "not told apart with 1 repetition; at least 3 are needed" in page


def test_what_is_there_is_not_run_again(campaign: Project, demo_source: Path) -> None:
    """The same campaign does nothing; a further repetition does that alone, also if Snakemake looks at times alone.

    A plan that is damaged would be made again.
    """
    before = {file: file.stat().st_mtime_ns for file in campaign.conditions()}
    configure(campaign, demo_source, {})
    for looks in (["--dry-run"], []):
        ended = campaign.snakemake(*looks)
        ended.says("Nothing to be done")
        assert not ended.lines("analysed"), ended.output
    configure(campaign, demo_source, {"repetitions": 2, "placements": {"disk": {}}})
    ended = campaign.succeeds("--rerun-triggers", "mtime")
    ended.says("1 of 2 runs are there, 1 to do")
    assert all(file.stat().st_mtime_ns == changed for file, changed in before.items())
    assert len(campaign.conditions()) == 3
    (campaign.results / "campaign/plan.tsv").write_bytes(b"\xff\n")
    campaign.succeeds("--dry-run").says("plan.tsv is not as it was written; it would be made again")


@pytest.mark.nightly
def test_what_cannot_be_seen_to_be_cold_is_not_run() -> None:
    """The kernel says whether a file is in memory only to its owner, or who may write to it; these are root's."""
    if os.getuid() != 0:
        missing("becoming another user needs root")
    with tempfile.TemporaryDirectory(dir="/var/tmp") as name:
        Path(name).chmod(0o755)
        folder = Path(name) / "project"
        project = Project.at(folder, before=partial(becoming, NOBODY, folder))
        project.heads("01")
        os.chown(folder, NOBODY, NOBODY)
        campaign = {"placements": {"disk": {}}, "parallelism": [1], "repetitions": 1}
        done = project.fails(tool="bet", campaign=campaign)
        done.says(
            "disk, 1 at once, cache cold, bet: cold was asked for, and the kernel did not report what was in memory; "
        )
        assert not project.conditions()
        project.succeeds(tool="bet", campaign=campaign | {"cache": ["as found"]}).says("1 run compared, 0 left out")


@pytest.mark.nightly
def test_a_run_that_fails_is_left_out_and_done_again_when_asked(project: Project, demo_source: Path) -> None:
    """The tool is missing in one condition: that cannot be run; the others are, and are reported."""
    campaign = {"tools": ["noop", "own"], "repetitions": 1, "placements": {"disk": {}}, "parallelism": [1]}
    tool = {"own": {"command": "nowhere {input}", "mask": "mask.nii.gz"}}
    configure(project, demo_source, campaign, tool=tool)
    project.fails().says(
        "disk, 1 at once, cache cold, own: could not be made ready: tool 'own': nowhere is not on PATH; "
    )
    assert "1 run compared, 0 left out" in project.page("comparison")


@pytest.mark.nightly("long")
def test_a_run_whose_tier_was_full_is_done_again_and_one_whose_tool_fails_when_asked(project: Project) -> None:
    project.heads("01", "02")
    tools = project.folder / "tools"
    script(tools / "bet", f'set -e; . {tools}/first; exec {STAND_INS}/bet "$@"')
    campaign = {"placements": {"disk": {}}, "parallelism": [2], "repetitions": 1}

    def run(first: str, end: Callable[..., Ended], **more: bool) -> Ended:
        (tools / "first").write_text(first)
        return end(project, path=tools, tool="bet", campaign=campaign | more)

    run("echo No space left on device; exit 1", Project.fails).says(
        "neurotier: campaign: 1 run stopped, or failed for a reason that may pass; "
    )
    run("exit 1", Project.fails).says(
        "0 of 1 run are there, 1 to do",
        "neurotier: campaign: 1 of 1 run cannot be compared (invalid: 2 participants failed",
    )
    run("", Project.fails).says("1 of 1 run are there, 0 to do")
    run("", Project.succeeds, repeat_invalid=True).says("1 run compared, 0 left out")


@pytest.mark.nightly
def test_an_edited_script_and_other_images_are_other_runs(project: Project) -> None:
    """Also after a stop in the middle, whose page is of the runs that are to be done now."""
    image = project.heads("01") / t1w("01")
    (project.folder / "strip.sh").write_text('cp "$1" "$2/brain.nii.gz"')
    own = {"command": f"sh {project.folder}/strip.sh {{input}} {{output}}", "brain": "brain.nii.gz"}
    campaign = {"placements": {"disk": {}}, "parallelism": [1], "repetitions": 1, "cache": ["warm"]}
    project.succeeds(tool={"name": "own", "own": own}, campaign=campaign)
    project.succeeds().says("Nothing to be done")
    (project.folder / "strip.sh").write_text('exit 1; cp "$1" "$2/brain.nii.gz"')
    project.fails().says("0 of 1 run are there, 1 to do")
    assert "1 run compared" not in project.page("comparison")
    (project.folder / "strip.sh").write_text('echo; cp "$1" "$2/brain.nii.gz"')
    project.succeeds().says("1 run compared, 0 left out")
    assert "Partial" not in project.page("comparison")
    save_image(image, small_head(7))
    other = project.fails(tool={"name": "own", "own": own}, campaign=campaign | {"repetitions": 2}).lines(
        "disk, 1 at once, cache warm, own: the dataset is not the one that was indexed"
    )
    assert other[0].endswith("name dataset.version or, for a plain folder, start with --forcerun index_dataset")
    project.succeeds("--forcerun", "index_dataset").says(
        "0 of 2 runs are there, 2 to do", "2 runs compared, 0 left out"
    )


@pytest.mark.nightly
def test_a_tier_that_is_on_another_file_system_than_before_is_not_measured(
    project: Project, mount_tmpfs: Callable[..., Path]
) -> None:
    """As after a reboot without its disk: the folder is there, on a file system of the same kind.

    A run that is done again says nothing of where: it may have been stopped since its disk was not mounted.
    """
    project.heads("01")
    tools = project.folder / "tools"
    script(tools / "bet", "echo No space left on device; exit 1")
    disk = mount_tmpfs(project.folder / "below", "size=16m") / "disk"
    disk.mkdir()
    campaign = {"placements": {"disk": {"work": "disk"}, "local": {}}, "parallelism": [1], "cache": ["warm"]}

    @contextmanager
    def other_disk() -> Iterator[None]:
        system("mount", "-t", "tmpfs", "tmpfs", str(disk))
        try:
            yield
        finally:
            system("umount", str(disk))

    project.configure(tool="bet", tiers={"disk": disk}, campaign=campaign | {"repetitions": 1})
    with other_disk():
        project.fails(path=tools).says("2 runs stopped")
    project.succeeds().says("2 runs compared, 0 left out")
    project.configure(tool="bet", tiers={"disk": disk}, campaign=campaign | {"repetitions": 2})
    with other_disk():
        ended = project.fails()
    ended.says(
        f"disk, 1 at once, cache warm, bet: {disk} is on {disk} (tmpfs), "
        f"in earlier runs on {disk.parent} (tmpfs); "
        "mount it again, go on on a node that has it, or choose another results folder",
        "3 runs compared, 0 left out",
    )
    project.succeeds().says("4 runs compared, 0 left out")


@pytest.mark.nightly
def test_room_is_looked_at_where_and_when_the_runs_begin(project: Project, mount_tmpfs: Callable[..., Path]) -> None:
    """The plan may be of an earlier start, or of another node."""
    project.heads("01")
    disk = mount_tmpfs(project.folder / "disk", "size=16m")
    campaign = {"placements": {"disk": {"work": "disk"}}, "parallelism": [1], "repetitions": 1, "cache": ["warm"]}
    project.succeeds("results/campaign/plan.tsv", tool="bet", tiers={"disk": disk}, campaign=campaign).says(
        "  tier disk: work "
    )
    (disk / "of others").write_bytes(bytes(16_400_000))
    refused = project.fails()
    refused.says("tier 'disk': the campaign needs ")
    assert not refused.lines("run 1 of 1")
    (disk / "of others").unlink()
    project.succeeds().says("1 run compared, 0 left out")


def test_published_runs_are_compared_without_a_run_of_ones_own(project: Project) -> None:
    """One published condition, twice; the demonstration is neither made nor analysed for it."""
    for repetition, minutes in ((4, 1), (5, 2)):
        folder = project.folder / f"published/bids-app-example/disk-{repetition}"
        folder.mkdir(parents=True)
        (folder / "tasks.json").write_text(bids_tasks(minutes))
    project.succeeds("comparison", published="published").says("2 runs compared, 0 left out")
    found = project.columns("origin makespan_low_s makespan_high_s", "comparison/figures/makespan.tsv")
    assert found == ["published 60.0 120.0"]
    assert not (project.results / "index").exists()
