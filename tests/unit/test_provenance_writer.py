"""One writer of the datasets of derivatives: others wait, and locks are removed only of those who are dead."""

from __future__ import annotations

import os
import socket
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

import pytest
from neurotier.core.errors import BusyError
from neurotier.core.files import read_json, write_json, write_text
from neurotier.core.places import Places
from neurotier.provenance import writer
from neurotier.provenance.repository import unsaved
from neurotier.provenance.writer import MARK, Writer, clear_locks, locks_in, writing
from support import PATIENCE_S, git

DEAD = Writer("dead", socket.gethostname())

HOLDING = """
import sys
from pathlib import Path
from neurotier.core.places import Places
from neurotier.provenance.writer import writing
with writing(Places(*[Path(sys.argv[1])] * 5)):
    print("writes", flush=True)
    sys.stdin.read()
"""


@pytest.fixture
def places(tmp_path: Path) -> Places:
    return Places(*[tmp_path] * 5)


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A repository with every lock that a killed git has been seen to leave."""
    monkeypatch.setattr(writer, "PATIENCE_S", 0.5)
    made = tmp_path / "derivatives"
    made.mkdir()
    git(made, "init", "--quiet")
    (made / ".git" / "annex").mkdir()
    locks = ["index.lock", "HEAD.lock", "refs/heads/main.lock", "objects/maintenance.lock", "annex/index.lock"]
    for lock in locks:
        (made / ".git" / lock).touch()
    assert len(locks_in(made / ".git")) == len(locks)
    return made


@pytest.fixture
def holding(tmp_path: Path) -> Iterator[subprocess.Popen[str]]:
    """Another process that writes, until its standard input ends."""
    pipes: dict[str, Any] = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE}
    with subprocess.Popen([sys.executable, "-c", HOLDING, str(tmp_path)], text=True, **pipes) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == "writes\n"
        yield process
        process.kill()


@pytest.mark.parametrize(
    ("before", "said"),
    [
        (None, r"HEAD\.lock: another program is writing .* wait for it"),
        (replace(DEAD, since_ns=2**62), "older than the save that was killed"),
    ],
)
def test_locks_of_somebody_else_stay(folder: Path, before: Writer | None, said: str) -> None:
    locks = locks_in(folder / ".git")
    with pytest.raises(BusyError, match=said):
        clear_locks(folder, before)
    assert locks_in(folder / ".git") == locks


def test_locks_of_a_dead_writer_are_removed(folder: Path) -> None:
    clear_locks(folder, DEAD)
    assert not locks_in(folder / ".git")


def test_a_lock_of_the_list_of_subdatasets_is_found(folder: Path) -> None:
    lock = folder / ".gitmodules.lock"
    lock.touch()
    (folder / ".gitmodules").touch()
    words = ["git", "config", "--file", ".gitmodules", "a.b", "c"]
    done = subprocess.run(words, cwd=folder, capture_output=True, text=True)
    assert isinstance(unsaved(folder, done.stderr), BusyError)
    clear_locks(folder, DEAD)
    assert not lock.exists()


def test_a_copy_of_the_folder_ends_nothing_of_the_original(places: Places) -> None:
    alive = subprocess.Popen(["sleep", "600"], env={**os.environ, MARK: "abc"})
    try:
        write_json(places.saving, asdict(Writer("abc", socket.gethostname(), inode=1)))
        with pytest.raises(BusyError, match=f"process {alive.pid} saves derivatives in the folder that this one was"):
            writing(places).__enter__()
        assert alive.poll() is None
    finally:
        alive.kill()
        alive.wait()
    with writing(places) as before:
        assert before is not None


def test_locks_stay_while_a_git_works_there(folder: Path) -> None:
    """Such as a user's own commit, which waits for an editor."""
    pipe = subprocess.PIPE
    with subprocess.Popen(["git", "cat-file", "--batch"], cwd=folder, stdin=pipe, stdout=pipe) as other:
        with pytest.raises(BusyError, match=rf"process {other.pid}, git"):
            clear_locks(folder, DEAD)
        assert locks_in(folder / ".git")
        other.communicate()
    clear_locks(folder, DEAD)


def test_locks_of_a_writer_on_another_host_stay(folder: Path, places: Places) -> None:
    write_json(places.saving, {"mark": "1", "host": "elsewhere"})
    with pytest.raises(BusyError, match="elsewhere was killed"), writing(places) as before:
        clear_locks(folder, before)
    assert read_json(places.saving)["host"] == "elsewhere"
    assert locks_in(folder / ".git")


def test_what_a_killed_writer_has_started_is_ended_first(places: Places) -> None:
    left = subprocess.Popen(["sleep", "600"], env={**os.environ, MARK: "abc"})
    write_json(places.saving, {"mark": "abc", "host": socket.gethostname()})
    with writing(places) as before:
        assert before is not None
        assert left.poll() is not None
        assert read_json(places.saving)["mark"] == os.environ[MARK] != "abc"
    assert not places.saving.exists()
    assert MARK not in os.environ


def test_a_damaged_note_is_believed(places: Places) -> None:
    write_text(places.saving, "")
    with writing(places) as before:
        assert before == Writer("", socket.gethostname()), "of this host, whoever it was"


def test_a_second_writer_waits_for_the_first(places: Places, holding: subprocess.Popen[str]) -> None:
    second = subprocess.Popen(
        [sys.executable, "-c", HOLDING, str(places.results)], stdin=subprocess.DEVNULL, stdout=subprocess.PIPE
    )
    with pytest.raises(subprocess.TimeoutExpired):
        second.wait(2)
    assert places.saving.exists()
    holding.communicate("")
    assert second.communicate(timeout=PATIENCE_S)[0] == b"writes\n"
    assert second.returncode == 0
    assert not places.saving.exists()


def test_a_writer_that_is_killed_leaves_a_note(places: Places, holding: subprocess.Popen[str]) -> None:
    holding.kill()
    holding.wait()
    mark = read_json(places.saving)["mark"]
    with writing(places) as before:
        assert before is not None
        assert before.mark == mark


def test_a_lock_of_git_is_no_full_tier(tmp_path: Path) -> None:
    git(tmp_path, "init", "--quiet")
    (tmp_path / "a").touch()
    (tmp_path / ".git" / "index.lock").touch()
    done = subprocess.run(["git", "add", "a"], cwd=tmp_path, capture_output=True, text=True)
    assert isinstance(unsaved(tmp_path, done.stderr), BusyError)
    assert not isinstance(unsaved(tmp_path, "No space left on device"), BusyError)
