"""Jobs of a cluster: what accounting, jobs and head say is put together, and what none of them says stays empty."""

from __future__ import annotations

import os
import shutil
import time
from pathlib import Path
from typing import Any

import pytest
from configured import settings_at
from neurotier.core.errors import BusyError
from neurotier.core.files import read_json, write_json, write_text
from neurotier.core.places import Places
from neurotier.core.processes import RUN
from neurotier.core.tables import read_table, write_table
from neurotier.run import cluster_jobs, slurm
from neurotier.run.adoption import is_wanted, leftover_jobs, prefix_of, take_over
from neurotier.run.cluster_jobs import ask_accounting, close_jobs, job_rows, note_jobs, read_jobs, starts_in
from neurotier.run.head import forget_runs_of_another
from neurotier.run.jobs import note_killed, save_settings
from neurotier.run.journal import add_entry, entries, job_note, read_notes
from pool_jobs import image, write_index
from shown_values import shown
from support import script

STARTED_S = 1795392050.0

# What sacct 22.05 printed of three jobs: the node of the first failed, the second was ended while it waited.
RECORDED = """\
1|NODE_FAIL|n1|1795392052|1795392055|1795392082|27|4|4|1340M||00:00:00
1.batch|CANCELLED|n1|1795392055|1795392055|1795392082|27|4|4|||00:00:00
1.0|CANCELLED|n1|1795392055|1795392055|1795392082|27|4|4|||00:00:00
2|CANCELLED by 0|None assigned|1795392052|None|1795392056|0|1|1|1340M||00:00:00
3|RUNNING|n2|1795392052|1795392055|Unknown|44|1|1|1340M||00:00:00
3.batch|RUNNING|n2|1795392055|1795392055|Unknown|44|1|1|||00:00:00
1|COMPLETED|n1|1795392082|1795392088|1795392098|10|4|4|1340M||00:00.245
1.batch|COMPLETED|n1|1795392088|1795392088|1795392098|10|4|4||10870784|00:00.104
1.0|COMPLETED|n1|1795392089|1795392089|1795392098|9|4|4||166223872|00:00.141
"""


@pytest.fixture
def places(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Places:
    monkeypatch.setenv(RUN, "run")
    for name in ("SLURM_JOB_ID", "SLURM_CPUS_ON_NODE", "SLURM_MEM_PER_NODE", "SLURMD_NODENAME"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("PATH", str(tmp_path))  # this machine may have a Slurm, with jobs of these numbers
    here = Places.from_settings(settings_at(tmp_path))
    write_json(here.runs / "run.json", {"run": "run", "started_s": STARTED_S})
    return here


def submit(places: Places, number: int | str, rule: str = "analyze_participants", share: str | None = "3.01") -> None:
    """The head notes a job that it has submitted."""
    log = f"logs/{rule}/{share or number}.log"
    add_entry(places, "submitted", job=str(number), rule=rule, share=share, log=log, folder="/here")


def test_jobs_that_a_head_has_left_are_found_in_slurm_or_by_their_numbers(places: Places, tmp_path: Path) -> None:
    """SGE and LSF have plain numbers, too; where Slurm is, it lists its own, and those of its arrays."""
    for number in ("4711", "265.head", "12_3", "55", "--help"):
        submit(places, 1, share=number)
        submit(places, number, share=number)
    others = dict.fromkeys(("4711", "265.head", "12_3", "55"), "run")
    assert leftover_jobs(places) == ({}, others)
    script(tmp_path / "squeue", "echo 'slurm_load_jobs error: Could not establish a configuration source' >&2; exit 1")
    assert leftover_jobs(places) == ({}, others)
    with pytest.raises(BusyError, match="configuration source"):  # for a moment, on a cluster that has its jobs
        slurm.queue("--states=all")
    # Two of one that is heterogeneous, and others that have a number of ours now: one works for other results.
    # The name of one more has a line break.
    printed = "100+0 any '' 100+1 any '' 12_3 any '' 4711 any /elsewhere 55 neurotier-01234567-work '' 8 'a\nb|c|d' ''"
    script(tmp_path / "squeue", f"printf '%s|RUNNING|%s|None|n1|/here%s\\n' {printed}")
    running, others = leftover_jobs(places)
    assert (list(running), list(others)) == (["12_3"], ["265.head"])


@pytest.mark.parametrize(("state", "taken"), [("RUNNING", {"1-of-2": "01"}), ("COMPLETING", {})])
def test_a_job_that_slurm_is_ending_is_not_waited_for(
    places: Places, tmp_path: Path, state: str, taken: dict[str, str]
) -> None:
    work = f"{prefix_of(places)}00000000-1-of-2"
    script(tmp_path / "squeue", f"[ -e {tmp_path}/ended ] || echo '9|{state}|{work}.01|None|n1|/here'")
    script(tmp_path / "scancel", f": >{tmp_path}/ended")
    said = list[str]()
    assert take_over(places, {"1-of-2": work}, "", said.append) == taken
    assert any("ended 1 cluster job" in line for line in said) == (not taken), said


@pytest.mark.parametrize(("name", "wanted"), [("neurotier-01234567-89abcdef-1-of-2.01", True), ("wrap", False)])
def test_a_job_that_was_taken_over_works_for_the_new_run_though_its_node_resolves_the_path_differently(
    places: Places, monkeypatch: pytest.MonkeyPatch, name: str, wanted: bool
) -> None:
    """As behind an automounter. Whether the work is wanted, the head has decided: it would have ended the job."""
    write_text(places.latest_run, "later\n")
    monkeypatch.setenv("SLURM_JOB_NAME", name)
    assert is_wanted(places) == wanted
    assert os.environ[RUN] == ("later" if wanted else "run")


def test_a_copy_of_a_results_folder_leaves_the_jobs_of_the_other_alone(places: Places, tmp_path: Path) -> None:
    submit(places, 4711)
    save_settings(settings_at(tmp_path), places)
    copy = Places.from_settings(settings_at(tmp_path, results="copy"))
    shutil.copytree(places.results, copy.results)
    forget_runs_of_another(copy)
    assert leftover_jobs(copy) == ({}, {})
    forget_runs_of_another(places)
    assert leftover_jobs(places) == ({}, {"4711": "run"})


def note(job: str | None, started_s: float, **more: Any) -> dict[str, Any]:
    """What a job has noted of itself."""
    own = {"job": job, "node": "n7", "cpus": 4, "started_s": started_s}
    elapsed = {"elapsed_s": more["ended_s"] - started_s} if more else {}
    return job_note("3", ["A/sub-01", "A/sub-02"], 2, 2) | own | elapsed | more


STARTS = """\
NODE_FAIL n1 1795392055 1795392082 27 4 - -
CANCELLED - - 1795392056 - - - -
RUNNING n2 1795392055 - 44 1 - -
COMPLETED n1 1795392088 1795392098 10 4 0.245 166223872
"""
"""What nobody has seen is not 0, and memory is that of the largest step."""


def test_every_start_of_a_requeued_job_is_a_row_of_its_own() -> None:
    columns = "state node started_s ended_s elapsed_s cpus cpu_s max_rss_bytes"
    assert [shown(start, columns) for start in starts_in(RECORDED.splitlines())] == STARTS.splitlines()


ATTEMPTS = """\
1 analyze_participants 3 1 NODE_FAIL 3 A/sub-01 A/sub-02
2 write_report - 1 CANCELLED - -
1 analyze_participants 3 2 COMPLETED 6 A/sub-01 A/sub-02
3 analyze_participants 3 3 RUNNING 1 -
"""


def test_attempts_are_counted_over_requeues_and_retries_of_snakemake(places: Places) -> None:
    for number, rule, share in ((1, "analyze_participants", "3.01"), (2, "write_report", None)):
        submit(places, number, rule, share)
    submit(places, 3)
    notes = [note("1", 1795392056.0), note("1", 1795392089.5, ended_s=1795392097.0, exit_code=0, state="COMPLETED")]
    later = RECORDED.replace("3|RUNNING|n2|1795392052|1795392055", "3|RUNNING|n2|1795392100|1795392101")
    rows = job_rows("run", entries(places, "run", "submitted"), notes, starts_in(later.splitlines()), "")
    columns = "job rule share attempt state queue_wait_s members"
    assert [shown(row, columns) for row in rows] == ATTEMPTS.splitlines()
    write_table(places.profile / "jobs.tsv", "jobs", rows)
    assert read_table(places.profile / "jobs.tsv", "jobs") == rows


def test_the_job_of_another_site_is_no_second_attempt(places: Places) -> None:
    """Group levels are jobs of one rule, each with a log of its own."""
    for number in (1, 2):
        submit(places, number, "run_group_level", None)
    note_jobs(places, "run")
    assert [row["attempt"] for row in read_jobs(places, "run")] == [1, 1]


def test_without_slurm_the_notes_of_jobs_are_shown_and_the_reason_is_said(places: Places) -> None:
    submit(places, "55.server")
    add_entry(places, "job", **note("55.server", 1000.0, ended_s=1010.0, exit_code=70, state="FAILED"))
    note_jobs(places, "run")
    (row,) = read_jobs(places, "run")
    assert shown(row, "source state node elapsed_s max_rss_bytes cpu_s asked_cpus") == "job FAILED n7 10 - - -"
    assert row["reason"] == "the jobs are not Slurm's, or it has no accounting"


@pytest.mark.parametrize(
    ("answer", "reason"),
    [
        ("", "there is no sacct"),
        ("echo 'slurm_persist_conn_open: error: no' >&2; exit 1", "sacct ended with exit code 1: slurm_persist"),
        ("exec /bin/sleep 30", "sacct did not answer within"),
        ("exit 0", "sacct knows none of the jobs"),
        # a step without its job
        ("printf '\\377\\376|||\\n8|x\\n\\n8.0|||||||||||\\n'", "sacct knows none of the jobs"),
    ],
)
def test_an_accounting_that_does_not_answer_is_a_reason(
    places: Places, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, answer: str, reason: str
) -> None:
    if answer:
        script(tmp_path / "sacct", answer)
    monkeypatch.setattr(cluster_jobs, "PATIENCE_S", 3.0)
    submit(places, 8)
    close_jobs(places, "run")
    (row,) = read_jobs(places, "run")
    assert row["reason"].startswith(reason)
    assert "\n" not in row["reason"]
    assert row["submitted_s"] is not None
    assert shown(row, "source started_s cpus queue_wait_s") == "head - - -"


def test_what_is_known_of_a_job_says_why_its_participants_were_killed(places: Places) -> None:
    timeout, unknown = "(cluster job 7: TIMEOUT;", "(cluster job 8: state unknown;"
    states = {"01": timeout, "02": timeout, "03": unknown, "04": ""}
    write_index(places, map(image, states))
    for label in states:
        write_text(places.log(f"sub-{label}"), "Analysing\n")
    write_json(places.runs / "run.json", {"run": "run", "started_s": time.time() - 60})
    jobs = [
        ("6", "NODE_FAIL", "sub-01 sub-02"),  # another has gone on with it
        ("7", "TIMEOUT", "sub-01 sub-02"),
        ("8", None, "sub-03"),
        ("9", "FAILED", None),
    ]
    note_killed(places, "run", [dict(zip(("job", "state", "members"), row, strict=True)) for row in jobs])
    for label, state in states.items():
        reason = read_json(places.failure(f"sub-{label}"))["reason"]
        assert reason.startswith("the job was killed before it could say why")
        assert state in reason
        assert ("(" in reason) == bool(state)


def test_jobs_that_ended_before_the_run_are_others_of_that_number(places: Places, tmp_path: Path) -> None:
    """One that still goes on was taken over from a head that is dead, however long ago that had submitted it."""
    script(tmp_path / "sacct", f"/bin/cat <<END\n{RECORDED}END")
    starts, _ = ask_accounting(["1", "3"], STARTED_S + 86_400)
    assert [(start["job"], start["submitted_s"]) for start in starts] == [("3", 1795392052)]
    script(tmp_path / "sacct", f"/bin/cat <<END\n{RECORDED[: RECORDED.index('3|')]}END")
    assert ask_accounting(["1"], STARTED_S + 86_400) == ([], "sacct knows none of the jobs")


def test_damaged_notes_are_passed_over(places: Places) -> None:
    add_entry(places, "job", **note("8", 1000.0))
    damaged_lines = ('{"kind": "job", "sta', "[]", "{}", '{"kind": "job", "time_s": 1, "started_s": "soon"}')
    (places.journal("run") / "n8-1.jsonl").write_text("\n".join(damaged_lines))
    assert [found["job"] for found in read_notes(places, "run")] == ["8"]
    for damaged in ("{", "7", "[1]"):
        write_text(places.cluster_jobs("run"), damaged)
        assert read_jobs(places, "run") == []
