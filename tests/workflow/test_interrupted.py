"""A run that is killed: the same command again completes, with the same bytes, and leaves nothing behind."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
from collections.abc import Callable
from pathlib import Path

import psutil
import pytest
from conftest import nightly
from neurotier.core.places import short_hash
from support import (
    PATIENCE_S,
    Project,
    checksums,
    kind_of,
    private_folder,
    processes_in,
    slow_project,
    wait_for,
    while_running,
)


@pytest.fixture
def project(tmp_path: Path) -> Project:
    return slow_project(tmp_path)


def arguments_for(project: Project, source: Path) -> list[str]:
    """Arguments for two participants of different sites."""
    return project.configure(dataset={"source": str(source), "participants": ["0099001", "0099102"]}, tool="bet")


@pytest.fixture(scope="module")
def undisturbed(tmp_path_factory: pytest.TempPathFactory, demo_source: Path) -> dict[str, str]:
    project = slow_project(tmp_path_factory.mktemp("undisturbed"))
    described = [f"results/derivatives/{site}/dataset_description.json" for site in ("SiteA", "SiteB")]
    project.succeeds("participants", *described, *arguments_for(project, demo_source))
    return checksums(project.derivatives)


def computing(project: Project) -> psutil.Process | None:
    """A participant job of this project that is in its compute phase."""
    for scratch in project.folder.glob("neurotier-*/work/*/**/scratch*"):
        for process in psutil.process_iter():
            try:
                if process.cwd() == str(scratch):
                    return process.parent()
            except psutil.Error:
                continue
    return None


def kill_when_computing(project: Project, arguments: list[str], kill: Callable[[int, int], None]) -> int:
    """Start Snakemake, and call ``kill(snakemake, job)`` once a participant computes; Snakemake's exit code."""
    snakemake = project.start(*arguments)
    kill(snakemake.pid, wait_for(lambda: computing(project), while_running(snakemake)).pid)
    return snakemake.wait(timeout=2 * PATIENCE_S)


def pool_of(participant: int) -> int:
    """The process through which participants flow, of which that of a participant is a copy."""
    return next(
        process.pid
        for process in reversed(psutil.Process(participant).parents())
        if "analyze-participants" in process.cmdline()
    )


@pytest.mark.parametrize("killed", [["pool"], *nightly(["snakemake"], ["participant"], ["participant", "snakemake"])])
def test_the_same_command_completes_after_a_kill(
    project: Project, demo_source: Path, undisturbed: dict[str, str], killed: list[str]
) -> None:
    def kill(snakemake: int, participant: int) -> None:
        pids = {"snakemake": snakemake, "participant": participant, "pool": pool_of(participant)}
        for name in killed:
            os.kill(pids[name], signal.SIGKILL)

    arguments = arguments_for(project, demo_source)
    code = kill_when_computing(project, arguments, kill)
    if "snakemake" not in killed:  # it was analysed once more, which is no time to compare
        assert code == 0
        assert project.leftovers() == []
        assert "analysed again after a kill" in project.page("report")
    else:
        assert code != 0
    project.succeeds(*arguments)
    assert checksums(project.derivatives) == undisturbed
    assert project.leftovers() == []
    assert processes_in(project.folder) == []


@pytest.mark.nightly
def test_a_start_in_a_copy_leaves_the_run_alone_that_goes_on_in_the_other(project: Project) -> None:
    project.heads("01")
    given = project.configure(tool={"name": "noop", "noop": {"sleep_s": 40}})
    first = project.start("tabulate_profile", *given)
    wait_for(lambda: list(project.folder.glob("neurotier-*/work/*/*/owner.json")), while_running(first))
    shutil.copytree(project.results, project.folder / "copy")
    project.succeeds("copy/index/tool.json", *given, "--config", "results=copy")
    assert first.poll() is None
    assert first.wait(timeout=2 * PATIENCE_S) == 0
    (run,) = project.table("profile/runs.tsv")
    assert "again" not in run["valid"]


@pytest.mark.parametrize("node", [False, *nightly(True)])
def test_a_start_with_nothing_to_be_done_clears_up_too(project: Project, node: bool) -> None:
    """What was left: a process, intermediates, a file that was being written. Tiers of the nodes are their jobs'."""
    project.heads("01")
    tier = project.folder / "tier"
    tier.mkdir()
    tiers = {"mine": {"path": str(tier), "kind": kind_of(tier), "node": node}}
    arguments = project.configure(tiers=tiers, placement={"work": "mine"}, tool="noop")
    project.succeeds("participants", *arguments)
    (run,) = (project.results / "state" / "runs").glob("*.json")
    left = private_folder(tier) / "work" / short_hash(str(project.results)) / "sub-01" / "in"
    unfinished = project.results / "index" / ".images.tsv.0f.partial"
    left.mkdir(parents=True)
    unfinished.touch()
    with subprocess.Popen(["sleep", "1000"], env={**os.environ, "NEUROTIER_RUN": run.stem}) as process:
        try:
            assert project.succeeds("participants", *arguments, "--dry-run").lines("Nothing to be done")
            assert (process.poll(), left.exists(), unfinished.exists()) == (None, True, True)
            assert project.succeeds("participants", *arguments).lines("Nothing to be done")
            assert process.poll() is not None
            assert (left.exists(), list(tier.iterdir())) == (node, [private_folder(tier)] * node)
            assert not unfinished.exists()
        finally:
            process.kill()
