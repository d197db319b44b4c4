"""What commands grant the pool of a run, whether it goes on after failures, and runs that share a tier."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from conftest import nightly
from support import STAND_INS, Project, numbered, plain_dataset, processes_in, script, sleeping, small_head, t1w

LABELS = numbered(6)
ON_TMPFS = ("--workflow-profile", "profiles/tmpfs")

MISBEHAVING = """\
case $PWD in
*sub-00*) setsid sleep 600 & ;;
*sub-01*) (trap '' TERM; sleep 601) & ;;
*sub-02*) sh -c 'sleep 602 & sleep 603 &' ;;
*sub-03*) dd if=/dev/zero of="$2.fills" bs=1M count=64 2>/dev/null || exit 1 ;;
esac
exec {bet} "$@"
"""
"""Tools that leave daemons, children that ignore SIGTERM and orphans behind, and one that fills the tier."""


@pytest.mark.parametrize(
    ("options", "most"),
    [
        (["--cores", "6", "--resources", "work_mb=4"], 2),
        *nightly(
            (["--cores", "3"], 3),
            (["--cores", "6", "--set-threads", "analyze_participants=2"], 2),
            (["--cores", "6", "--set-resources", "analyze_participants:mem_mb=250"], 2),
        ),
    ],
)
def test_no_more_are_analysed_at_once_than_was_granted(project: Project, options: list[str], most: int) -> None:
    project.heads(*LABELS)
    project.succeeds("tabulate_profile", *options, cores=0, tool=sleeping(2))
    assert int(project.only_run["peak_parallelism"]) == most


def test_memory_that_was_granted_counts_beyond_what_the_machine_has(project: Project) -> None:
    """As users are told to say who know that jobs need less than estimated."""
    project.heads("01", "02", "03")
    tools = script(project.folder / "tools/strip", 'sleep 2\ncp "$1" "$2/brain.nii.gz"').parent
    own = {"command": "strip {input} {output}", "brain": "brain.nii.gz", "memory_mb": 10**6}
    granted = ["--resources", f"mem_mb={2 * 10**6 + 10**5}"]
    project.succeeds("tabulate_profile", *granted, path=tools, cores=3, tool={"name": "own", "own": own})
    assert project.only_run["peak_parallelism"] == "2"


def test_nobody_is_begun_after_a_failure_unless_the_command_says_so(project: Project) -> None:
    """The image that is no image is the largest, so that it comes first."""
    project.heads(*LABELS, broken=np.random.default_rng(1).bytes(200_000))
    project.fails("participants", "--workflow-profile", "none", cores=1, tool="noop").says("sub-broken")
    assert project.records() == []


def test_what_snakemake_would_pass_over_is_refused(project: Project) -> None:
    """With ``--until`` it looks for jobs before the dataset is indexed, finds none of these, and would end well."""
    project.heads("01")
    project.succeeds("ready", tool="noop")
    project.fails("--until", "analyze_participants").says(
        "--until analyze_participants: before the dataset is indexed, Snakemake does not know these jobs"
    )
    project.succeeds("--until", "require_participants")
    assert len(project.records()) == 1
    assert not (project.results / "report.html").exists()


def test_more_memory_than_any_job_is_given_is_refused_before_one_is_submitted(project: Project) -> None:
    project.heads("01")
    project.succeeds("results/index/images.tsv", tool={"name": "noop"})
    on_cluster = ["--profile", "profiles/slurm", "--resources", "mem_mb=300"]
    ended = project.fails("participants", "--dry-run", *on_cluster, cores=0)
    ended.says("neurotier: sub-01: needs a job of", "jobs get at most 300 MB; choose nodes with as much")
    project.succeeds("participants", "--dry-run", "--profile", "profiles/slurm", cores=0)


def test_tools_that_misbehave_leave_nothing_and_one_that_fills_the_tier_fails_alone(
    project: Project, mount_tmpfs: Callable[..., Path]
) -> None:
    project.heads(*LABELS)
    folder, tools = mount_tmpfs(project.folder / "fast", "size=32m"), project.folder / "tools"
    script(tools / "bet", MISBEHAVING.format(bet=STAND_INS / "bet"))
    ended = project.fails("participants", *ON_TMPFS, path=tools, tool="bet", tiers={"tmpfs": folder})
    assert "became full" in project.failure("sub-03")["reason"], ended.output
    assert sorted(file.stem for file in project.records()) == [f"sub-{label}" for label in LABELS if label != "03"]
    assert not processes_in(project.folder)
    assert not list(folder.rglob("*sub-*"))


@pytest.mark.nightly
def test_two_runs_drop_what_they_share(project: Project, tmp_path: Path, demo_source: Path) -> None:
    """They use one clone, from which each drops the images of participants that it has analysed."""
    other, tier = Project.at(tmp_path / "other"), tmp_path / "tier"
    tier.mkdir()
    dataset, tiers = {"source": demo_source, "drop": True}, {"common": tier}
    starts = [
        one.start("participants", tool="noop", dataset=dataset, tiers=tiers, placement={"dataset": "common"})
        for one in (project, other)
    ]
    assert [start.wait() for start in starts] == [0, 0]
    assert len(project.records()) == len(other.records()) == 4


@pytest.mark.nightly
def test_two_runs_share_a_tier_that_is_too_small_for_both(
    project: Project, tmp_path: Path, mount_tmpfs: Callable[..., Path]
) -> None:
    """Two participants of each take a third of it: one that finds it full is tried again when there is room."""
    small, other = mount_tmpfs(tmp_path / "small", "size=24m"), Project.at(tmp_path / "other")
    noise = np.random.default_rng(1).integers(0, 255, (128, 128, 128), np.uint8)
    starts = []
    for one in (project, other):
        plain_dataset(one.folder / "bids", {t1w("01"): noise, t1w("02"): noise, t1w("03"): small_head()})
        starts.append(one.start("participants", *ON_TMPFS, tool=sleeping(1), tiers={"tmpfs": small}))
    assert [start.wait() for start in starts] == [0, 0]
    assert len(project.records()) == len(other.records()) == 3
