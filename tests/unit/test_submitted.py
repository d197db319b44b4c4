"""Jobs that were given to a cluster: what is heard of them, and what is told of those that a dead run has left."""

from __future__ import annotations

import importlib.util
import logging
import os
import subprocess
from pathlib import Path

import pytest
from neurotier.core.errors import BusyError
from neurotier.core.files import write_json
from neurotier.core.places import Places
from neurotier.run.snakemake_internals import SubmittedJobs
from neurotier.run.submitted import (
    OTHER,
    SLURM,
    ClusterJob,
    end_left,
    forget,
    jobs_of,
    list_jobs,
    note_submitted,
    unended,
)

BY_SLURM = "Job 3 has been submitted with SLURM jobid 812 (log: /x/812.log)."
BY_GENERIC = "Submitted job 4 with external jobid '55.server'."


@pytest.fixture
def places(tmp_path: Path) -> Places:
    return Places(*(tmp_path / name for name in ("results", "datasets", "work", "images", "store")))


def test_what_plugins_say_of_their_jobs_is_heard(places: Places) -> None:
    heard = SubmittedJobs(lambda line: note_submitted(places, "run", line))
    for line in (BY_SLURM, BY_GENERIC, "Job 5 failed, with an external jobid nobody knows", "1 of 3 steps done"):
        assert heard.filter(logging.LogRecord("", logging.INFO, "", 0, line, (), None))
    assert jobs_of(places, "run") == [ClusterJob("run", "812", SLURM), ClusterJob("run", "55.server", OTHER)]


def test_the_words_are_those_of_the_installed_plugins() -> None:
    """Their code is read here, so that another version which speaks otherwise fails a test, and not a user."""
    words = {
        "snakemake_executor_plugin_slurm": "has been submitted with SLURM jobid ",
        "snakemake_executor_plugin_cluster_generic": "Submitted {} {} with external jobid '{}'.",
    }
    for module, text in words.items():
        found = importlib.util.find_spec(module)
        assert found is not None
        assert text in Path(str(found.origin)).read_text()


def test_jobs_of_a_run_that_came_to_its_end_are_not_looked_at(places: Places) -> None:
    for run in ("ended", "dead"):
        note_submitted(places, run, BY_SLURM)
    write_json(places.runs / "ended.json", {"ended_s": 1.0})
    write_json(places.runs / "dead.json", {"started_s": 1.0})
    assert [job.run for job in unended(places)] == ["dead"]
    forget(places, "dead")
    assert unended(places) == []


def test_jobs_of_another_scheduler_are_ended_by_the_command_of_the_profile(places: Places, tmp_path: Path) -> None:
    ended = tmp_path / "ended"
    cancel = tmp_path / "qdel with a space"
    cancel.write_text(f'#!/bin/sh\necho "$@" >> {ended}\n')
    cancel.chmod(0o755)
    note_submitted(places, "dead", BY_GENERIC)
    assert list_jobs(places) == ["55.server\tstate not known\trun dead"]
    said: list[str] = []
    end_left(places, f"'{cancel}' -x", said.append)
    assert ended.read_text() == "-x 55.server\n"
    assert said == ["neurotier: ended 1 cluster job that an earlier run had left: 55.server"]
    assert list_jobs(places) == []


@pytest.mark.parametrize(
    ("cancel", "why"), [("", "the profile has no command for it"), ("no-such-command", "No such file or directory")]
)
def test_a_job_that_cannot_be_ended_is_said(places: Places, cancel: str, why: str) -> None:
    note_submitted(places, "dead", BY_GENERIC)
    said: list[str] = []
    end_left(places, cancel, said.append)
    (line,) = said
    assert "job 55.server of an earlier run could not be ended" in line
    assert why in line


@pytest.mark.parametrize(
    "planted",
    [
        *('{"job": "1; rm -rf /", "scheduler": "slurm"}', '{"job": "--all", "scheduler": "other"}'),
        *('{"job": "7", "scheduler": "touch /tmp/x"}', '{"job": "7", "cancel": "touch /tmp/x"}', "[]", '"', "12", "\0"),
    ],
)
def test_lines_that_nobody_wrote_so_are_passed_over(places: Places, planted: str) -> None:
    note_submitted(places, "dead", BY_SLURM)
    with (places.state / "submitted" / "dead.jsonl").open("a") as file:
        file.write(planted + "\n")
    assert jobs_of(places, "dead") == [ClusterJob("dead", "812", SLURM)]


def test_without_slurm_its_jobs_are_gone(places: Places, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    note_submitted(places, "dead", BY_SLURM)
    end_left(places, "", lambda line: pytest.fail(line))
    with pytest.raises(OSError, match="squeue"):
        subprocess.run(["squeue"], check=False)


def test_nothing_begins_while_slurm_does_not_say_what_runs(
    places: Places, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    squeue = tmp_path / "squeue"
    squeue.write_text("#!/bin/sh\necho 'slurm_load_jobs error: Unable to contact slurm controller' >&2; exit 1\n")
    squeue.chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}:{os.environ['PATH']}")
    end_left(places, "", lambda line: pytest.fail(line))  # no run has left any
    note_submitted(places, "dead", BY_SLURM)
    for _ in range(2):
        with pytest.raises(BusyError, match=r"may be under way: squeue ended with exit code 1: .* Unable to contact"):
            end_left(places, "", lambda line: pytest.fail(line))


@pytest.mark.parametrize("way", ["link", "writable", "pipe", "folder"])
def test_a_list_that_others_could_have_written_is_not_read(places: Places, tmp_path: Path, way: str) -> None:
    file = places.state / "submitted" / "dead.jsonl"
    note_submitted(places, "dead", BY_SLURM)
    assert file.stat().st_mode & 0o077 == 0
    if way == "writable":
        file.chmod(0o666)
    else:
        other = file.rename(tmp_path / "other")
        if way == "link":
            file.symlink_to(other)
        elif way == "pipe":
            os.mkfifo(file)
        else:
            file.mkdir()
    assert jobs_of(places, "dead") == []


def test_jobs_that_could_not_be_ended_are_tried_again(places: Places) -> None:
    note_submitted(places, "dead", BY_GENERIC)
    said: list[str] = []
    for _ in range(2):
        end_left(places, "", said.append)
    assert len(said) == 2
