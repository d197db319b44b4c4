"""The workflow on a real Slurm: several participants per job, failures, a node that dies, jobs that are killed."""

from __future__ import annotations

import json
import re
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from conftest import missing
from slurm_cluster import Cluster, NotHereError, slurm, succeeds
from support import ENVIRONMENT, PATIENCE_S, STAND_INS, Ended, Project, checksums, plain_dataset, small_head, t1w

QUICK = ["--slurm-init-seconds-before-status-checks", "1", "--latency-wait", "2", "--resources", "mem_mb=5000"]
"""Short waits: what is asked of Slurm is the same."""


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    try:
        with slurm(tmp_path_factory.mktemp("slurm") / "cluster") as running:
            yield running
    except NotHereError as error:
        missing(str(error))


def on_slurm(*arguments: str, group: int = 4) -> list[str]:
    """Arguments that send the participants to Slurm, ``group`` of them per job."""
    return ["--profile", "profiles/slurm", *QUICK, *arguments, "--config", f"participants_per_job={group}"]


def started(project: Project, *arguments: str, path: Path) -> subprocess.Popen[str]:
    """Snakemake, running, with ``path`` first on PATH."""
    return subprocess.Popen(
        [sys.executable, "-m", "snakemake", "participants", *arguments],
        cwd=project.folder,
        env={**ENVIRONMENT, "PATH": f"{path}:{ENVIRONMENT['PATH']}"},
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    )


def ended(snakemake: subprocess.Popen[str]) -> Ended:
    output, _ = snakemake.communicate(timeout=2 * PATIENCE_S)
    return Ended(snakemake.returncode, output)


def wait_for(find: Callable[[], Any]) -> Any:
    """What is found, as soon as it is."""
    deadline = time.monotonic() + PATIENCE_S
    while not (found := find()):
        assert time.monotonic() < deadline
        time.sleep(0.1)
    return found


def records(project: Project) -> dict[str, dict[str, Any]]:
    files = (project.results / "profile" / "records").rglob("*.json")
    return {record["participant"]: record for record in (json.loads(file.read_text()) for file in files)}


def jobs_since(cluster: Cluster, first: int, *columns: str) -> list[list[str]]:
    """Participant jobs of Slurm from a number on, in order."""
    rows = cluster.sacct("JobIDRaw", "Comment", *columns, options=("--duplicates",))
    return [row[2:] for row in rows if int(row[0]) >= first]


def next_job(cluster: Cluster) -> int:
    return 1 + max((int(row[0]) for row in cluster.sacct("JobIDRaw")), default=0)


def states(cluster: Cluster, job: str) -> list[list[str]]:
    """The state of every start of a job."""
    return cluster.sacct("State", options=("--duplicates", "--jobs", job))


def slurm_job(project: Project, participant: str) -> tuple[str, str] | None:
    """Slurm's job of a participant and its node, by the participant's log."""
    log = project.results / "logs" / "analyze_participant" / f"{participant}.log"
    found = re.match(r"Slurm job (\d+) on (\w+)\n", log.read_text()) if log.exists() else None
    return (found[1], found[2]) if found else None


def bet_that(folder: Path, first: str) -> None:
    """A stand-in for bet that does something first."""
    folder.mkdir()
    (folder / "bet").write_text(f'#!/bin/sh\n{first}\nexec {STAND_INS}/bet "$@"\n')
    (folder / "bet").chmod(0o755)


def test_results_are_those_of_a_local_run(cluster: Cluster, demo_source: Path, tmp_path: Path) -> None:
    local, remote = Project.at(tmp_path / "local"), Project.at(tmp_path / "remote")
    first = next_job(cluster)
    dataset = {"source": str(demo_source)}
    done = local.snakemake(
        *local.configure(dataset=dataset, tool={"name": "bet"}), targets=["participants"], path=STAND_INS
    )
    assert done.code == 0, done.output
    scratch = tmp_path / "scratch"
    scratch.mkdir()
    tier = {"path": f"{scratch}/$SLURM_JOB_USER/$SLURM_JOB_ID", "kind": "block", "node": True}
    config = remote.configure(dataset=dataset, tool={"name": "bet"}, tiers={"local": {"path": "."}, "scratch": tier})
    placement = remote.folder / "scratch" / "profile.yaml"
    placement.parent.mkdir()
    placement.write_text(
        "config:\n  placement:\n    work: scratch\nscheduler: greedy\nkeep-going: true\nnolock: true\n"
    )
    storage = ["--workflow-profile", str(placement.parent)]
    done = remote.run("-m", "snakemake", *storage, *on_slurm(*config), path=STAND_INS)
    assert done.code == 0, done.output
    local_checksums = checksums(local.results / "derivatives")
    assert local_checksums == {
        name: sum_ for name, sum_ in checksums(remote.results / "derivatives").items() if "/sub-" in name
    }
    assert (remote.results / "report.html").exists()
    people = records(remote)
    jobs = {record["work_path"].rsplit("/", 1)[1] for record in people.values()}
    assert len(people) == 4
    assert all(record["work_path"].startswith(f"{scratch}/root/") for record in people.values())
    assert all(job.isdigit() and int(job) >= first for job in jobs)
    assert len(jobs) == 1
    assert len(jobs_since(cluster, first)) == 2  # the participants together, and what follows together
    assert not [path for path in scratch.rglob("*") if path.name.startswith("neurotier-")]


def test_only_what_may_pass_is_tried_again(cluster: Cluster, project: Project) -> None:
    """A tool that is killed gets more memory and time; the bad image beside it was answered, the others are done."""
    first = next_job(cluster)
    images: dict[str, Any] = {t1w(f"{number:02d}"): small_head(number) for number in range(4)}
    plain_dataset(project.folder / "bids", {**images, t1w("bad"): b""})
    config = project.configure(dataset={"source": "bids"}, tool={"name": "bet"})
    tools = project.folder / "tools"
    killed_once = f"[ -e {tools}/killed ] || {{ touch {tools}/killed; kill -9 $$; }}"
    bet_that(tools, f'echo "$1" >> {tools}/calls; case $1 in *sub-00*) {killed_once};; esac')
    done = project.run("-m", "snakemake", *on_slurm(*config, group=5), path=tools)
    assert done.code != 0
    assert len(done.lines("failed  sub-bad: sub-bad/anat/sub-bad_T1w.nii.gz: the image file is empty")) == 1, (
        done.output
    )
    assert done.lines("4 of 5 participants done, 1 failed")
    assert len((tools / "calls").read_text().splitlines()) == 5  # sub-00 twice, the bad image never
    first_time, second_time = jobs_since(cluster, first, "ReqMem", "TimelimitRaw", "State", "JobIDRaw")
    assert [first_time[2], second_time[2]] == ["FAILED", "FAILED"]
    assert int(second_time[0].rstrip("M")) == 2 * int(first_time[0].rstrip("M"))
    assert int(second_time[1]) > 15
    (log,) = (project.folder / ".snakemake" / "slurm_logs").rglob(f"{second_time[3]}.log")
    assert "sub-bad: failed in this run already, and is not tried again" in log.read_text()
    failure = json.loads((project.results / "state" / "failures" / "sub-bad.json").read_text())
    assert failure["exit_code"] == 65
    assert "the image file is empty" in (project.results / "report.html").read_text()
    assert "Traceback" not in done.output


def test_a_node_that_dies_is_survived_and_a_killed_job_names_its_log(cluster: Cluster, project: Project) -> None:
    images = {t1w(label): small_head() for label in ("00", "01", "02", "slow")}
    plain_dataset(project.folder / "bids", images)
    bet_that(project.folder / "tools", "case $1 in *slow*) exec sleep 100;; esac; sleep 2")
    config = project.configure(dataset={"source": "bids"}, tool={"name": "bet"})
    arguments = on_slurm(*config, "--cores", "1", "--preemptible-retries", "0", group=3)
    snakemake = started(project, *arguments, path=project.folder / "tools")

    slow = wait_for(lambda: slurm_job(project, "sub-slow"))[0]
    end = ["scontrol", "update", f"JobId={slow}", "EndTime=now"]
    wait_for(lambda: succeeds(*end))  # refused where the next second begins before the controller hears of it
    before = wait_for(lambda: records(project))
    first, node = wait_for(lambda: slurm_job(project, next(iter(before))))
    cluster.kill_node(node)
    wait_for(lambda: ["NODE_FAIL"] in states(cluster, first))
    cluster.start_node(node)
    done = ended(snakemake)

    assert done.code != 0
    after = records(project)
    assert sorted(after) == ["sub-00", "sub-01", "sub-02"]
    assert all(after[name] == before[name] for name in before)  # done is done
    failure = json.loads((project.results / "state" / "failures" / "sub-slow.json").read_text())
    assert f"(Slurm job {slow}: TIMEOUT" in failure["reason"]
    log = Path(failure["log"])
    assert log == project.results / "logs" / "slurm" / f"{slow}.log"
    assert "DUE TO TIME LIMIT" in log.read_text()
    assert f'href="logs/slurm/{slow}.log"' in (project.results / "report.html").read_text()
