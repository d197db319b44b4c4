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


def on_slurm(*arguments: str, group: int = 4, at_once: int = 4) -> list[str]:
    """Arguments that send the participants to Slurm, ``group`` of them per job."""
    batches = f"batches={{participants: {group}, at_once: {at_once}}}"
    return ["--profile", "profiles/slurm", *QUICK, *arguments, "--config", batches]


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


def jobs_with_records(project: Project) -> list[tuple[str, str]]:
    """Slurm's jobs, with their nodes, that have analysed somebody."""
    return [job for name in records(project) if (job := slurm_job(project, name)) is not None]


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
    (run,) = remote.table("profile/runs.tsv")
    assert (run["others_cpu_share"], run["others_cpu_reason"]) == ("n/a", "a batch system started the jobs")
    people = records(remote)
    jobs = {record["work_path"].rsplit("/", 1)[1] for record in people.values()}
    assert len(people) == 4
    assert all(record["work_path"].startswith(f"{scratch}/root/") for record in people.values())
    assert all(job.isdigit() and int(job) >= first for job in jobs)
    assert len(jobs) == 1
    assert len(jobs_since(cluster, first)) == 6  # the participants together, and five steps from tables to report
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
    assert [first_time[2], second_time[2]] == ["FAILED", "COMPLETED"]
    assert int(second_time[0].rstrip("M")) == 2 * int(first_time[0].rstrip("M"))
    assert int(second_time[1]) == 2 * int(first_time[1]) == 2 * 15 * 2  # two rounds of four at once
    log = next((project.results / "logs" / "analyze_participants").glob("*.log")).read_text()
    assert f"Slurm job {second_time[3]} on " in log
    assert "1 of 5 to analyse: sub-00" in log
    failure = json.loads((project.results / "state" / "failures" / "sub-bad.json").read_text())
    assert failure["exit_code"] == 65
    assert "the image file is empty" in (project.results / "report.html").read_text()
    assert "Traceback" not in done.output


def test_a_node_that_dies_is_survived_and_a_killed_job_names_its_log(cluster: Cluster, project: Project) -> None:
    images = {t1w(label): small_head() for label in ("00", "01", "02", "slow")}
    plain_dataset(project.folder / "bids", images)
    bet_that(project.folder / "tools", "case $1 in *slow*) exec sleep 100;; esac; sleep 2")
    config = project.configure(dataset={"source": "bids"}, tool={"name": "bet"})
    arguments = on_slurm(*config, "--preemptible-retries", "0", group=2, at_once=1)
    snakemake = started(project, *arguments, path=project.folder / "tools")

    slow = wait_for(lambda: slurm_job(project, "sub-slow"))[0]
    end = ["scontrol", "update", f"JobId={slow}", "EndTime=now"]
    wait_for(lambda: succeeds(*end))  # refused where the next second begins before the controller hears of it
    first, node = wait_for(lambda: next((job for job in jobs_with_records(project) if job[0] != slow), None))
    before = records(project)
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


def called(project: Project) -> list[str]:
    """Participants for whom the tool was begun, once for each time."""
    calls = project.folder / "tools" / "calls"
    return re.findall(r"sub-\w+(?=_T1w)", calls.read_text()) if calls.exists() else []


def test_a_dead_head_leaves_nobody_behind_and_the_rest_is_divided_anew(cluster: Cluster, project: Project) -> None:
    """Never more jobs than the missing need, nobody analysed by two at once, and what the old jobs did counts."""
    labels = [f"{number:02d}" for number in range(12)]
    plain_dataset(project.folder / "bids", {t1w(label): small_head() for label in labels})
    tools = project.folder / "tools"
    bet_that(tools, f'echo "$1" >> {tools}/calls; sleep 3')
    arguments = on_slurm(*project.configure(dataset={"source": "bids"}, tool={"name": "bet"}), at_once=1)
    first = next_job(cluster)
    head = started(project, *arguments, path=tools)
    wait_for(lambda: len(records(project)) >= 2)
    head.kill()
    head.communicate()
    left = subprocess.run(["squeue", "--me", "-h", "-o", "%i"], capture_output=True, text=True, check=True)
    listed = project.run("-m", "neurotier", "jobs", "results")
    assert sorted(line.split()[0] for line in listed.output.splitlines()) == sorted(left.stdout.split())
    assert "RUNNING" in listed.output

    second = next_job(cluster)
    assert len(jobs_since(cluster, first)) == second - first == 3
    done = ended(started(project, *arguments, path=tools))
    assert done.code == 0, done.output
    assert done.lines("neurotier: ended 3 cluster jobs that an earlier run had left")
    assert sorted(records(project)) == [f"sub-{label}" for label in labels]
    again = jobs_since(cluster, second, "State")
    missing_then = len(done.analysed)
    assert 0 < missing_then <= 10
    assert [state for (state,) in again] == ["COMPLETED"] * -(-missing_then // 4)
    twice = {name for name in called(project) if called(project).count(name) > 1}
    assert len(twice) <= 3  # the one that each of the old jobs was at when it was ended
    assert {state.partition(" ")[0] for (state,) in jobs_since(cluster, first, "State")[:3]} == {"CANCELLED"}
    assert project.run("-m", "neurotier", "jobs", "results").output == ""


def test_a_job_ended_by_scancel_is_heard_of(cluster: Cluster, project: Project) -> None:
    plain_dataset(project.folder / "bids", {t1w(label): small_head() for label in ("00", "01")})
    tools = project.folder / "tools"
    bet_that(tools, f"[ -e {tools}/go ] || exec sleep 1000")
    arguments = on_slurm(*project.configure(dataset={"source": "bids"}, tool={"name": "bet"}))
    head = started(project, *arguments, "--preemptible-retries", "0", path=tools)
    job, _ = wait_for(lambda: slurm_job(project, "sub-00"))
    subprocess.run(["scancel", job], check=True)
    done = ended(head)
    assert done.code != 0
    assert done.lines("failed  sub-00: ") or done.lines("failed  sub-01: "), done.output
    assert f"Slurm job {job}: CANCELLED" in done.output
    (tools / "go").touch()
    done = ended(started(project, *arguments, path=tools))
    assert done.code == 0, done.output
    assert sorted(records(project)) == ["sub-00", "sub-01"]
