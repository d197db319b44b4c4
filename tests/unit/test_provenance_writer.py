"""Who may write to the datasets of derivatives: locks of git are removed only of a save that was killed here."""

from __future__ import annotations

import os
import socket
import subprocess
from pathlib import Path

import psutil
import pytest
from neurotier.core.errors import BusyError
from neurotier.core.files import write_text
from neurotier.core.libc import LIBC, PR_SET_CHILD_SUBREAPER
from neurotier.core.places import Places
from neurotier.provenance.saving import clear_locks, unsaved, writing
from support import git, wait_for

HERE = socket.gethostname()
LOCKS = ("index.lock", "HEAD.lock", "refs/heads/main.lock", "objects/maintenance.lock", "annex/index.lock")


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A repository with every lock that a killed git has been seen to leave."""
    made = tmp_path / "derivatives"
    made.mkdir()
    git(made, "init")
    (made / ".git/annex").mkdir()
    for lock in LOCKS:
        (made / ".git" / lock).touch()
    return made


def locks_in(folder: Path) -> int:
    return len(list(folder.rglob("*.lock")))


@pytest.mark.parametrize(
    ("killed_on", "said"),
    [("", r"HEAD\.lock: another program is writing .* wait for it"), ("elsewhere", "a save on elsewhere was killed")],
)
def test_locks_of_somebody_else_stay(folder: Path, killed_on: str, said: str) -> None:
    with pytest.raises(BusyError, match=said):
        clear_locks(folder, killed_on)
    assert locks_in(folder) == len(LOCKS)


def test_a_lock_of_the_list_of_subdatasets_is_removed_with_the_others(folder: Path) -> None:
    lock = folder / ".gitmodules.lock"
    lock.touch()
    (folder / ".gitmodules").touch()
    words = ["git", "config", "--file", ".gitmodules", "a.b", "c"]
    done = subprocess.run(words, cwd=folder, capture_output=True, text=True)
    assert isinstance(unsaved(folder, done.stderr), BusyError)
    clear_locks(folder, HERE)
    assert not locks_in(folder)


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
        clear_locks(folder, HERE)
    assert locks_in(folder)
    os.close(ends)
    wait_for(lambda: not reader.is_running())
    clear_locks(folder, HERE)


def test_a_save_that_fails_leaves_a_note_until_another_has_come_to_its_end(tmp_path: Path) -> None:
    places = Places(*[tmp_path] * 5)
    write_text(places.saving, "elsewhere")
    with pytest.raises(KeyError), writing(places):
        raise KeyError
    with writing(places) as killed_on:
        assert killed_on == "elsewhere", "what that has left may be there"
    with pytest.raises(KeyError), writing(places):
        raise KeyError
    assert places.saving.read_text() == HERE
    places.saving.unlink()
    with pytest.raises(BusyError), writing(places):
        raise BusyError("somebody else writes")
    assert not places.saving.exists(), "locks that are found next are not ours"
