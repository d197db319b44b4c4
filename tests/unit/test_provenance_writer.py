"""One writer of the datasets of derivatives: others wait, and locks are removed only of those who are dead."""

from __future__ import annotations

import os
import socket
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import psutil
import pytest
from neurotier.core.errors import BusyError
from neurotier.core.files import read_json, write_json, write_text
from neurotier.core.libc import LIBC, PR_SET_CHILD_SUBREAPER
from neurotier.core.places import Places
from neurotier.provenance import writer
from neurotier.provenance.repository import unsaved
from neurotier.provenance.writer import Writer, clear_locks, locks_in, writing
from support import PATIENCE_S, git, wait_for

DEAD = Writer(socket.gethostname())

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
    assert len(locks_in(made)) == len(locks)
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
        (DEAD._replace(since_ns=2**62), "older than the save that was killed"),
    ],
)
def test_locks_of_somebody_else_stay(folder: Path, before: Writer | None, said: str) -> None:
    locks = locks_in(folder)
    with pytest.raises(BusyError, match=said):
        clear_locks(folder, before)
    assert locks_in(folder) == locks


def test_locks_of_a_dead_writer_are_removed(folder: Path) -> None:
    clear_locks(folder, DEAD)
    assert not locks_in(folder)


def test_a_lock_of_the_list_of_subdatasets_is_found(folder: Path) -> None:
    lock = folder / ".gitmodules.lock"
    lock.touch()
    (folder / ".gitmodules").touch()
    words = ["git", "config", "--file", ".gitmodules", "a.b", "c"]
    done = subprocess.run(words, cwd=folder, capture_output=True, text=True)
    assert isinstance(unsaved(folder, done.stderr), BusyError)
    clear_locks(folder, DEAD)
    assert not lock.exists()


def test_locks_stay_while_a_git_works_there(folder: Path) -> None:
    """Such as a user's own commit, which waits for an editor; none that this process has started."""
    LIBC.prctl(PR_SET_CHILD_SUBREAPER, 0, 0, 0, 0)  # a meter in this worker makes orphans its children: its own gits
    waits, ends = os.pipe()
    start = "exec 3<&0; git cat-file --batch <&3 >/dev/null & echo $!"
    started = subprocess.run(["sh", "-c", start], cwd=folder, stdin=waits, stdout=subprocess.PIPE, check=True)
    os.close(waits)
    reader = psutil.Process(int(started.stdout))
    wait_for(lambda: reader.name() == "git")  # until then it is still the shell
    with pytest.raises(BusyError, match=rf"process {reader.pid}, git"):
        clear_locks(folder, DEAD)
    assert locks_in(folder)
    os.close(ends)
    wait_for(lambda: not reader.is_running())
    clear_locks(folder, DEAD)


def test_locks_of_a_writer_on_another_host_stay(folder: Path, places: Places) -> None:
    write_json(places.saving, {"host": "elsewhere"})
    with pytest.raises(BusyError, match="elsewhere was killed"), writing(places) as before:
        clear_locks(folder, before)
    assert read_json(places.saving)["host"] == "elsewhere"
    assert locks_in(folder)


def test_a_damaged_note_is_believed(places: Places) -> None:
    write_text(places.saving, "")
    with writing(places) as before:
        assert before == Writer(socket.gethostname()), "of this host, whoever it was"


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
    with writing(places) as before:
        assert before is not None
        assert before.host == socket.gethostname()
        assert read_json(places.saving)["since_ns"] == before.since_ns, "the next must know of both"


def test_a_lock_of_git_is_no_full_tier(tmp_path: Path) -> None:
    git(tmp_path, "init", "--quiet")
    (tmp_path / "a").touch()
    (tmp_path / ".git" / "index.lock").touch()
    done = subprocess.run(["git", "add", "a"], cwd=tmp_path, capture_output=True, text=True)
    assert isinstance(unsaved(tmp_path, done.stderr), BusyError)
    assert not isinstance(unsaved(tmp_path, "No space left on device"), BusyError)
