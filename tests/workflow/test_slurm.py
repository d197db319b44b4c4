"""The workflow on a real Slurm: several participants per job, failures, a node that dies, jobs that are killed."""

from __future__ import annotations

import fcntl
import gzip
import os
import random
import re
import shlex
import shutil
import signal
import sys
import sysconfig
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import nibabel as nib
import numpy as np
import psutil
import pytest
import yaml
from conftest import missing
from container_images import Engine, make_tiny
from faults import heads
from modules import configure_two, counted_masks
from shown_values import shown
from slurm_cluster import LINK, LOCK, Cluster, NotHereError, nodes_in, slurm, succeeds
from slurm_hosts import LOGIN, NODES, SCRATCH_MIB, USER, give, has_memory_limits
from support import (
    SNAKEMAKE,
    STAND_INS,
    Project,
    Started,
    checksums,
    kind_of,
    numbered,
    plain_dataset,
    read_json,
    script,
    sleeping,
    small_head,
    system,
    wait_for,
)

QUICK = ["--slurm-init-seconds-before-status-checks", "1", "--latency-wait", "2", "--resources", "mem_mb=5000"]
"""Short waits: what is asked of Slurm is the same."""

ONCE = ("--preemptible-retries", "0")
"""A job that failed is not submitted again."""

STUCK = "touch $tools/began; until [ -e $tools/go ]; do sleep 0.1; done"
"""What a tool does first in order to wait for the test."""

SNAKEMAKE_PACKAGE = sysconfig.get_path("purelib") + "/snakemake"


@pytest.fixture(scope="module")
def cluster() -> Iterator[Cluster]:
    try:
        with slurm() as running:
            yield running
    except NotHereError as error:
        missing(str(error))


@pytest.fixture
def project(cluster: Cluster, request: pytest.FixtureRequest) -> Project:
    """A working folder of an ordinary user of the cluster, who gives all commands on the login node."""
    made = cluster.project(request.node.name)
    return replace(made, tools=made.folder / "tools")


@pytest.fixture(scope="module")
def demo_there(cluster: Cluster, demo_source: Path) -> Path:
    """The demonstration dataset on the cluster's file system, the user's."""
    copy = cluster.home / "demo"
    shutil.copytree(demo_source, copy, symlinks=True)
    give(copy)
    return copy


@pytest.fixture
def scratch(cluster: Cluster, request: pytest.FixtureRequest) -> Path:
    """A folder of the user beside the working folder."""
    folder = cluster.home / f"{request.node.name}-scratch"
    folder.mkdir()
    give(folder)
    return folder


def on_slurm(*arguments: str, group: int = 4, at_once: int = 4) -> list[str]:
    """Arguments that send the participants to Slurm, ``group`` of them per job."""
    shares = f"shares={{participants: {group}, at_once: {at_once}}}"
    return ["--profile", "profiles/slurm", *QUICK, *arguments, "--config", shares]


def started(
    project: Project,
    *options: str,
    group: int = 4,
    at_once: int = 4,
    config: tuple[str, ...] = (),
    target: str = "participants",
    **more: Any,
) -> Started:
    """Snakemake, running on the login node; ``config`` is laid over the configuration."""
    return project.start(target, *on_slurm(*options, group=group, at_once=at_once), *config, cores=0, **more)


def head_of(snakemake: Started) -> psutil.Process:
    """Snakemake itself, which lives on the login node: here is what waits for it."""
    (head,) = psutil.Process(snakemake.pid).children()
    return head


def kill(snakemake: Started) -> None:
    head_of(snakemake).kill()
    snakemake.wait()


def queued(project: Project, *options: str) -> list[str]:
    """What squeue prints of the user's jobs: the numbers of those that wait or run, without further options."""
    return system(*project.before(), "squeue", "--me", "--noheader", "--format=%i", *options).split()


def records(project: Project) -> dict[str, dict[str, Any]]:
    files = project.records()
    return {record["participant"]: record for record in (read_json(file) for file in files)}


def jobs_since(cluster: Cluster, first: int, *columns: str) -> list[list[str]]:
    """Participant jobs of Slurm from a number on, in order."""
    rows = cluster.sacct("JobIDRaw", "Comment", *columns, options=("--duplicates",))
    return [row[2:] for row in rows if int(row[0]) >= first]


def ended_since(cluster: Cluster, first: int, *columns: str) -> list[list[str]]:
    """The same, once the accounting has heard of all of them, and that they are over: that is seconds after others."""
    numbers = {str(number) for number in range(first, cluster.next_job())}

    def known() -> bool:
        rows = jobs_since(cluster, first, "JobIDRaw", "State")
        going = {state.partition(" ")[0] for _, state in rows} & {"PENDING", "RUNNING", "COMPLETING", "REQUEUED"}
        return numbers <= {number for number, _ in rows} and not going

    wait_for(known)
    return jobs_since(cluster, first, *columns)


def set_nodes(state: str, *nodes: str) -> None:
    """Have nodes in a state."""
    system("scontrol", "update", f"NodeName={','.join(nodes)}", f"State={state}", "Reason=test")


def states(cluster: Cluster, job: str) -> list[list[str]]:
    """The state of every start of a job."""
    return cluster.sacct("State", options=("--duplicates", "--jobs", job))


def has_a_step(job: str) -> bool:
    """Whether a job has started anything by srun, as the plugin ``slurm`` does, and not its executor here."""
    return f"{job}.0" in system("sacct", "--noheader", "--parsable2", "--format=JobID", "--jobs", job).split()


ON_NODES = ["analyze_participants", "draw_mosaics", "summarize_group", "tabulate_profile", "write_report"]
"""Rules of a run that are jobs."""


def slurm_job(project: Project, participant: str) -> tuple[str, str] | None:
    """Slurm's job of a participant and its node, by the participant's log."""
    log = project.log(participant)
    found = re.match(r"Slurm job (\d+) on (\w+)\n", log.read_text()) if log.exists() else None
    return (found[1], found[2]) if found else None


def lines_in(file: Path) -> int:
    """How many lines a tool has written."""
    return len(file.read_text().splitlines()) if file.exists() else 0


def jobs_with_records(project: Project) -> list[tuple[str, str]]:
    """Slurm's jobs, with their nodes, that have analysed somebody."""
    return [job for name in records(project) if (job := slurm_job(project, name)) is not None]


def bet_that(project: Project, first: str) -> Path:
    """Have images analysed by a bet that does something first; its folder, ``$tools``, has them in ``calls``."""
    tools = project.folder / "tools"
    script(tools / "bet", f'tools={tools}\necho "$1" >> $tools/calls\n{first}\nexec {STAND_INS}/bet "$@"')
    tools.chmod(0o777)  # what it does first may write there
    project.configure(tool="bet")
    return tools


def end_at(job: str, moment: str) -> None:
    """Have the time of a job end; refused where the next second begins before the controller hears of it."""
    wait_for(lambda: succeeds("scontrol", "update", f"JobId={job}", f"EndTime={moment}"))


def test_results_are_those_of_a_local_run(
    cluster: Cluster, demo_source: Path, demo_there: Path, project: Project, scratch: Path, tmp_path: Path
) -> None:
    local, first = Project.at(tmp_path / "local"), cluster.next_job()
    local.succeeds("participants", dataset=demo_source, tool="bet")
    profile = project.folder / "scratch/profile.yaml"
    profile.parent.mkdir()
    profile.write_text("config:\n  placement:\n    work: scratch\nscheduler: greedy\nkeep-going: true\nnolock: true\n")
    tier = {"path": f"{scratch}/$SLURM_JOB_USER/$SLURM_JOB_ID", "kind": "block", "node": True}
    project.configure(dataset=demo_there, tool="bet", tiers={"local": {"path": "."}, "scratch": tier})
    project.succeeds("--workflow-profile", str(profile.parent), *on_slurm(), cores=0)
    made = {name: sum_ for name, sum_ in checksums(project.derivatives).items() if "/sub-" in name}
    assert made == checksums(local.derivatives)
    people = records(project)
    assert len(people) == 4
    (work,) = {record["work_path"] for record in people.values()}
    assert re.fullmatch(rf"{scratch}/{USER}/\d+", work)
    job = work.rpartition("/")[2]
    assert int(job) >= first
    assert len(ended_since(cluster, first)) == 5  # the participants together, and four steps from tables to report
    assert not has_a_step(job)  # one Snakemake, and not a second one
    assert not list(scratch.rglob("neurotier-*"))

    table = project.table("profile/jobs.tsv")
    assert {row["state"] for row in table} == {"COMPLETED"}  # that of the report, too: the end of the run renews it
    assert sorted(row["rule"] for row in table) == ON_NODES
    analysis, run = table[0], project.only_run
    assert shown(analysis, "rule attempt source job cpus") == f"analyze_participants 1 sacct {job} 4"
    assert sorted(analysis["members"].split()) == sorted(people)
    assert analysis["node"] in NODES
    assert int(analysis["max_rss_bytes"]) > 0
    assert run["nodes"] == analysis["node"]
    assert run["oversubscribed"] == "false"  # four CPUs were granted; this machine may have two
    assert shown(run, "others_cpu_share others_cpu_reason") == "n/a a batch system started the jobs"
    page = project.page("report")
    assert "Jobs of the cluster" in page
    assert f"All participants ran on one node, {analysis['node']}" in page


def test_another_run_of_tests_has_to_wait_for_this_cluster(cluster: Cluster) -> None:
    """Both would have the same link and ports; and what one stops is its own."""
    Cluster(cluster.folder / "another").stop()
    assert LINK.readlink() == cluster.folder / "slurm.conf"
    with LOCK.open() as lock, pytest.raises(BlockingIOError):
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)


@pytest.mark.nightly
def test_two_modules_have_jobs_of_their_own(cluster: Cluster, project: Project) -> None:
    """The same rules are jobs, and the same rules run on the login node, whatever the modules call them."""
    configure_two(project)
    give(project.folder)
    first = cluster.next_job()
    profile = ["--workflow-profile", "none", "--profile", "profiles/slurm", *QUICK]
    project.succeeds("--snakefile", "theirs.smk", *profile, cores=0)
    assert len(counted_masks(project)) == 2
    for name in ("one", "two"):
        jobs = replace(project, results_name=name).columns("state rule", "profile/jobs.tsv")
        assert sorted(jobs) == [f"COMPLETED {rule}" for rule in ON_NODES]
    assert ended_since(cluster, first, "State") == [["COMPLETED"]] * 11  # and that which goes on with the masks


def test_only_what_may_pass_is_tried_again(cluster: Cluster, project: Project) -> None:
    """A tool that is killed gets more memory and time; the bad image beside it was answered, the others are done.

    The executor is the plugin itself, which a site may prefer.
    """
    first = cluster.next_job()
    project.heads(*numbered(4), bad=b"")
    killed_once = "[ -e $tools/killed ] || { touch $tools/killed; kill -9 $$; }"
    tools = bet_that(project, f"case $1 in *sub-00*) {killed_once};; esac")
    done = project.fails(*on_slurm("--executor", "slurm", group=5), cores=0)
    (_,) = done.lines("failed  sub-bad: sub-bad/anat/sub-bad_T1w.nii.gz: the image file is empty")
    done.says("4 of 5 participants done, 1 failed")
    assert lines_in(tools / "calls") == 5  # sub-00 twice, the bad image never
    once, again = ended_since(cluster, first, "ReqMem", "TimelimitRaw", "State", "JobIDRaw")
    assert [once[2], again[2]] == ["FAILED", "COMPLETED"]
    assert int(again[0].rstrip("M")) == 2 * int(once[0].rstrip("M"))
    assert int(again[1]) == 2 * int(once[1]) == 2 * 15 * 2  # two rounds of four at once
    log = next((project.results / "logs/analyze_participants").glob("*.log")).read_text()
    assert f"Slurm job {again[3]} on " in log
    assert has_a_step(again[3])
    assert "1 of 5 to analyse: sub-00" in log
    assert project.failure("sub-bad")["exit_code"] == 65
    assert "the image file is empty" in project.page("report")


def test_a_node_that_dies_is_survived_and_a_killed_job_names_its_log(cluster: Cluster, project: Project) -> None:
    """In a folder whose name sbatch would take for a pattern, and on nodes without the user's home."""
    project = replace(project, results_name="50 %n")
    project.heads(**dict.fromkeys(("00", "01", "02", "slow"), small_head()))  # of one size: jobs are by name
    last = "[ -e $tools/dead ] || exec sleep 1000"
    tools = bet_that(project, f"case $1 in *slow*) exec sleep 1000;; *sub-02*) {last};; esac")
    script(tools / "sbatch", f'HOME=/nowhere exec {shutil.which("sbatch")} "$@"')
    project.configure(tool="bet", results=project.results_name)
    snakemake = started(project, *ONCE, group=2, at_once=1)

    slow = wait_for(lambda: slurm_job(project, "sub-slow"))[0]
    end_at(slow, "now")
    first, node = wait_for(lambda: next((job for job in jobs_with_records(project) if job[0] != slow), None))
    before = records(project)
    (tools / "dead").touch()
    cluster.kill_host(node)
    set_nodes("DOWN", node)  # it would notice late
    wait_for(lambda: ["NODE_FAIL"] in states(cluster, first))
    cluster.start_node(node)
    snakemake.ended().failed()
    after = records(project)
    assert sorted(after) == ["sub-00", "sub-01", "sub-02"]
    assert all(after[name] == before[name] for name in before)  # done is done
    failure = project.failure("sub-slow")
    assert f"(cluster job {slow}: TIMEOUT" in failure["reason"]
    log = Path(failure["log"])
    assert log == project.results / f"logs/slurm/{slow}.log"
    assert "DUE TO TIME LIMIT" in log.read_text()
    page = project.page("report")
    assert f'href="logs/slurm/{slow}.log"' in page

    jobs = project.columns("job attempt state", "profile/jobs.tsv")
    assert sorted(jobs) == sorted([f"{slow} 1 TIMEOUT", f"{first} 1 NODE_FAIL", f"{first} 2 COMPLETED"])
    assert project.columns("node", "profile/jobs.tsv", state="NODE_FAIL") == [node]
    assert "1 job had to be started again" in page
    assert "or their job or app restarted" in project.table("profile/runs.tsv")[0]["valid"]
    (row,) = (line for line in page.split("<tr>") if "NODE_FAIL" in line)
    assert f">{first}<" in row
    assert f">{node}<" in row


@pytest.mark.nightly
def test_a_run_that_ends_leaves_the_log_folders_of_others(cluster: Cluster, project: Project) -> None:
    """Jobs of another results folder wait for nodes meanwhile; without their log folders they would die."""
    project.heads("00", "01")
    tools = bet_that(project, "echo >> $tools/began; until [ -e $tools/go ]; do sleep 0.1; done")
    first = cluster.next_job()
    one = started(project, *ONCE, config=("results=one",))
    wait_for((tools / "began").exists)
    set_nodes("DRAIN", *NODES)
    other = started(project, "--executor", "slurm", *ONCE, group=1, config=("results=other",))
    wait_for(lambda: len(queued(project, "--states=PENDING")) == 2)
    (tools / "go").touch()
    heads_done = [one.ended()]
    set_nodes("RESUME", *NODES)
    heads_done.append(other.ended())
    for done in heads_done:
        done.succeeded()
    logs = [file.read_text() for file in (project.folder / ".snakemake/log").iterdir()]
    submitted = [line for log in logs for line in log.splitlines() if "SLURM jobid" in line]
    counts = [
        sum(f"(log: {project.folder}/{name}/logs/slurm/" in line for line in submitted) for name in ("one", "other")
    ]
    assert counts == [1, 2], submitted
    assert ended_since(cluster, first, "State") == [["COMPLETED"]] * 3


def called(project: Project) -> list[str]:
    """Participants for whom the tool was begun, once for each time."""
    calls = project.folder / "tools/calls"
    return re.findall(r"sub-\w+(?=_T1w)", calls.read_text()) if calls.exists() else []


THIRD_UNHEARD = """# The real sbatch, which after the third job does not say so.
number=$({sbatch} "$@") || exit 1
echo "$number" >> {folder}/submitted
[ "$(wc -l < {folder}/submitted)" != 3 ] || {{ touch {folder}/third; exec sleep 1000; }}
echo "$number"
"""


def test_jobs_of_a_dead_head_are_taken_over(cluster: Cluster, project: Project) -> None:
    """What they do is wanted still: nobody is analysed twice, and no job is submitted for it.

    The head dies while it submits the last of its jobs, whose number it has not heard. With other settings, they are
    ended.
    """
    project.heads(*numbered(12))
    few, stuck = '[ "$(wc -l < $tools/calls)" -le 3 ]', "while [ -e $tools/old ]; do sleep 0.2; done"
    tools = bet_that(project, f"{few} || {{ echo >> $tools/stuck; {stuck}; }}")
    (tools / "old").touch()
    script(tools / "sbatch", THIRD_UNHEARD.format(sbatch=shutil.which("sbatch"), folder=tools))
    first = cluster.next_job()
    head = started(project, at_once=1)
    wait_for(lambda: lines_in(tools / "stuck") == 3)
    wait_for(lambda: len(records(project)) >= 2 and (tools / "third").exists())
    seen = project.neurotier("watch", "results", "--once").output
    assert re.search(r" for .* s; [2-9] of 12 done, [1-9] running, 0 failed, .*; [1-4] nodes?\n", seen), seen
    kill(head)
    (tools / "sbatch").unlink()
    listed = project.neurotier("jobs", "results")
    assert sorted(line.split()[0] for line in listed.output.splitlines()) == sorted(queued(project))
    assert "RUNNING" in listed.output

    second = cluster.next_job()
    assert second - first == 3
    head = started(project, at_once=1)
    wait_for(lambda: len([*(project.results / "state/runs").glob("*.json")]) >= 2)
    (tools / "old").unlink()
    head.ended().succeeded().says("neurotier: waiting for 3 cluster jobs of an earlier run: ")
    assert cluster.next_job() == second, "no job was submitted"
    assert len(records(project)) == 12
    assert sorted(called(project)) == sorted(records(project)), "nobody was analysed twice"
    assert {state for (state,) in ended_since(cluster, first, "State")} == {"COMPLETED"}
    assert project.neurotier("jobs", "results").output == ""
    jobs = [read_json(file)["rows"] for file in sorted((project.results / "state/jobs").glob("*.json"))]
    assert [[row["state"] for row in rows] for rows in jobs] == [[], ["COMPLETED"] * 3]


@pytest.mark.parametrize(
    "how", ["selection", *(pytest.param(how, marks=pytest.mark.nightly) for how in ("index", "command"))]
)
def test_jobs_of_a_dead_head_that_do_something_else_are_ended(cluster: Cluster, project: Project, how: str) -> None:
    """By the next start, which has another selection or indexes the dataset anew, so that shares have other members; or
    by the command, which leaves those of a head that lives alone."""
    by_hand = how == "command"
    project.heads("00", "01")
    first = cluster.next_job()
    tools = bet_that(project, "[ -e $tools/go ] || { echo >> $tools/stuck; exec sleep 1000; }")
    head = started(project)
    wait_for(lambda: lines_in(tools / "stuck") == 2)
    job = str(first)
    cancel = ["jobs", "results", "--cancel"]
    said = f"neurotier: ended 1 cluster job left by an earlier run: {job} (RUNNING)"
    if by_hand:
        refused = project.neurotier(*cancel)
        assert (refused.code, queued(project)) == (75, [job]), refused.output
        assert refused.output.startswith("neurotier: "), refused.output
        assert "another run is using this results folder" in refused.output
    kill(head)
    (tools / "go").touch()
    if by_hand:
        assert project.neurotier(*cancel).output == f"{said}\n"
        assert queued(project) == []
    second = cluster.next_job()
    project.heads("00", "01", "02")
    give(project.folder)
    if how == "index":
        head = started(project, "--forcerun", "index_dataset")
    else:
        head = started(project, config=("dataset={participants: [sub-00]}",))
    assert bool(head.ended().succeeded().lines(said)) != by_hand
    assert sorted(records(project)) == (["sub-00", "sub-01", "sub-02"] if how == "index" else ["sub-00"])
    assert end_of(cluster, job).startswith("CANCELLED")
    assert ended_since(cluster, second, "State") == [["COMPLETED"]]


HELD_BACK = """# The real sbatch, which waits to be let go.
touch {folder}/asked
while [ -e {folder}/hold ]; do sleep 0.1; done
exec {sbatch} "$@"
"""


@pytest.mark.nightly
def test_what_slurm_refuses_is_submitted_later(cluster: Cluster, project: Project) -> None:
    """Its controller is away, already at the start or later, or a limit of submitted jobs is reached: neither is an
    attempt of a job."""
    project.heads(*numbered(8))
    tools = bet_that(project, "sleep 1")
    script(tools / "sbatch", HELD_BACK.format(sbatch=shutil.which("sbatch"), folder=tools))
    script(tools / "squeue", f'echo >> {tools}/looked; exec {shutil.which("squeue")} "$@"')
    (tools / "hold").touch()
    first = cluster.next_job()
    accounting("modify", "user", USER, "set", "MaxSubmitJobs=2")
    with cluster.without_controller():
        head = started(project, *ONCE, group=1)
        wait_for(lambda: lines_in(tools / "looked") >= 2)
        assert not (tools / "asked").exists(), "nothing is submitted"
    wait_for((tools / "asked").exists)
    with cluster.without_controller():
        (tools / "hold").unlink()
        time.sleep(15)
    done = head.ended()
    accounting("modify", "user", USER, "set", "MaxSubmitJobs=-1")
    assert done.code == 0, done.output
    refused = done.lines("neurotier: Slurm accepts no job now, and is asked again: ")
    assert "squeue" in refused[0], done.output
    assert [line for line in refused if "Unable to contact slurm controller" in line], done.output
    assert [line for line in refused if "job submit limit" in line], done.output
    assert len(records(project)) == 8
    assert ended_since(cluster, first, "State") == [["COMPLETED"]] * 8


@pytest.mark.nightly
def test_an_account_that_is_not_valid_is_said_in_a_line(cluster: Cluster, project: Project) -> None:
    project.heads("00")
    account = ["--set-resources", "analyze_participants:slurm_account=nobodys"]
    ended = started(project, *account, tool="noop").ended().failed()
    (line,) = ended.lines("neurotier: Slurm refuses a job of rule analyze_participants: ")
    assert "Invalid account or account/partition combination" in line, ended.output


@pytest.mark.nightly
def test_a_job_that_slurm_has_forgotten_is_done_again(cluster: Cluster, project: Project) -> None:
    """The head is stopped for longer than Slurm remembers; records say who is left, and sacct is not asked."""
    project.heads("00", "01")
    tools = bet_that(project, "[ -e $tools/go ] || case $1 in *sub-01*) exec sleep 1000;; esac")
    head = started(project, at_once=1)
    wait_for(lambda: called(project) == ["sub-00", "sub-01"])
    (job,) = queued(project)
    head_of(head).suspend()
    with cluster.configured(MinJobAge=2):
        system("scancel", job)
        wait_for(lambda: job not in queued(project, "--states=all"))
    (tools / "go").touch()
    head_of(head).resume()
    head.send_signal(signal.SIGCONT)  # nsenter stops with what it has started
    head.ended().succeeded()
    assert called(project) == ["sub-00", "sub-01", "sub-01"]


@pytest.mark.nightly
def test_a_job_that_is_preempted_is_submitted_again_and_that_is_no_attempt(cluster: Cluster, project: Project) -> None:
    """Slurm only cancels it; with further attempts it would ask for more memory and time each, and be given up."""
    project.heads("00", "01")
    tools = bet_that(project, STUCK)
    partition = ["PartitionName=urgent", "Nodes=ALL", "PriorityTier=2"]
    system("scontrol", "create", *partition)
    whole = ["--partition=urgent", "--nodes=4", "--exclusive"]
    urgent = [*project.before(), "sbatch", "--wait", *whole, "--output=/dev/null", "--wrap", "true"]
    first = cluster.next_job()
    head = started(project, *ONCE, at_once=1)
    for _ in range(2):
        wait_for((tools / "began").exists)
        (tools / "began").unlink()
        project.ended(urgent).succeeded()
    (tools / "go").touch()
    done = head.ended().succeeded()
    assert len(done.lines(" of rule analyze_participants was preempted, and is submitted again")) == 2, done.output
    jobs = ended_since(cluster, first, "JobName", "State", "ReqMem")
    assert len({memory for name, _, memory in jobs if name != "wrap"}) == 1, "no more is asked for"
    assert [state for name, state, _ in jobs if name != "wrap"] == ["PREEMPTED", "PREEMPTED", "COMPLETED"]
    system("scontrol", "delete", "PartitionName=urgent")


@pytest.mark.nightly
def test_jobs_of_a_hidden_partition_are_seen(cluster: Cluster, project: Project) -> None:
    """By default squeue leaves them out; to the head they would be over."""
    project.heads("00", "01")
    bet_that(project, "sleep 5")
    partition = ["--default-resources", "mem_mb=500", "runtime=5", "slurm_partition=hidden"]
    system("scontrol", "create", "PartitionName=hidden", "Nodes=n1", "Hidden=YES")
    done = started(project, *partition, group=1).ended()
    assert sorted(called(project)) == ["sub-00", "sub-01"], "nobody was analysed twice"
    done.succeeded()
    system("scontrol", "delete", "PartitionName=hidden")


@pytest.mark.nightly
def test_who_runs_out_of_memory_always_is_named_and_the_others_are_done(cluster: Cluster, project: Project) -> None:
    if not has_memory_limits():
        missing("a memory controller of control groups, version 1")
    project.heads("00", "01", "02", "03")
    bet_that(project, "case $1 in *sub-02*) exec tail /dev/zero;; esac")
    first = cluster.next_job()
    done = started(project, group=2).ended().failed()
    done.says("3 of 4 participants done, 1 failed")
    (named,) = done.lines("failed  sub-02: ")
    assert re.search(r"killed by SIGKILL.*cluster job \d+: OUT_OF_MEMORY", named)
    assert sorted(records(project)) == ["sub-00", "sub-01", "sub-03"]
    assert len(project.table("profile/profile.tsv")) >= 3
    assert "sub-02" in project.page("report")
    asked = [memory for state, memory in ended_since(cluster, first, "State", "ReqMem") if state == "OUT_OF_MEMORY"]
    assert len(set(asked)) == 2, "the second attempt has more memory"


@pytest.mark.nightly
def test_a_second_attempt_that_asks_for_too_much_does_not_keep_the_run(cluster: Cluster, project: Project) -> None:
    project.heads("00", "01")
    bet_that(project, "case $1 in *sub-01*) kill -9 $$;; esac")
    first = cluster.next_job()
    with qos("short", "MaxWall=20"):
        done = started(project).ended().failed()
    done.says("waits: QOSMaxWallDurationPerJobLimit, and is given up", "1 of 2 participants done, 1 failed")
    states = ended_since(cluster, first, "State", "TimelimitRaw")
    assert [(state[:9], minutes) for state, minutes in states] == [("FAILED", "15"), ("CANCELLED", "30")]


@pytest.mark.nightly
def test_the_profile_of_other_schedulers_hears_of_a_killed_job(cluster: Cluster, project: Project) -> None:
    """By the plugin cluster-generic; the second attempt succeeds."""
    project.heads("00")
    tools = bet_that(project, "mkdir $tools/begun && exec sleep 1000")
    arguments = ["--profile", "profiles/cluster-generic", "--latency-wait", "2", "--resources", "mem_mb=5000"]
    head = project.start("participants", *arguments, cores=0)
    job, _ = wait_for(lambda: slurm_job(project, "sub-00"))
    wait_for((tools / "begun").exists)
    system("scancel", "--signal=KILL", "--full", job)
    head.ended().succeeded()
    assert len(records(project)) == 1


@pytest.mark.nightly
@pytest.mark.parametrize(
    ("lacks", "said", "off"),
    [
        ("disk", "tier &#39;disk&#39; on n1: .* is not an existing folder;", ""),
        ("disk", "tier &#39;disk&#39; on n1: .* is not an existing folder;", "n2"),
        ("strip", "tool &#39;own&#39;: no .*, on n1;", ""),
        ("bids", "dataset .*/bids: nothing is there on n1;", ""),
    ],
    ids=["tier", "tier, and a node that the user excludes", "tool", "dataset"],
)
def test_a_node_at_fault_gets_no_other_job(cluster: Cluster, project: Project, lacks: str, said: str, off: str) -> None:
    """It lacks a tier, the tool or the dataset; the jobs that have failed there are done on others."""
    source = project.heads("00", "01", "02", "03", "04")
    nodes = [cluster.folder / f"local-{node}" for node in NODES]
    for folder in (cluster.local, *nodes):
        shutil.copytree(source, folder / "bids", dirs_exist_ok=True)
        (folder / "strip").write_text('#!/bin/sh\ncp "$1" "$2/brain.nii.gz"\n')
        (folder / "strip").chmod(0o755)
        (folder / "disk").mkdir(exist_ok=True)
        give(folder / "disk")
    (nodes[0] / lacks).rename(nodes[0] / f"no-{lacks}")
    tier = {"path": f"{cluster.local}/disk", "kind": kind_of(cluster.folder), "node": True}
    own = {"command": f"{cluster.local}/strip {{input}} {{output}}", "brain": "brain.nii.gz"}
    places = {"tiers": {"local": {"path": "."}, "disk": tier}, "placement": {"work": "disk"}}
    project.configure(**places, dataset=cluster.local / "bids", tool={"name": "own", "own": own})
    extra = ["--default-resources", f"slurm_extra='--exclude={off}'", "mem_mb=300", "runtime=10"] if off else []
    first = cluster.next_job()
    done = started(project, *extra, group=1, target="all").ended().succeeded()
    assert len(done.lines(" failed for its node, n1, which this run will not use any more")) == 1, done.output
    jobs = ended_since(cluster, first, "JobIDRaw", "NodeList", "State")
    assert [int(number) for number, node, state in jobs if (node, state) == ("n1", "FAILED")]
    assert {node for number, node, _ in jobs if int(number) > first + 4} <= set(NODES[1:])
    assert off not in {node for _, node, _ in jobs}
    assert len(records(project)) == 5
    assert re.search(rf"\d jobs? failed because of the node: n1: {said}", project.page("report"))


@pytest.mark.nightly
@pytest.mark.parametrize("lacks", ["the file system", "Python", "a package"])
def test_a_node_that_can_begin_no_job_gets_no_other(cluster: Cluster, project: Project, lacks: str) -> None:
    project.heads(*numbered(6))
    folders = {"the file system": str(project.folder), "Python": sys.prefix, "a package": SNAKEMAKE_PACKAGE}
    with cluster.mounted("n1", folders[lacks], "-t", "tmpfs", "none"):
        done = started(project, group=1, tool="noop").ended().succeeded()
    assert len(done.lines(" failed for its node, n1, which this run will not use any more")) == 1, done.output
    assert len(records(project)) == 6
    said = {"Python": f"{cluster.folder}/spool/n1/job", "a package": f"{sys.executable}: No module named snakemake"}
    if lacks in said:
        done.says(f": FAILED on n1: {said[lacks]}")


@pytest.mark.nightly
def test_what_a_job_said_last_is_told_if_it_could_not_note_its_end(cluster: Cluster, project: Project) -> None:
    """The shared file system becomes read-only on its node."""
    project.heads("00", "01")
    tools = bet_that(project, f"case $1 in *sub-01*) {STUCK};; esac")
    head = started(project, *ONCE, at_once=2)
    wait_for((tools / "began").exists)
    job, node = wait_for(lambda: slurm_job(project, "sub-01"))
    with cluster.mounted(node, project.folder, "--bind", project.folder):
        cluster.on_host(node, "mount", "-o", "remount,bind,ro", project.folder)
        (tools / "go").touch()
        done = head.ended().failed()
    (line,) = done.lines(f"neurotier: Slurm ended job {job} of rule analyze_participants: FAILED on {node}: ")
    assert "Read-only file system" in line


@pytest.mark.nightly
def test_what_cannot_begin_on_any_node_does_not_keep_the_run(cluster: Cluster, project: Project) -> None:
    """An environment broken for all fails so slowly that jobs wait when the last node is at fault."""
    project.heads(*numbered(48))
    (project.folder / "__main__.py").write_text("import time\ntime.sleep(9)\nraise SystemExit('broken')\n")
    with ExitStack() as stack:
        for node in NODES:
            stack.enter_context(cluster.mounted(node, SNAKEMAKE_PACKAGE, "--bind", project.folder))
        done = started(project, group=1, tool="noop").ended(200).failed()
    done.says("BadConstraints, and is given up: no node is left but those that failed", "0 of 48 participants done")


@pytest.mark.nightly
def test_a_job_whose_node_cannot_begin_it_is_done_on_another(cluster: Cluster, project: Project) -> None:
    """Its prolog fails, and Slurm would hold the job until somebody releases it."""
    project.heads("00", "01", "02", "03")
    prolog = script(cluster.folder / "prolog", '[ "$SLURMD_NODENAME" != n1 ]')
    with cluster.configured(Prolog=prolog):
        done = started(project, group=1, tool="noop").ended().succeeded()
    succeeds("scontrol", "update", "NodeName=n1", "State=RESUME")  # Slurm 24.11 has done so, and refuses
    wait_for(lambda: nodes_in("idle") == len(NODES))
    (line,) = done.lines("waits: launch failed requeued held, and is given up: its node could not begin it")
    number = line.split()[2]
    done.says(f"neurotier: Slurm ended job {number} of rule analyze_participants: CANCELLED")
    assert len(records(project)) == 4


def test_jobs_have_time_to_clear_up(cluster: Cluster, project: Project) -> None:
    """Neither one that is cancelled nor one whose time is nearly over leaves anything in the memory of its node.

    What a job that is killed leaves there goes with the next job on that node, for whatever results that is.
    """
    labels = ["00", "01", "02"]
    project.heads(*labels)
    tools = bet_that(project, "[ -e $tools/go ] || { touch $tools/began-$$; exec sleep 1000; }")
    on_one_node = ["--default-resources", "mem_mb=500", "runtime=30", "slurm_extra='--nodelist=n1'"]
    options = ["--workflow-profile", "profiles/tmpfs", *ONCE, *on_one_node]
    head = started(project, *options, group=1)
    cancelled, late, killed = (wait_for(partial(slurm_job, project, f"sub-{label}"))[0] for label in labels)
    memory = cluster.shared_memory()["n1"]

    def kept() -> set[str]:
        walked = os.walk(memory)  # which passes over what goes meanwhile
        return {name[:6] for _, _, files in walked for name in files if name.endswith(".nii.gz")}

    wait_for(lambda: len([*tools.glob("began-*")]) == len(labels))  # who is beginning yet cannot be killed as a whole
    assert kept() == {f"sub-{label}" for label in labels}
    system("scancel", cancelled)
    cluster.kill_job("n1", killed)
    end_at(late, "now+85")
    wait_for(lambda: kept() == {"sub-02"})
    assert f"{late}|RUNNING" in queued(project, "--format=%i|%T"), "it is told ahead of its limit"
    end_at(late, "now")
    assert f"cluster job {late}: TIMEOUT" in head.ended().failed().output
    assert kept() == {"sub-02"}
    (tools / "go").touch()
    started(project, *options, group=1, config=("results=other",)).ended().succeeded()
    assert not [path for path in memory.rglob("*") if not path.is_dir()]


@pytest.mark.nightly("long")
def test_tiers_in_memory_are_memory_of_the_job(cluster: Cluster, project: Project) -> None:
    """Under the limits of control groups nothing is killed for want of memory, and no memory keeps anything."""
    if not has_memory_limits():
        missing("a memory controller of control groups, version 1")
    greedy = ["sbatch", "--wait", "--mem=64", "--output=/dev/null", "--wrap", "head -c 300M /dev/zero | tail"]
    first = cluster.next_job()
    assert project.ended([*project.before(), *greedy]).code != 0
    ((state,),) = ended_since(cluster, first, "State")
    assert state == "OUT_OF_MEMORY", "jobs are held to the memory that they asked for"

    voxels = np.random.default_rng(0).integers(0, 1000, (420, 420, 410), dtype=np.int16)
    image = gzip.compress(nib.Nifti1Image(voxels, np.eye(4)).to_bytes(), compresslevel=0)
    assert len(image) > 144_000_000
    labels = ["00", "01"]
    sessions = [f"sub-{label}/ses-{one}/anat/sub-{label}_ses-{one}_T1w.nii.gz" for label in labels for one in "12"]
    plain_dataset(project.folder / "bids", dict.fromkeys(sessions, image))
    first = cluster.next_job()
    tool = sleeping(4)  # so that all images are there at once
    started(project, "--workflow-profile", "profiles/tmpfs", at_once=2, tool=tool).ended().succeeded()
    assert ended_since(cluster, first, "State") == [["COMPLETED"]]
    people = records(project)
    assert sorted(people) == [f"sub-{label}" for label in labels]
    assert {record["work_path"] for record in people.values()} == {"/dev/shm"}
    memory = cluster.shared_memory()
    assert memory.keys() == {*NODES, LOGIN}
    assert not [path for folder in memory.values() for path in folder.rglob("*") if not path.is_dir()]


@pytest.mark.nightly("long")
def test_a_head_may_be_rebooted_at_any_moment(cluster: Cluster) -> None:
    """One trial of the campaign that ``python -m faults.heads`` holds."""
    seed = random.SystemRandom().randrange(10**6)
    run = heads.prepare(cluster, participants=20, sleep_s=0.5, took_s=12)
    trial = heads.hold(run, "reboot", random.Random(seed))
    assert not trial.violations, f"seed {seed}, after {trial.moment_s} s: {trial.violations}"


def drafted_profile(project: Project, limit: str = "infinite", memory_mb: int = 5000) -> Path:
    """The profile that is drafted for this cluster."""
    drafted = project.neurotier("site").succeeded()
    assert re.search(rf"^# main\*\s+up\s+{limit}\s+24\s+5000 .* 4$", drafted.output, re.MULTILINE)
    profile = yaml.safe_load(drafted.output)
    assert profile["default-resources"]["slurm_partition"] == "'main'"
    assert (profile["cores"], profile["resources"]) == (4, {"mem_mb": memory_mb})
    file = project.folder / "site/profile.yaml"
    file.parent.mkdir()
    file.write_text(drafted.output)
    return file.parent


def accounting(*words: str) -> None:
    """Change what Slurm's accounting knows."""
    system("sacctmgr", "-i", *words)


@contextmanager
def qos(name: str, *limits: str) -> Iterator[None]:
    """A QOS that is the user's default meanwhile."""
    accounting("add", "qos", name, *limits)
    accounting("modify", "user", USER, "set", f"QOS+={name}", f"DefaultQOS={name}")
    try:
        yield
    finally:
        accounting("modify", "user", USER, "set", "DefaultQOS=-1", f"QOS-={name}")
        accounting("delete", "qos", name)


@pytest.mark.nightly
def test_who_watches_is_told_why_jobs_wait(cluster: Cluster, project: Project) -> None:
    """A job longer than its QOS allows waits for ever, unless somebody raises the limit."""
    project.heads("00", "01")
    tools = bet_that(project, STUCK)
    reason = "QOSMaxWallDurationPerJobLimit"

    def seen() -> str:
        return project.neurotier("watch", "results", "--once").output

    with qos("short", "MaxWall=5"):
        head = started(project, group=1)
        wait_for(lambda: (project.results / "state").exists() and f"; pending jobs: 2 for {reason};" in seen())
        assert reason in project.neurotier("jobs", "results").output
        accounting("modify", "qos", "short", "set", "MaxWall=-1")
        wait_for((tools / "began").exists)
        wait_for(lambda: "pending jobs" not in seen())
        (tools / "go").touch()
        done = head.ended().succeeded()
    done.says(f"waits: {reason}")


@pytest.mark.nightly
def test_each_kind_of_job_of_the_drafted_profile_is_taken(cluster: Cluster, project: Project) -> None:
    """Limits of the partition, and of its QOS and the user's, are kept; the scheduler itself says so."""
    limits = ["MaxTime=90", "MaxMemPerNode=4000", "QOS=crowded"]
    with (
        qos("crowded", "MaxSubmitJobsPerUser=3"),
        qos("short", "MaxWall=60", "MaxSubmitJobsPerUser=9", "Flags=DenyOnLimit"),
    ):
        system("scontrol", "update", "PartitionName=main", *limits)
        try:
            too_long = [*project.before(), "sbatch", "--time=61", "--output=/dev/null", "--wrap", "true"]
            project.ended(too_long).says("Job violates accounting/QOS policy")
            profile = drafted_profile(project, limit="1:30:00", memory_mb=4000)
            asked = yaml.safe_load((profile / "profile.yaml").read_text())
            assert (asked["jobs"], asked["set-resources"]["run_campaign"]["runtime"]) == (3, 60)
            given = ["--snakefile", "profiles/try.smk", "--profile", str(profile), *QUICK[:4], "--directory", "tried"]
            done = project.succeeds(*given, cores=0)
            assert len(list((project.folder / "tried/tried").iterdir())) == 17, done.output
            assert not done.lines("Slurm accepts no job now"), "no more jobs at once than the limit"
        finally:
            usual = ["MaxTime=INFINITE", "MaxMemPerNode=0", "QOS="]
            system("scontrol", "update", "PartitionName=main", *usual)


def head_in_a_job(project: Project, *arguments: str) -> str:
    """Number of a job that is Snakemake; what Slurm grants it is odd."""
    command = [*SNAKEMAKE, "participants", *arguments, "--configfile", str(project.own)]
    program = script(project.folder / "head.sh", f"exec {shlex.join(command)}")
    granted = ["--cpus-per-task=3", "--mem=1111", "--time=9", "--ntasks=1", "--job-name=head"]
    output = f"--output={project.folder}/head.log"
    return (
        project.ended([*project.before(), "sbatch", "--parsable", *granted, output, str(program)])
        .succeeded()
        .output.strip()
    )


def end_of(cluster: Cluster, job: str) -> str:
    """The state in which a job has ended."""

    def ended_in() -> str | None:
        found = states(cluster, job)
        return found[-1][0] if found and found[-1][0] not in ("PENDING", "RUNNING", "COMPLETING") else None

    return str(wait_for(ended_in))


def test_a_job_ended_by_scancel_is_heard_of(cluster: Cluster, project: Project) -> None:
    """The next head is a job itself, with the drafted profile: what Slurm grants it is not what its jobs get."""
    project.heads("00", "01")
    tools = bet_that(project, "[ -e $tools/go ] || exec sleep 1000")
    head = started(project, *ONCE)
    job, _ = wait_for(lambda: slurm_job(project, "sub-00"))
    system("scancel", job)
    done = head.ended().failed()
    assert done.lines("failed  sub-00: ") or done.lines("failed  sub-01: "), done.output
    assert f"cluster job {job}: CANCELLED" in done.output

    (tools / "go").touch()
    second = cluster.next_job()
    head_job = head_in_a_job(project, "--profile", str(drafted_profile(project)), *QUICK)
    assert end_of(cluster, head_job) == "COMPLETED", (project.folder / "head.log").read_text()
    assert sorted(records(project)) == ["sub-00", "sub-01"]
    jobs = ended_since(cluster, second, "JobName", "State", "ReqCPUS", "ReqMem", "TimelimitRaw", "JobIDRaw")
    assert [name == "head" for name, *_ in jobs] == [True, False]
    _, state, cpus, memory, minutes, number = jobs[1]
    assert (state, cpus, minutes) == ("COMPLETED", "2", "15")  # both at once; nothing of what the head was granted
    assert memory != "1111M"
    (row,) = read_json(max((project.results / "state/jobs").glob("*.json")))["rows"]
    assert shown(row, "job cpus state") == f"{number} 2 COMPLETED"


@pytest.mark.nightly("long")
def test_a_campaign_has_a_node_to_itself(cluster: Cluster, demo_there: Path, project: Project, scratch: Path) -> None:
    """All its runs are on that node, whose own tier is one of the placements; what differs is not the node."""
    own = {"path": f"{scratch}/$SLURM_JOB_USER/$SLURM_JOB_ID", "kind": "block", "node": True}
    placements = {"shared": {"work": "local"}, "own": {"work": "scratch"}}
    project.configure(
        dataset={"source": demo_there, "sites": ["SiteB"]},
        tool="bet",
        tiers={"local": {"path": "."}, "scratch": own},
        campaign={"placements": placements, "parallelism": [2], "repetitions": 1},
    )
    first = cluster.next_job()
    head = started(project, target="comparison")
    runs = project.results / "campaign/runs"
    wait_for(lambda: [*runs.glob("*/[0-9]*/condition.json")])  # not the hidden one, which is not there yet
    planning, running = jobs_since(cluster, first, "JobIDRaw", "NodeList", "AllocCPUS")
    assert int(planning[2]) < int(running[2]) == 24, "a campaign has all cores of its node"
    system("scancel", running[0])
    done = head.ended().failed()
    assert f"neurotier: Slurm ended job {running[0]} of rule run_campaign: CANCELLED" in done.output
    (there,) = runs.glob("*/*/condition.json")

    set_nodes("DRAIN", running[1])  # the campaign goes on on another node
    done = project.snakemake(*on_slurm(), cores=0)
    set_nodes("RESUME", running[1])
    assert done.code == 0, done.output
    again = ended_since(cluster, first, "JobIDRaw", "NodeList", "AllocCPUS")[-1]
    conditions = sorted(runs.glob("*/*/condition.json"))
    assert [read_json(file)["valid"] for file in conditions] == ["valid"] * 2
    on = {
        file: f"Slurm job {job[0]} on {job[1]}" for file in conditions for job in [running if file == there else again]
    }
    for file, job in on.items():
        logs = [*(file.parent / "logs/analyze_participant").rglob("*.log")]
        assert {log.read_text().splitlines()[0] for log in logs} == {job}
    compared = project.table("comparison/compared_runs.tsv")
    assert sorted(row["nodes"] for row in compared) == sorted([running[1], again[1]])
    assert running[1] != again[1]
    page = project.page("comparison")
    assert "no node had runs of both" in page
    assert f" on {again[1]}" in page
    assert not [path for path in scratch.rglob("*") if path.name.startswith("neurotier-")]


@pytest.mark.nightly("long")
def test_tiers_are_those_of_the_nodes(cluster: Cluster, project: Project) -> None:
    """What only nodes have is measured and judged there, and what is missing there is said here, in a line."""
    tiers = {
        "local": {"path": "."},
        "tmpfs": {"path": "/dev/shm"},  # another one on each node, and here
        "memory": {"path": f"{cluster.local}/memory", "kind": "tmpfs"},
        "gone": {"path": f"{cluster.local}/gone", "kind": "block"},
    }
    probe = {"tiers": ["memory", "gone"], "streams": 1, "file_mib": 16, "time_s": 2, "repetitions": 1, "share": 0.5}
    grid = {"block_sizes": ["1 MiB"], "processes": [1], "patterns": ["write"], "file_size": "4 MiB", "seconds": 0.1}
    project.heads("00", "01", "02")
    project.configure(
        tiers=tiers,
        probe=probe,
        sweep={"tiers": ["memory"], "sets": {"small": grid}},
        tool="noop",
        node_class="thin",
    )
    at_once = ["--resources", "mem_mb=40000", "probes=5"]  # which saves a minute, and measures nothing that counts
    targets = ["check", "probe", "sweep", "advise"]
    done = project.fails(*targets, *on_slurm(*at_once), cores=0)
    gone = f"neurotier: tier 'gone': its path {cluster.local}/gone is not an existing folder, or may not be entered"
    missing = rf"{gone}; .* \(on n\d\)"
    assert len([line for line in done.lines("'gone'") if re.fullmatch(missing, line)]) == 2, done.output
    found = {row["tier"]: row for row in project.table("check/thin.tsv")}
    assert {row["host"] for row in found.values()} <= set(NODES)
    shared = {name: row["shared"] for name, row in found.items()}
    nowhere = dict.fromkeys(("memory", "gone", "pmem", "nfs"), "n/a")  # not here, where the workflow was started
    assert shared == {"local": "true", "tmpfs": "false"} | nowhere
    assert found["memory"]["total_bytes"] == str(SCRATCH_MIB << 20)
    assert [found[name]["writable"] for name in ("local", "tmpfs", "memory", "gone")] == ["true"] * 3 + ["false"]

    measured = [*project.table("probe/thin/memory.tsv"), *project.table("sweep/sweep.tsv")]
    assert {row["tier"] for row in measured} == {"memory"}
    assert {row["host"] for row in measured} <= set(NODES)

    advised = {row["placement"]: row for row in project.table("advice/advice.tsv")}
    assert advised.keys() == {"local", "tmpfs", "memory"}
    assert int(advised["memory"]["work_free_bytes"]) <= SCRATCH_MIB << 20
    (about,) = done.lines("Predicted for one node of class thin ")
    assert re.search(r"and the room that n\d has; ", about)
    assert {record["host"] for record in records(project).values()} <= set(NODES)
    assert len(records(project)) >= 1

    again = project.snakemake(*targets[1:], "--dry-run", *on_slurm(), cores=0)
    assert [line.split()[-1] for line in again.lines("Probing tier ")] == ["gone"], again.output
    assert not again.lines("Sweeping") + again.lines("Predicting") + again.lines("Analysing")
    assert not list(cluster.folder.glob("local*/**/neurotier-*"))
    assert not list(project.folder.glob("neurotier-*/check"))


APP = """case $3 in
participant) mkdir -p /out/sub-$5; ls -d /data/sub-* >/out/sub-$5/seen; sleep 1 ;;
esac"""
"""A BIDS App that writes down what it sees."""

OWN_NODES = {"prepare_tool": "--nodelist=n2", "run_bigbrain": "--exclusive --nodelist=n3"}
"""Rules that are not to be on n1, to their options of sbatch."""


@pytest.mark.usefixtures("gnu_parallel", "spark")
@pytest.mark.nightly("long")
def test_what_nodes_have_of_their_own_is_used_by_their_jobs(
    cluster: Cluster, engine: Engine, project: Project, tmp_path: Path
) -> None:
    """BigBrain's blocks are in the memory of one node; each node has one copy of a container image, whoever needs it.

    Three jobs begin on one node at once: one of them places the image, and the others find it. The machine on which
    all this is started has neither tier.
    """
    project.heads(*numbered(6))
    image = shutil.copy(make_tiny(engine, tmp_path, APP), project.folder)  # built in a folder of root's, who builds it
    tiers = {
        "local": {"path": "."},
        "memory": {"path": f"{cluster.local}/memory", "kind": "tmpfs"},
        "images": {"path": f"{cluster.local}/$SLURM_JOB_USER", "kind": kind_of(cluster.folder), "node": True},
    }
    blocks = {"count": 2, "scale": 0.03, "parallelism": [1], "cache": "as found", "predict": False}
    project.configure(
        tiers=tiers,
        placement={"images": "images"},
        app={"image": image, "name": "tiny", "group": False, "memory_mb": 100},
        bigbrain=blocks | {"engines": ["gnu-parallel", "spark"], "tiers": ["memory"]},
    )
    give(project.folder)
    first = cluster.next_job()
    on = ["--sdm", "apptainer", "--default-resources", "mem_mb=500", "runtime=5", "slurm_extra='--nodelist=n1'"]
    others = [f"{rule}:slurm_extra='{options}'" for rule, options in OWN_NODES.items()]
    others = ["--set-resources", *others, *(f"{rule}:mem_mb=2500" for rule in OWN_NODES)]
    targets = ["bigbrain", "participants"]
    project.succeeds(*targets, *on_slurm(*on, *others, group=2, at_once=2), cores=0)
    jobs = ended_since(cluster, first, "NodeList", "AllocCPUS", "State", "Start", "End")
    assert {job[2] for job in jobs} == {"COMPLETED"}
    assert sorted(job[0] for job in jobs) == ["n1"] * 3 + ["n2", "n3"]
    assert [job[1] for job in jobs if job[0] == "n3"] == ["24"], "BigBrain has all cores of its node"

    runs = project.table("bigbrain/bigbrain_runs.tsv")
    measured = {shown(run, "engine tier host valid") for run in runs}
    assert measured == {"gnu-parallel memory n3 valid", "spark memory n3 valid"}
    assert len({run["sha256"] for run in runs}) == 1
    assert set(project.columns("origin", "bigbrain/figures/bigbrain_phases.tsv")) == {"n3"}
    assert (project.results / "bigbrain.html").exists()
    assert system("srun", "--nodelist=n3", "ls", f"{cluster.local}/memory") == ""

    analysing = [job for job in jobs if job[0] == "n1"]
    assert max(job[3] for job in analysing) <= min(job[4] for job in analysing), "they ran at the same time"
    people = records(project)
    assert len(people) == 6
    assert {record["host"] for record in people.values()} == {"n1"}
    assert "container_start" in {phase["phase"] for record in people.values() for phase in record["phases"]}
    logs = [file.read_text() for file in (project.results / "logs/analyze_participants").glob("*.log")]
    assert len([log for log in logs if "unpacking tiny on the images tier" in log]) == 1
    placed = cluster.folder.glob("local*/**/tiny-*.sandbox")
    assert sorted(path.relative_to(cluster.folder).parts[0] for path in placed) == ["local-n1", "local-n2"]


@pytest.mark.nightly
def test_a_file_per_process_over_nodes(cluster: Cluster, project: Project) -> None:
    """A node that is set down fails its point alone, which is measured by the next start."""
    tools = project.folder / "tools"
    script(tools / "fio", FIO_STUCK.format(fio=shutil.which("fio"), folder=tools))
    tools.chmod(0o777)
    grid = {"tiers": ["local"], "nodes": [1, 2, 4], "processes": [2, 1], "file_size": "2 MiB", "block_size": "256 KiB"}
    first, points = cluster.next_job(), project.results / "ior/points"
    head = started(project, target="results/ior/ior.tsv", tiers={"local": {"path": "."}}, ior=grid)
    wait_for((tools / "went").exists)
    set_nodes("DOWN", "n3")
    head.ended().succeeded()
    rows = project.table("ior/ior.tsv")
    (failed,) = [row for row in rows if row["status"] != "measured"]
    assert failed["status"].startswith("failed: step write: node n3 failed or was set down"), failed["status"]
    assert (failed["nodes"], len(rows)) == ("4", 6)
    assert not [*project.folder.glob("neurotier-*")]
    assert not [one for one in psutil.process_iter(["cwd"]) if f"{project.folder}/neurotier-" in str(one.info["cwd"])]
    before = {file: file.read_bytes() for file in points.rglob("*.json")}
    assert len(before) == 5

    started(project, target="ior").ended().succeeded().says("5 of 6 points are there, 1 to do")
    assert {file: file.read_bytes() for file in before} == before
    for row in project.table("ior/ior.tsv"):
        nodes, processes = int(row["nodes"]), int(row["processes"])
        by = "another process" if nodes == 1 else "another node"
        assert (row["status"], row["read_by"], len(row["host"].split())) == ("measured", by, nodes)
        for way in ("write", "read"):
            assert int(row[f"{way}_bytes"]) == nodes * processes * 2 << 20
            rate = int(row[f"{way}_bytes"]) / float(row[f"{way}_span_s"])
            assert float(row[f"{way}_bytes_per_s"]) == pytest.approx(rate, rel=1e-3)
    jobs = ended_since(cluster, first, "State", "AllocNodes")
    several = sorted(nodes for state, nodes in jobs if state == "COMPLETED" and nodes != "1")
    assert several == ["2", "2", "4", "4"]  # of one node there may be jobs of other tests, which sacct hears of late
    assert [state for state, _ in jobs if state != "COMPLETED"] == ["NODE_FAIL"]
    assert "All nodes together" in project.page("ior")


FIO_STUCK = """# The real fio; when four nodes write for the first time, n3 comes to no end.
case $*:$(hostname):$SLURM_NNODES in *rw=write*:n3:4)
    [ -e {folder}/went ] || {{ touch {folder}/went; exec sleep 1000; }};;
esac
exec {fio} "$@"
"""
