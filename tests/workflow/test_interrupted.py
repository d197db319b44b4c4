"""What is killed: the same command again completes it, with the same bytes, and leaves nothing behind."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
from pathlib import Path

import psutil
import pytest
from conftest import nightly
from container_images import Engine, tiny_root
from neurotier.core.places import short_hash
from support import (
    PATIENCE_S,
    Project,
    checksums,
    kind_of,
    private_folder,
    processes_in,
    read_json,
    sleeping,
    slow_project,
    wait_for,
)


@pytest.fixture
def project(tmp_path: Path) -> Project:
    return slow_project(tmp_path)


HEADS = ["0099001", "0099102"]
"""Two participants of different sites."""


@pytest.fixture(scope="module")
def undisturbed(tmp_path_factory: pytest.TempPathFactory, demo_source: Path) -> dict[str, str]:
    project = slow_project(tmp_path_factory.mktemp("undisturbed"))
    described = [f"results/derivatives/{site}/dataset_description.json" for site in ("SiteA", "SiteB")]
    project.succeeds("participants", *described, dataset={"source": demo_source, "participants": HEADS}, tool="bet")
    return checksums(project.derivatives)


@pytest.mark.parametrize("killed", [["pool"], *nightly(["snakemake"], ["participant"], ["participant", "snakemake"])])
def test_the_same_command_completes_after_a_kill(
    project: Project, demo_source: Path, undisturbed: dict[str, str], killed: list[str]
) -> None:
    """The process through which participants flow is a pool, of which that of a participant is a copy."""
    snakemake = project.start(dataset={"source": demo_source, "participants": HEADS}, tool="bet")
    tool = wait_for(lambda: processes_in(project.folder, "bin/bet "), snakemake)[0]
    jobs = [one for one in tool.parents() if "analyze-participants" in one.cmdline()]
    family = {"snakemake": psutil.Process(snakemake.pid), "participant": jobs[0], "pool": jobs[-1]}
    for name in killed:
        family[name].kill()
    code = snakemake.wait(2 * PATIENCE_S)
    if "snakemake" not in killed:  # it was analysed once more, which is no time to compare
        assert code == 0
        assert project.leftovers() == []
        assert "analysed again after a kill" in project.page("report")
    else:
        assert code != 0
    project.succeeds()
    assert checksums(project.derivatives) == undisturbed
    assert project.leftovers() == []
    assert processes_in(project.folder) == []


@pytest.mark.nightly
def test_a_start_in_a_copy_leaves_the_run_alone_that_goes_on_in_the_other(project: Project) -> None:
    project.heads("01")
    first = project.start("tabulate_profile", tool=sleeping(40))
    wait_for(lambda: list(project.folder.glob("neurotier-*/work/*/*/owner.json")), first)
    shutil.copytree(project.results, project.folder / "copy")
    project.succeeds("copy/index/tool.json", "--config", "results=copy")
    assert first.poll() is None
    assert first.wait(timeout=2 * PATIENCE_S) == 0
    assert "again" not in project.only_run["valid"]


@pytest.mark.parametrize("state", ["there", *nightly("open", "gone")])
def test_a_start_with_another_work_tier_clears_that_of_the_killed_run(project: Project, state: str) -> None:
    """What is left in memory would take room for good; what may lead elsewhere by now is let alone, and named."""
    project.heads("01")
    former = project.folder / "former"
    former.mkdir()
    project.configure(tiers={"mine": former}, placement={"work": "mine"}, tool=sleeping(600))
    first = project.start("participants", start_new_session=True)
    wait_for(lambda: list(former.glob("neurotier-*/work/*/*/owner.json")), first)
    os.killpg(first.pid, signal.SIGKILL)
    first.wait(PATIENCE_S)
    if state == "open":
        former.chmod(0o777)
    if state == "gone":
        former = former.rename(project.folder / "unmounted")
    ended = project.succeeds("participants", tool="noop")
    assert processes_in(project.folder) == []
    stays = state != "there"
    assert bool(list(former.glob("neurotier-*/work/*/*"))) == stays
    assert len(ended.lines("stay: tier 'mine': ")) == stays


@pytest.mark.parametrize("node", [False, *nightly(True)])
def test_a_start_with_nothing_to_be_done_clears_up_too(project: Project, node: bool) -> None:
    """What was left: a process, intermediates, a file that was being written. Tiers of the nodes are their jobs'."""
    project.heads("01")
    tier = project.folder / "tier"
    tier.mkdir()
    tiers = {"mine": {"path": tier, "kind": kind_of(tier), "node": node}}
    project.succeeds("participants", tiers=tiers, placement={"work": "mine"}, tool="noop")
    (run,) = (project.results / "state/runs").glob("*.json")
    left = private_folder(tier) / "work" / short_hash(str(project.results)) / "sub-01/in"
    unfinished = project.results / "index/.images.tsv.0f.partial"
    left.mkdir(parents=True)
    unfinished.touch()
    with subprocess.Popen(["sleep", "1000"], env={**os.environ, "NEUROTIER_RUN": run.stem}) as process:
        try:
            project.succeeds("participants", "--dry-run").says("Nothing to be done")
            assert (process.poll(), left.exists(), unfinished.exists()) == (None, True, True)
            project.succeeds("participants").says("Nothing to be done")
            assert process.poll() is not None
            assert (left.exists(), list(tier.iterdir())) == (node, [private_folder(tier)] * node)
            assert not unfinished.exists()
        finally:
            process.kill()


@pytest.mark.parametrize("number", [signal.SIGKILL, *nightly(signal.SIGINT, signal.SIGTERM)])
def test_a_build_that_is_stopped_is_done_again_by_the_same_command(
    project: Project, engine: Engine, tmp_path: Path, number: signal.Signals
) -> None:
    """Stopped as a batch system or a terminal does it, which is all processes at once."""
    definition = tmp_path / "tool.def"
    definition.write_text(f"Bootstrap: localimage\nFrom: {tiny_root(tmp_path)}\n\n%post\n    sleep 4\n")
    project.heads("00")
    tool = {"name": "bet", "bet": {"image": definition}}
    command = ("results/index/image.json", "--sdm", "apptainer")
    snakemake = project.start(*command, start_new_session=True, tool=tool)
    logs = project.results / "logs"
    wait_for(lambda: any("Running post scriptlet" in log.read_text() for log in logs.rglob("*.log")), snakemake)
    os.killpg(snakemake.pid, number)
    snakemake.ended()
    (store,) = project.folder.glob("neurotier-*/image-store")
    assert not list(store.glob("tool-*.sif"))
    if number == signal.SIGKILL:
        (left,) = store.glob(".tool-*.partial")
        (left / "old").write_text("of the first build")
    project.succeeds(*command)
    assert len(list(store.glob("tool-*.sif"))) == 1
    assert not list(project.folder.glob("neurotier-*/image*/*.partial"))


TARGETS = ("participants", "tabulate_profile", "--cores", "1")


@pytest.mark.nightly
def test_a_killed_run_is_completed_and_its_tables_tell_who_computed(project: Project, demo_source: Path) -> None:
    """In a run in which participants copy in and out while others compute, and images are fetched meanwhile. The row of
    the run that was killed is what it was, though the next start removes a record of it."""
    snakemake = project.start(*TARGETS, dataset=demo_source, tool=sleeping(4), shares={"staging_beside": 1})
    wait_for(lambda: project.records(), snakemake)
    os.kill(snakemake.pid, signal.SIGKILL)
    snakemake.wait()
    wait_for(lambda: not processes_in(project.folder))
    done = project.records()
    before = {file: file.stat().st_mtime_ns for file in done[1:]}
    shutil.rmtree(project.derivatives / read_json(done[0])["participant"])

    project.succeeds(*TARGETS)
    records = project.records()
    assert len(records) == 4
    assert {file: file.stat().st_mtime_ns for file in before} == before, "who was done stays done"
    assert not project.leftovers()
    runs = project.table("profile/runs.tsv")
    assert runs[0]["participants"] == str(len(done))
    assert runs[0]["valid"].startswith("invalid: the run was killed")
    assert {run["peak_computing"] for run in runs} == {"1"}
    assert max(int(run["peak_parallelism"]) for run in runs) >= 2, "of the first run, or of the next if that had more"
    assert max(read_json(file)["slot_wait_s"] for file in records) > 0
