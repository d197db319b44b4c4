"""The executor ``neurotier-slurm``: the plugin ``slurm`` with its options, without the second Snakemake of each job."""

from __future__ import annotations

import asyncio
import logging
import os
import re
import shlex
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
import snakemake_executor_plugin_neurotier_slurm as own
import snakemake_executor_plugin_slurm as slurm
from configured import settings_at
from neurotier.core.files import write_text
from neurotier.core.places import Places
from neurotier.run.adoption import prefix_of
from neurotier.run.jobs import save_settings
from neurotier.run.slurm import run_command
from snakemake.iocontainers import Params
from snakemake_interface_executor_plugins.executors.base import SubmittedJobInfo
from support import PATIENCE_S, ROOT, script


def executor_of(module: object = own, **settings: Any) -> slurm.Executor:
    """An executor that watches no jobs."""
    executor = object.__new__(module.Executor)  # type: ignore[attr-defined]
    given = slurm.ExecutorSettings(pass_command_as_script=False, **settings)
    executor.workflow, executor.logger = SimpleNamespace(executor_settings=given), logging.getLogger()
    executor.run_uuid, executor.names, executor.said, executor.waiting = "e3a1", {}, set(), ""
    executor._main_event_loop, executor.has_news = None, threading.Event()
    executor._submitted_job_clusters, executor._failed_nodes = set(), set()
    executor.report_job_error = executor.report_job_success = lambda *_, **__: None
    return executor


@pytest.fixture(autouse=True)
def commands(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Commands of Slurm are those that a test writes."""
    monkeypatch.setenv("PATH", str(tmp_path), prepend=os.pathsep)


def test_what_is_left_out_is_the_second_snakemake_alone() -> None:
    """If another version of the plugin gives its jobs more options, this test fails, and no option is lost unseen."""
    assert executor_of(slurm).additional_general_args() == "--executor slurm-jobstep --jobs 1"
    assert executor_of().additional_general_args() == ""


def test_a_cluster_may_have_no_job_arrays(tmp_path: Path) -> None:
    """The plugin would run nothing there, and where there are, give sbatch commands that it does not take."""
    script(tmp_path / "scontrol", "echo MaxArraySize = 0")
    executor = executor_of(array_jobs="all")
    executor.workflow.workdir_init = tmp_path
    executor.__post_init__()
    assert executor.array_jobs == set()


@pytest.mark.parametrize(
    ("given", "options"), [(None, [""]), ("", [""]), (12, [" -A 12"]), ("lab, other", [" -A lab", " -A other"])]
)
def test_a_job_without_an_account_has_slurms_default(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, given: object, options: list[str]
) -> None:
    """Where Slurm has no accounting, there may be no sacct, either."""
    executor = executor_of()
    monkeypatch.setenv("PATH", str(tmp_path))
    executor._fallback_account_arg = None
    assert [*executor.get_account_arg(SimpleNamespace(resources={"slurm_account": given}))] == options


@pytest.mark.parametrize(("had_s", "pause_s"), [(5, 20), (400, 40), (90_000, 180)])
def test_the_end_of_a_job_is_noticed_soon(had_s: float, pause_s: float) -> None:
    assert executor_of(init_seconds_before_status_checks=20).pause_s(had_s) == pause_s


def test_a_run_that_is_over_waits_for_no_look() -> None:
    executor = executor_of(init_seconds_before_status_checks=86_400)
    executor.submitted_s, executor.wait = time.monotonic(), True
    watch = threading.Thread(target=lambda: asyncio.run(executor.sleep()), daemon=True)
    watch.start()
    watch.join(2 * own.BLINK_S)
    assert watch.is_alive()
    executor.wait = False
    watch.join(PATIENCE_S)
    assert not watch.is_alive()


FINAL_REFUSAL = """\
No partition specified or system default partition
More processors requested than permitted
User's group not permitted to use this partition
Access/permission denied
Requested node configuration is not available
Invalid account or account/partition combination specified
"""
LATER = """\
Required partition not available (inactive or drain)
Job violates accounting/QOS policy (job submit limit, user's size and/or time limits)
Unable to contact slurm controller (connect failure)
Invalid authentication credential
Protocol authentication error
"""


def test_what_slurm_will_take_later_is_asked_again() -> None:
    """By the texts of Slurm's own library."""
    texts = FINAL_REFUSAL + LATER
    assert [text for text in texts.splitlines() if own.FINAL_REFUSAL.search(text)] == FINAL_REFUSAL.splitlines()


def test_what_a_site_or_user_has_slurm_say_besides_is_passed_over(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    said = "Your group has used 350 of its 10000 node-h.\n77;far\n"
    assert slurm.validate_or_get_slurm_job_id(said, said) == "77"
    script(tmp_path / "squeue", 'echo "$SQUEUE_PARTITION$SQUEUE_STATES"')
    monkeypatch.setenv("SQUEUE_PARTITION", "urgent")
    assert run_command("squeue", SQUEUE_STATES="all") == ("all\n", "")


def test_jobs_are_cancelled_on_their_clusters_though_nobody_can_list_them(tmp_path: Path) -> None:
    script(tmp_path / "squeue", "exit 1")
    script(tmp_path / "scancel", f'echo "$@" >>{tmp_path}/cancelled')
    executor = executor_of()
    executor._submitted_job_clusters, executor.names = {"far"}, {"x": ()}
    executor._job_submission_executor = ThreadPoolExecutor(max_workers=1)
    executor.cancel_jobs([SubmittedJobInfo(SimpleNamespace(), external_jobid=77)])
    assert (tmp_path / "cancelled").read_text() == "--clusters=far 77\n"


def test_a_run_that_ends_cancels_its_own_jobs_alone(tmp_path: Path) -> None:
    """Also one whose number it has not heard; the user may have others, of another run or of none."""
    script(tmp_path / "squeue", "for job in '7|R|own' '8|R|unheard' '9|R|theirs'; do echo \"$job|None|n1|/\"; done")
    script(tmp_path / "scancel", f'echo "$@" >>{tmp_path}/cancelled')
    executor = executor_of()
    executor.names = {"own": (), "unheard": ()}
    executor._job_submission_executor = ThreadPoolExecutor(max_workers=1)
    executor.cancel_jobs([SubmittedJobInfo(SimpleNamespace(), external_jobid=7)])
    assert {*(tmp_path / "cancelled").read_text().split()} == {"7", "8"}


def test_its_options_are_those_of_the_plugin_and_profiles_are_meant_from_where_the_command_was_given(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """By then Snakemake has gone to the folder of ``--directory``."""
    monkeypatch.setattr(slurm.Executor, "__init__", lambda *_: None)
    command = f"snakemake --profile profiles/slurm --slurm-init-seconds-before-status-checks 1 --directory {tmp_path}"
    monkeypatch.setattr("sys.argv", command.split())
    monkeypatch.setenv("PWD", str(ROOT))
    monkeypatch.chdir(tmp_path)
    workflow = SimpleNamespace(executor_settings=None, overwrite_workdir=str(tmp_path))
    own.Executor(workflow, None)
    settings = workflow.executor_settings
    assert isinstance(settings, slurm.ExecutorSettings)
    assert (settings.requeue, settings.status_command) == (True, "squeue")  # by the profile
    assert settings.init_seconds_before_status_checks == 1  # by the command line
    assert capsys.readouterr() == ("", "")  # Snakemake has said already which profiles it takes
    assert Path.cwd() == tmp_path


def test_defaults_of_a_user_that_make_other_jobs_are_left_out(monkeypatch: pytest.MonkeyPatch) -> None:
    """One has sbatch wait for the end of each job, one makes each job an array; others choose a place for it."""
    monkeypatch.setattr(slurm.Executor, "__init__", lambda *_: None)
    for name, value in {"WAIT": "1", "ARRAY_INX": "1-2", "PARTITION": "long"}.items():
        monkeypatch.setenv(f"SBATCH_{name}", value)
    own.Executor(SimpleNamespace(executor_settings=slurm.ExecutorSettings()), None)
    assert [name for name in os.environ if name.startswith("SBATCH_")] == ["SBATCH_PARTITION"]


def job_of(results: str, log: str) -> Any:
    """A job of a rule with these parameters."""
    params, ends = Params(fromdict={"results": results}), {"is_group": lambda: False}
    return SimpleNamespace(name="plot", jobid=7, params=params, log=[log], resources={}, wildcards_dict={}, **ends)


@pytest.fixture
def damaged(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """A working folder whose results have settings that were cut short."""
    monkeypatch.chdir(tmp_path)
    write_text(tmp_path / "results/state/settings.json", '{"dataset"')


def test_a_job_that_cannot_be_named_has_failed(damaged: None, capsys: pytest.CaptureFixture[str]) -> None:
    """The thread that submits would end in silence: the head would wait for ever."""
    executor, failed = executor_of(), list[Any]()
    executor.report_job_error = lambda info, **_: failed.append(info.job)
    job = job_of("results", "results/logs/plot/plot.log")
    executor.run_job(job)
    assert failed == [job]
    (line,) = capsys.readouterr().err.splitlines()
    assert line.startswith("neurotier: a job of rule plot could not be submitted: results/state/settings.json: ")


@pytest.mark.parametrize("log", ["logs/plot.log", "plots/logs/plot.log", "results/plot.log"])
@pytest.mark.parametrize("results", ["plots", "results"])
def test_a_rule_of_others_may_have_a_parameter_results(damaged: None, results: str, log: str) -> None:
    assert executor_of().name_of(job_of(results, log)) == "e3a1.7"


def test_each_job_has_a_name_of_its_own(tmp_path: Path) -> None:
    """By it a job is found that was submitted though sbatch failed, and another head's job is not taken for ours."""
    settings = settings_at(tmp_path)
    places = Places.from_settings(settings)
    save_settings(settings, places)
    executor = executor_of()
    executor.wait = False
    executor.run_job(job_of(str(places.results), str(places.logs / "plot/plot.log")))
    executor.run_job(job_of("plots", "plots/logs/plot.log"))
    assert executor.names == {f"{prefix_of(places)}plot.7": (), "e3a1.7": ()}


def test_a_look_before_the_plugin_is_set_up_does_no_harm() -> None:
    """The first comes at once, from another thread, which would end in silence: the head would wait for ever."""

    async def looked() -> list[SubmittedJobInfo]:
        return [job async for job in object.__new__(own.Executor).check_active_jobs([])]

    assert asyncio.run(looked()) == []


def test_a_further_attempt_is_submitted_though_slurm_was_asked_during_the_first(tmp_path: Path) -> None:
    """It has the same name; that another job was refused meanwhile makes the executor ask what Slurm has."""
    script(tmp_path / "squeue", "echo '7|RUNNING|first|None|n1|/\n8|PENDING|refused|None||/'")
    executor, attached = executor_of(), list[str]()
    executor._report_job_submission_threadsafe = lambda info: attached.append(info.job)
    executor.names, executor.left, executor.refusal = {"first": (), "refused": ()}, {}, "limit reached"
    executor.run_uuid = "refused"
    assert executor.is_attached("refused"), "it was accepted, though sbatch failed"
    executor.run_uuid = "first"
    assert not executor.is_attached("first")
    assert attached == ["refused"]


def looked_at(job: Any, squeue: str, numbers: str = "7", has_avoided: bool = False) -> list[SubmittedJobInfo]:
    """The jobs that go on after a look at some, of which squeue prints the rest of a line; scancel notes its words."""
    folder = job.log.parent
    script(folder / "squeue", f'for number in {numbers}; do echo "$number|{squeue}"; done')
    script(folder / "scancel", f'echo "$@" >>{folder}/cancelled')
    executor = executor_of(keep_successful_logs=True)
    executor.names, executor.has_avoided = {"off": ("n7", "n[8-9]"), "y": ()}, has_avoided
    executor.places = SimpleNamespace(note=job.note) if job.wildcards_dict else None  # users' own rules have none
    again = SimpleNamespace(submit=lambda call, job: print(call.__name__, job.name))
    executor._job_submission_executor = again
    jobs = [SubmittedJobInfo(job, external_jobid=number, aux={"slurm_logfile": job.log}) for number in numbers.split()]

    async def left() -> list[SubmittedJobInfo]:
        return [job async for job in executor.check_active_jobs(jobs)]

    return asyncio.run(left())


@pytest.fixture
def share(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Any:
    """A job of a share, whose log has one line, and which has noted nothing about itself."""
    (log := tmp_path / "7.log").write_text("job\n")
    job = SimpleNamespace(name="analyze", wildcards_dict={"share": "1-of-2"}, attempt=1, note={}, log=log)
    monkeypatch.setattr(own, "last_notes", lambda places: {"7": places.note})
    return job


FAILED = "FAILED|x|NonZeroExitCode|n1|/"
ENDED = "neurotier: Slurm ended job 7 of rule analyze: "
AGAIN = "neurotier: job 7 of rule analyze was preempted, and is submitted again"
AT_FAULT = (
    "neurotier: job 7 failed for its node, n1, which this run will not use any more: neurotier could not begin there"
)


@pytest.mark.parametrize(
    ("squeue", "printed", "note", "lines"),
    [
        (FAILED, "job\npython: not\tfound\n\n", {}, [AT_FAULT, f"{ENDED}FAILED on n1: python: not found"]),
        (FAILED, "job\npython: not found\n", {"exit_code": 70}, []),
        (FAILED, "job\n[Errno 30] Read-only\n", {"node": "n1"}, [f"{ENDED}FAILED on n1: [Errno 30] Read-only"]),
        ("CANCELLED|x|None||/", "", {}, [f"{ENDED}CANCELLED"]),
        ("TIMEOUT|x|None|n1|/", "", {"exit_code": 70}, [f"{ENDED}TIMEOUT on n1"]),
        ("PREEMPTED|x|None|n1|/", "", {"exit_code": 70}, [AGAIN]),
    ],
    ids=["Python is missing", "participants say why", "its end could not be noted", "cancelled", "late", "preempted"],
)
def test_why_a_job_ended_is_said_unless_its_participants_do(
    share: Any, capsys: pytest.CaptureFixture[str], squeue: str, printed: str, note: dict[str, Any], lines: list[str]
) -> None:
    """A node is at fault if a job could not begin there, and not if the job noted its begin and no end: the shared file
    system may have become read-only."""
    share.log.write_text(printed)
    share.note = note
    assert not looked_at(share, squeue)
    said = capsys.readouterr()
    assert said.err.splitlines() == lines
    assert said.out == ("run_job analyze\n" if lines == [AGAIN] else "")


def test_the_notes_of_all_jobs_are_read_once_a_look(
    share: Any, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Each job has a file: read for each that has failed, those of 4,282 jobs would keep the head for hours."""
    read = []

    def notes(places: object) -> dict[str, dict[str, Any]]:
        read.append(places)
        return {number: {"node": f"n{number}", "exit_code": 73, "fault_of_node": "no tier"} for number in "789"}

    monkeypatch.setattr(own, "last_notes", notes)
    assert not looked_at(share, FAILED, "7 8 9")
    assert len(read) == 1
    assert [line.split(" ")[7] for line in capsys.readouterr().err.splitlines()] == ["n7,", "n8,", "n9,"]


def test_a_node_at_fault_is_avoided_beside_those_that_a_user_has_jobs_kept_off(share: Any, tmp_path: Path) -> None:
    """Those are in ``slurm_extra``, which sbatch reads last; and a list that waiting jobs are given replaces theirs."""
    script(tmp_path / "scontrol", f'echo "$@" >>{tmp_path}/changed')
    others = "8|PENDING|off|None||/\n9|PENDING|y|None||/\n10|PENDING|z|None||/\n11|PENDING|off|None||/"
    looked_at(share, f"{FAILED}\n{others}")
    changed = {"update JobId=8,11 ExcNodeList=n1,n7,n[8-9]", "update JobId=9 ExcNodeList=n1"}
    assert {*(tmp_path / "changed").read_text().splitlines()} == changed


class Given(dict[str, Any]):
    """Resources, as Snakemake gives them: items that are attributes, too."""

    __getattr__ = dict.get


@pytest.mark.parametrize(
    ("extra", "failed", "kept_off"),
    [
        ("--exclude=n7 -x 'n[8-9]'", {"n1"}, "n1,n7,n[8-9]"),
        ("--exclude n7", {"n1"}, "n1,n7"),
        ("--exclude n7", set(), "n7"),
        ("--exclusive", {"n1"}, "n1"),
        ("--exclude ./slow", {"n1"}, "n1,n7,n[8-9]"),
        ("--exclude=./none", {"n1"}, "./none"),
    ],
)
def test_a_job_is_kept_off_by_its_own_options_and_off_nodes_that_failed(
    extra: str, failed: set[str], kept_off: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Of two lists sbatch takes the last; a file has to be named alone."""
    monkeypatch.chdir(tmp_path)
    Path("slow").write_text("# since May\nn7\nn[8-9] # for weeks\n")
    resources = Given(slurm_extra=extra, nodes=1, mem_mb=1, runtime=1)
    job = SimpleNamespace(name="x", threads=1, resources=resources)
    params: dict[str, Any] = dict.fromkeys(("run_uuid", "comment_str", "account", "partition", "workdir"), "")
    command = own.literal_folder(job, {**params, "slurm_logfile": Path("7.log")}, failed_nodes=failed)
    assert re.findall(r"--exclude[= ](\S+)", " ".join(shlex.split(command)))[-1] == kept_off


ENDED_IN = "COMPLETED CANCELLED FAILED TIMEOUT OUT_OF_MEMORY NODE_FAIL PREEMPTED BOOT_FAIL DEADLINE"
GOES_ON_IN = "PENDING CONFIGURING RUNNING SUSPENDED STOPPED SIGNALING STAGE_OUT COMPLETING REQUEUED REQUEUE_HOLD"


@pytest.mark.parametrize("state", f"{ENDED_IN} {GOES_ON_IN}".split())
def test_every_state_of_slurm_is_either_an_end_or_none(share: Any, state: str) -> None:
    """By the manual of squeue: the head would wait for ever, or do again what is going on."""
    share.note = {"exit_code": 70}
    assert bool(looked_at(share, f"{state}|x|None|n1|/")) == (state in GOES_ON_IN.split())


REFUSED = "SLURM sbatch failed. The error message was 'sbatch: error: job submit limit'.\n"


@pytest.mark.parametrize("has_jobs", [True, False])
def test_a_refused_submission_is_repeated_as_long_as_the_run_has_jobs(
    damaged: None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, has_jobs: bool
) -> None:
    """A limit of submitted jobs lasts until one of them ends, which may take days; without any, an hour is enough."""
    script(tmp_path / "squeue", "echo '7|RUNNING|x|None|n1|/'")
    executor, failed = executor_of(), list[Any]()
    executor.report_job_error = lambda info, **_: failed.append(info.job)
    executor.places, executor.seen_s = None, time.monotonic() - own.PATIENCE_S - 1
    own_job = job_of("results", "results/logs/plot/plot.log")
    others = [SubmittedJobInfo(SimpleNamespace(name="x"), external_jobid=7)] if has_jobs else []

    async def left() -> list[SubmittedJobInfo]:
        return [job async for job in executor.check_active_jobs(others)]

    assert asyncio.run(left()) == others
    executor._report_job_error_threadsafe(SubmittedJobInfo(own_job), REFUSED)
    assert failed == ([] if has_jobs else [own_job])


def test_no_node_is_at_fault_for_the_job_of_a_users_own_rule(share: Any, capsys: pytest.CaptureFixture[str]) -> None:
    """It says nothing to neurotier; if even its log is missing, so is the file system."""
    share.wildcards_dict = {}
    looked_at(share, FAILED)
    assert capsys.readouterr().err == ""
    share.log.unlink()
    looked_at(share, FAILED)
    assert f"which this run will not use any more: {share.log} could not be written there\n" in capsys.readouterr().err


NOT_BEGUN = ", and is given up: its node could not begin it"
NO_NODE = ", and is given up: no node is left but those that failed"
LESS = ", until that limit is raised; or stop, and ask for less "


@pytest.mark.parametrize(
    ("reason", "has_avoided", "why"),
    [
        ("launch failed requeued held", False, NOT_BEGUN),
        ("JobHoldMaxRequeue", False, NOT_BEGUN),
        ("JobHeldUser", False, ""),
        ("BadConstraints", True, NO_NODE),
        ("BadConstraints", False, ""),
        ("PartitionTimeLimit", False, LESS),
        ("QOSMaxMemoryPerJob", False, LESS),
        ("QOSMaxMemoryMinutesPerJob", False, LESS),
        ("AssocMaxCpuMinutesPerJobLimit", False, LESS),
        ("QOSMaxCpuPerJobLimit", False, LESS),
        ("AssocMaxMemPerNode", False, LESS),
        ("QOSMaxMemoryPerUser", False, ""),
    ],
)
def test_a_job_that_would_wait_for_ever_is_given_up_or_the_user_is_told_what_to_do(
    share: Any, tmp_path: Path, capsys: pytest.CaptureFixture[str], reason: str, has_avoided: bool, why: str
) -> None:
    """A job is held after a failed prolog; no node is left where an upgrade has broken the environment. Of jobs that go
    on waiting for the same reason, one is named."""
    assert len(looked_at(share, f"PENDING|x|{reason}||/", "7 8", has_avoided)) == 2
    is_given_up = why in (NOT_BEGUN, NO_NODE)
    for number, line in zip((7, 8) if is_given_up else (7,), capsys.readouterr().err.splitlines(), strict=True):
        assert line.partition("(")[0] == f"neurotier: job {number} of rule analyze waits: {reason}{why}"
    assert (tmp_path / "cancelled").exists() == is_given_up


@pytest.mark.parametrize(
    ("reason", "is_given_up"), [("QOSMaxMemoryMinutesPerJob", True), ("QOSMaxMemoryPerUser", False)]
)
def test_a_further_attempt_that_may_never_begin_is_given_up(
    share: Any, tmp_path: Path, reason: str, is_given_up: bool
) -> None:
    """It asks for twice the memory and time; one that waits for other jobs of the user may begin."""
    share.attempt = 2
    looked_at(share, f"PENDING|x|{reason}||/")
    assert (tmp_path / "cancelled").exists() == is_given_up


def test_an_option_that_sbatch_does_not_have_is_named(damaged: None, capsys: pytest.CaptureFixture[str]) -> None:
    said = "sbatch: unrecognized option '--no'\nTry \"sbatch --help\" for more information"
    info = SubmittedJobInfo(job_of("results", "results/logs/plot/plot.log"))
    executor_of()._report_job_error_threadsafe(info, f"SLURM sbatch failed. The error message was '{said}'.\n")
    refused = "neurotier: Slurm refuses a job of rule plot: "
    assert capsys.readouterr().err == f"{refused}sbatch: unrecognized option '--no'\n"
