"""Work folders: private, gone afterwards, removed after a kill without following what somebody planted there."""

from __future__ import annotations

import fcntl
import json
import os
import re
import signal
import socket
import stat
import subprocess
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from conftest import missing, need
from neurotier.analysis.staging import FLUSHED_EACH
from neurotier.core import private
from neurotier.core.errors import BusyError, TierError
from neurotier.core.files import read_json, remove_partials, remove_tree, write_json, write_text
from neurotier.core.private import (
    make_private,
    names_in,
    private_folder,
    remove_abandoned,
    remove_leftovers,
    work_folder,
)
from support import wait_for

TWO_SIGNALS = """
import os, signal, time
from neurotier.meter.measure import measure_child
from neurotier.run.stops import raising_interrupted
with raising_interrupted():
    try:
        measure_child(lambda: print("begun", flush=True) or time.sleep(1000) or 0, 1.0)
    finally:
        os.kill(os.getpid(), signal.SIGTERM)
        print("cleared up", flush=True)
"""


@pytest.fixture
def work(tmp_path: Path) -> Path:
    """Work folder of some results on a tier."""
    (tmp_path / "tier").mkdir()
    return private_folder(tmp_path / "tier") / "work/abc"


HERE, LOCKED = {"host": socket.gethostname()}, {"locked": True}


def leave(folder: Path, **owner: Any) -> Path:
    """A folder that somebody has left in a work folder, with a mark of its owner if one is given."""
    folder.mkdir(parents=True)
    folder.parents[2].chmod(0o700)
    if owner:
        write_json(folder / "owner.json", owner)
    return folder


def test_a_second_signal_does_not_cut_off_what_clears_up() -> None:
    """The first comes to the meter, which takes it in the place of the handler."""
    words = [sys.executable, "-c", TWO_SIGNALS]
    with subprocess.Popen(words, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True) as process:
        assert process.stdout
        assert process.stdout.readline() == "begun\n"
        process.send_signal(signal.SIGINT)
        assert process.stdout.read() == "cleared up\n"


@pytest.fixture
def precious(tmp_path: Path) -> Iterator[Path]:
    """A file in a folder ``victim``, which must stay, whatever leads there."""
    write_text(file := tmp_path / "victim/sub-01/precious", "kept")
    yield file
    assert file.read_text() == "kept"


def test_what_is_left_is_removed_and_nothing_behind_a_link(work: Path, precious: Path) -> None:
    (leave(work / "sub-01") / "out").symlink_to(precious.parent)
    (work / "sub-02").symlink_to(precious.parent)
    write_text(closed := leave(work / "sub-03") / "closed/file", "")
    closed.parent.chmod(0)
    assert remove_leftovers(work, "id") == ["sub-01", "sub-02", "sub-03"]
    assert not work.exists()


def test_a_lost_tier_keeps_no_run_from_its_end(work: Path) -> None:
    """Its participants have failed for that; the end of the run has nothing to clear, and their reasons to write."""
    tier = work.parents[2]
    tier.rename(tier.with_name("lost"))
    tier.write_text("")
    assert remove_leftovers(work, "id") == []


@pytest.mark.parametrize("level", ["neurotier", "work", "abc"])
def test_a_link_in_place_of_a_folder_is_refused(work: Path, precious: Path, level: str) -> None:
    place = {"neurotier": work.parents[1], "work": work.parent, "abc": work}[level]
    place.parent.mkdir(parents=True, exist_ok=True)
    if level != "neurotier":
        work.parents[1].chmod(0o700)
    place.symlink_to(precious.parents[1])
    for use in (lambda: remove_leftovers(work, "id"), lambda: work_folder(work / "sub-01", "id").__enter__()):
        with pytest.raises(TierError, match=r"is a link made by user .*, not a folder; remove it, .* on another tier$"):
            use()


def test_a_folder_that_others_may_write_to_is_refused(work: Path) -> None:
    work.mkdir(parents=True)
    work.parents[1].chmod(0o777)
    with pytest.raises(TierError, match=r"is writable by other users .*chmod 700"), work_folder(work / "sub-01", "id"):
        pass


def test_no_process_is_ended_because_a_file_names_it(work: Path) -> None:
    other = subprocess.Popen(["sleep", "100"], cwd="/")
    try:
        folder = leave(work / "sub-01", **HERE, pid=other.pid, identity="id")
        remove_leftovers(work, "id")
        assert not folder.exists()
        assert other.poll() is None
    finally:
        other.kill()
        other.wait()


AS_ON_NFS = """
import fcntl, struct
def flock(file, how):
    kind = fcntl.F_WRLCK if how & fcntl.LOCK_EX else fcntl.F_RDLCK
    command = fcntl.F_OFD_SETLK if how & fcntl.LOCK_NB else fcntl.F_OFD_SETLKW
    fcntl.fcntl(file, command, struct.pack("hhqqi4x", kind, 0, 0, 0, 0))
"""
"""``flock`` by locks of byte ranges, which are of an open file, too: one alone needs it open for writing, as on NFS."""

OWNER = """
import pathlib, sys, time
from neurotier.core.private import work_folder
if sys.argv[2:] == ["NFS"]:
    fcntl.flock = flock
with work_folder(pathlib.Path(sys.argv[1]), "id"):
    print("made", flush=True)
    sys.stdin.read()
"""
CONTAINER = ["unshare", "--pid", "--fork", "--kill-child"]


@contextmanager
def owned(folder: Path, space: Sequence[str] = (), how: str = "") -> Iterator[subprocess.Popen[str]]:
    """A process that has a work folder until it is killed, or its input ends."""
    if "unshare" in space and os.getuid() != 0:
        missing("a process number space of one's own needs root")
    words = [*space, sys.executable, "-c", AS_ON_NFS + OWNER, str(folder), how]
    with subprocess.Popen(words, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as owner:
        assert owner.stdout
        assert owner.stdout.readline() == "made\n"
        try:
            yield owner
        finally:
            owner.kill()
            owner.wait()  # before its input ends, by which it would remove its folder itself


@pytest.mark.parametrize(
    ("space", "how"), [([], ""), (CONTAINER, ""), ([], "NFS")], ids=["here", "container", "on NFS"]
)
def test_a_folder_is_abandoned_when_its_owner_has_been_killed(
    work: Path, monkeypatch: pytest.MonkeyPatch, space: list[str], how: str
) -> None:
    """Also one whose number means another process here, or none."""
    if how == "NFS":
        exec(AS_ON_NFS, here := dict[str, Any]())  # noqa: S102  # the same in another process
        monkeypatch.setattr(fcntl, "flock", here["flock"])
    with owned(work / "sub-01", space, how):
        remove_abandoned(work)
        assert names_in(work / "sub-01") == ["owner.json"]

    def all_gone() -> bool:
        remove_abandoned(work)
        return not names_in(work)

    wait_for(all_gone)  # once the process that was killed has ended


@pytest.mark.parametrize("error", ["ENOLCK", "EBADF"])
def test_without_locks_a_folder_stays_until_the_next_run_of_its_results(work: Path, error: str) -> None:
    with owned(work / "sub-01", traced("-e", f"inject=flock:error={error}")) as owner:
        os.kill(read_json(work / "sub-01/owner.json")["pid"], signal.SIGKILL)
        owner.wait()
    remove_abandoned(work)
    assert names_in(work) == ["sub-01"]
    assert remove_leftovers(work, "id") == ["sub-01"]


def test_a_lock_under_which_nobody_may_write_ends_nobody(work: Path) -> None:
    """As on CIFS: what is written after the lock is refused."""
    mark, calls = work / "sub-01/owner.json", work.parents[2] / "calls"
    strace = traced("-P", str(mark), "-o", str(calls), "-e", "trace=flock,write,pwrite64")
    with owned(mark.parent, strace) as owner:
        owner.communicate()
    named = re.findall(r"^\w+", calls.read_text(), re.MULTILINE)
    before, after = named[: named.index("flock")], named[named.index("flock") :]
    refused = [f"inject={name}:error=EACCES:when={before.count(name) + 1}+" for name in {*after} - {"flock"}]
    assert refused
    with owned(mark.parent, [*strace, *(word for one in refused for word in ("-e", one))]):
        assert "EACCES" in calls.read_text()
        assert read_json(mark)["identity"] == "id"
        remove_abandoned(work)
        assert names_in(work) == ["sub-01"]


@pytest.mark.parametrize("space", [[], CONTAINER], ids=["here", "container"])
def test_a_folder_in_use_for_other_results_of_the_same_path_is_left(work: Path, space: list[str]) -> None:
    """As in two containers that share a host's name and its tier."""
    with owned(work / "sub-01", space):
        with pytest.raises(BusyError, match="in use for other results"), work_folder(work / "sub-01", "other"):
            pass
        assert remove_leftovers(work, "other") == []
        assert names_in(work / "sub-01") == ["owner.json"]
    wait_for(lambda: remove_leftovers(work, "other"))


def test_what_another_has_made_meanwhile_is_left(work: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def make(folder: Path) -> None:
        make_private(folder)
        (folder / "owner.json").write_text("theirs")

    monkeypatch.setattr(private, "make_private", make)
    with pytest.raises(BusyError, match="sub-01: is in use for other results"), work_folder(work / "sub-01", "id"):
        pass
    assert (work / "sub-01/owner.json").read_text() == "theirs"


REMOVER = """
import pathlib, sys
from neurotier.core.private import remove_abandoned
remove_abandoned(pathlib.Path(sys.argv[1]))
"""


def traced(*words: str) -> list[str]:
    """Words before a command whose system calls are looked at, or changed."""
    return [need("strace", "strace"), "-qq", "-o", os.devnull, *words]


KILLED_AT_RMDIR = ("-e", "inject=rmdir:signal=KILL")


def test_who_is_killed_while_removing_leaves_nothing_for_ever(work: Path) -> None:
    """Right before the folder itself goes, whose mark has gone."""
    with owned(work / "sub-01"):
        pass
    words = [*traced(*KILLED_AT_RMDIR), sys.executable, "-c", REMOVER, str(work)]
    wait_for(lambda: subprocess.run(words, check=False).returncode)
    (left,) = names_in(work)
    assert names_in(work / left) == []
    (work / left / "large").touch()
    remove_abandoned(work)
    assert names_in(work) == []


def test_an_owner_that_is_killed_while_removing_leaves_its_mark(work: Path) -> None:
    with owned(work / "sub-01", traced(*KILLED_AT_RMDIR)) as owner:
        for name in ("a", "z"):
            write_text(work / "sub-01" / name / "file", "")
        owner.communicate()
    assert names_in(work / "sub-01") == ["a", "owner.json", "z"]
    remove_abandoned(work)
    assert names_in(work) == []


def test_two_who_remove_at_once_both_end_well(work: Path) -> None:
    for number in range(40):
        write_text(leave(work / f"sub-{number}", **HERE, **LOCKED) / "file", "")
        write_text(leave(work / f".abandoned-{number}") / "scratch/file", "")
    removers = [subprocess.Popen([sys.executable, "-c", REMOVER, str(work)]) for _ in range(2)]
    assert [remover.wait() for remover in removers] == [0, 0]
    assert names_in(work) == []


ELSEWHERE, OURS = {"host": "elsewhere", "pid": 1}, {"identity": "id"}


@pytest.mark.parametrize(
    ("owner", "ours"),
    [
        *((text, True) for text in ("[]", "1", "{", '{"locked": 3, "host": 3, "identity": "id"}', "\xff", "a pipe")),
        *((json.dumps(OURS | own), True) for own in (HERE, LOCKED | ELSEWHERE, ELSEWHERE)),
        (json.dumps(ELSEWHERE | {"identity": "other"}), False),
    ],
)
def test_nothing_of_which_it_is_not_known_is_taken_for_abandoned(work: Path, owner: str, ours: bool) -> None:
    """Its file system may have no locks, its owner be on another host; the same results may remove it, but not those of
    the same path on that host, with which they share the tier."""
    mark = leave(work / "sub-01") / "owner.json"
    os.mkfifo(mark) if owner == "a pipe" else mark.write_bytes(owner.encode("latin-1"))
    remove_abandoned(work)
    assert names_in(work) == ["sub-01"]
    if not ours:
        with pytest.raises(BusyError, match="in use for other results"), work_folder(work / "sub-01", "id"):
            pass
    assert remove_leftovers(work, "id") == ["sub-01"] * ours


def test_to_remove_a_folder_changes_no_file_of_another_name(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The folder is nested too deep for Python, as one closed to its owner is: its folders are opened first."""
    folder, outside = tmp_path / "folder", tmp_path / "outside"
    folder.mkdir()
    outside.touch(mode=0o400)
    monkeypatch.chdir(folder)
    for _ in range(3000):
        os.mkdir("a")
        os.chdir("a")
    os.link(outside, "inside")
    monkeypatch.chdir(tmp_path)
    remove_tree(folder)
    assert not folder.exists()
    assert stat.S_IMODE(outside.stat().st_mode) == 0o400


def test_unfinished_files_are_removed_below_the_folders_that_are_entered(tmp_path: Path) -> None:
    """None that is hidden is; of the others those whose names match."""
    for folder in ("", "site", "sub-01", ".git"):
        write_text(tmp_path / folder / ".x.tsv.1f.partial", "")
    remove_partials(tmp_path)
    assert {file.parent.name for file in tmp_path.rglob(".x.tsv.*")} == {"sub-01", ".git"}


PUBLISHER = """
import pathlib, sys
from neurotier.analysis.staging import publish
publish(*map(pathlib.Path, sys.argv[1:]))
"""


def test_thousands_of_files_are_flushed_at_once(tmp_path: Path) -> None:
    """One by one, 100,000 files took minutes."""
    made, final, calls = (tmp_path / name for name in ("made", "final", "calls"))
    made.mkdir()
    for number in range(FLUSHED_EACH + 1):
        (made / str(number)).touch()
    strace = traced("-f", "-e", "trace=fsync,syncfs", "-o", str(calls))
    subprocess.run([*strace, sys.executable, "-c", PUBLISHER, str(made), str(final)], check=True)
    flushed = re.findall(r"(syncfs|fsync)\(", calls.read_text())
    assert flushed.count("syncfs") == 1
    assert flushed.count("fsync") < 10
    assert len(list(final.iterdir())) == FLUSHED_EACH + 1
