"""Our own files: written whole, with the permissions they should have, each at a place of its own, and read once; and
those of a work folder, counted exactly before and after, and as far as walks see them in between."""

from __future__ import annotations

import errno
import os
import pickle
import re
import shutil
import socket
import stat
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import redirect_stderr
from pathlib import Path

import pytest
from neurotier.core import files
from neurotier.core.files import (
    append_line,
    atomic_path,
    exclusive,
    once_per_version,
    open_lock,
    remove_tree,
    suppress_unsupported,
    write_bytes,
    write_secret,
    write_text,
)
from neurotier.core.places import Places, dataset_name
from neurotier.meter.folders import FolderWatch, Removal, held_in
from neurotier.meter.traffic import growth
from support import PATIENCE_S, wait_for


@pytest.fixture(autouse=True)
def usual_umask() -> Iterator[None]:
    before = os.umask(0o022)
    yield
    os.umask(before)


def test_an_error_that_names_no_file_names_what_was_made(tmp_path: Path) -> None:
    with pytest.raises(OSError, match=f"No space left on device: '{tmp_path}/demo'"), atomic_path(tmp_path / "demo"):
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
    with pytest.raises(shutil.Error, match="No space left"), atomic_path(tmp_path / "demo"):
        raise shutil.Error([("a", "b", "No space left on device")])


def test_a_secret_is_this_user_s_alone_and_all_else_everybody_s_to_read(tmp_path: Path) -> None:
    for write, mode in ((write_text, 0o644), (append_line, 0o644), (write_secret, 0o600)):
        write(tmp_path / "a", "x")
        assert (tmp_path / "a").stat().st_mode & 0o7777 == mode
        (tmp_path / "a").unlink()


def test_a_file_for_which_there_is_no_room_is_named(tmp_path: Path, mount_tmpfs: Callable[..., Path]) -> None:
    """Also where the call that fails, as it writes or flushes, gives no name; none of it is left."""
    file = mount_tmpfs(tmp_path / "full", "size=64k") / "table.tsv"
    with pytest.raises(OSError, match=f"No space left on device: '{file}'$"):
        write_bytes(file, bytes(100_000))
    assert list(file.parent.iterdir()) == []


def test_a_folder_that_cannot_be_removed_is_named_with_the_reason(
    tmp_path: Path, mount_tmpfs: Callable[..., Path]
) -> None:
    mount_tmpfs(tmp_path / "left/mounted", "size=64k")
    with pytest.raises(OSError, match=f"busy: '{tmp_path}/left'$"):
        remove_tree(tmp_path / "left")


def test_whom_a_start_waits_for_is_said(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    """While it waits, on the terminal, even of a job: for ever, if a file server keeps the lock of a host that is down.
    When the lock is removed, it goes on."""
    lock = tmp_path / ".clone.lock"

    def hold() -> None:
        with (tmp_path / "log").open("a") as log, redirect_stderr(log), exclusive(tmp_path / "clone"):
            pass

    with ThreadPoolExecutor() as other:
        lock.write_text("an earlier process, killed, with a longer name, on another host")
        hold()
        with exclusive(tmp_path / "clone"):
            holder = lock.read_text()
            lock.write_text("\x1b[31m\n" + holder + "x" * 1000)
            waiting = other.submit(hold)
            said = wait_for(lambda: capfd.readouterr().err, within_s=30)
            assert not waiting.done()
            lock.unlink()
            waiting.result(PATIENCE_S)
    assert holder == f"process {os.getpid()} on {socket.gethostname()}" == lock.read_text()
    assert said.startswith(f"neurotier: {tmp_path}/clone: waiting for \\x1b[31m {holder}x")
    assert said.endswith(f"x; if that host is down, remove {lock}\n")
    assert said.count("x") < 150


def test_a_short_wait_is_not_said(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    """Jobs that place one image, and runs of one clone, often wait a moment: nothing is wrong."""

    def hold(_: int) -> None:
        with exclusive(tmp_path / "image"):
            time.sleep(0.05)

    with ThreadPoolExecutor(8) as others:
        assert len(list(others.map(hold, range(16)))) == 16
    assert capfd.readouterr().err == ""


def test_a_file_is_read_once_until_it_is_written_anew(tmp_path: Path) -> None:
    read = list[str]()

    @once_per_version
    def content(file: Path) -> str:
        read.append(file.name)
        return file.read_text()

    for name, text in (("a", "1"), ("b", "1"), ("a", "22")):
        write_text(tmp_path / name, text)
        assert [content(tmp_path / name) for _ in range(2)] == [text, text]
    assert read == ["a", "b", "a"]


def test_what_would_block_or_mislead_a_log_s_writer_gives_way_to_a_file(tmp_path: Path) -> None:
    log = tmp_path / "log"
    for make in (os.mkfifo, os.mkdir, lambda path: path.symlink_to("elsewhere")):
        make(log)
        write_text(log, "begun", durable=False)
        assert (stat.S_ISREG(log.lstat().st_mode), log.read_text()) == (True, "begun")
        log.unlink()
    assert not (tmp_path / "elsewhere").exists()
    log.mkdir()
    os.close(open_lock(log))
    assert log.is_file(), "nor a lock's"


def test_what_names_a_new_file_survives_a_power_cut(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    flushed = set[Path]()
    monkeypatch.setattr(files, "flush_folder", flushed.add)
    write_text(tmp_path / "a/b/c", "x")
    assert flushed == {tmp_path, tmp_path / "a", tmp_path / "a/b"}


def test_a_file_system_that_cannot_flush_is_excused_and_a_disk_that_fails_is_not() -> None:
    with suppress_unsupported():
        raise OSError(errno.EINVAL, "it cannot")
    with pytest.raises(OSError, match="it failed"), suppress_unsupported():
        raise OSError(errno.EIO, "it failed")


def make_files(folder: Path, count: int) -> None:
    """So many files of 1,000 bytes, in folders of 100."""
    for number in range(count):
        write_bytes(folder / f"{number // 100:03d}/{number}", bytes(1000), durable=False)


def walk_once(watch: FolderWatch) -> None:
    """Let the watch finish a walk, as the meter does: slice by slice."""
    before = watch.walks
    while watch.walks == before:
        watch.look()


def test_everything_that_takes_an_inode_is_counted(tmp_path: Path) -> None:
    make_files(tmp_path / "a", 250)
    (tmp_path / "link").symlink_to("/")
    (tmp_path / "empty").touch()
    os.mkfifo(tmp_path / "pipe")
    os.link(tmp_path / "empty", tmp_path / "again")
    with (tmp_path / "sparse").open("wb") as file:
        file.truncate(1 << 40)
    held = held_in(tmp_path)
    assert (held.files, held.folders, held.bytes) == (255, 4, 250_000 + (1 << 40))
    assert held.histogram() == [[0, 4, 0], [10, 250, 250_000], [41, 1, 1 << 40]]


def test_what_the_job_removes_itself_was_left_by_the_tool(tmp_path: Path) -> None:
    """Whether or not a walk has seen it: scratch folders of two images, one after the other."""
    for seen in (False, True):
        watch, removal = FolderWatch(tmp_path), Removal()
        for count in (300, 500):
            make_files(tmp_path / "scratch", count)
            if seen:
                walk_once(watch)
            held = held_in(tmp_path / "scratch")
            shutil.rmtree(tmp_path / "scratch")
            removal.take(held, 0.5, 0.25)
            if seen:
                walk_once(watch)
        flow = growth("disk", watch, pickle.loads(pickle.dumps(removal)))  # noqa: S301  # as from the phase's process
        assert (flow["made_files"], flow["left_files"], flow["peak_files"]) == (800, 800, 500)
        assert flow["removed_files"] == (0 if seen else None), "without a walk it is not known"
        assert (flow["removal_s"], flow["removal_cpu_s"]) == (1.0, 0.5)


def test_participants_of_sites_alike_work_apart_and_names_of_clones_are_safe() -> None:
    places = Places(*[Path("/tier")] * 5)
    work = [*map(places.work_of, ("A/B/sub-01", "A_B/sub-01", "A/sub-01", "sub-01"))]
    assert len({*work}) == 4
    assert {folder.parent for folder in work} == {places.work}
    assert re.fullmatch("id-[a-z0-9_-]+", dataset_name("ria+http://host/a store/$(id)#~alias@v1", None))
