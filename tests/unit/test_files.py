"""Our own files: written whole, with the permissions they should have, and read once."""

from __future__ import annotations

import errno
import os
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from neurotier.core.files import (
    clear_log,
    once_per_version,
    suppress_unsupported,
    write_bytes,
    write_secret,
    write_text,
)


@pytest.fixture(autouse=True)
def usual_umask() -> Iterator[None]:
    before = os.umask(0o022)
    yield
    os.umask(before)


def test_a_secret_is_this_user_s_alone_and_all_else_everybody_s_to_read(tmp_path: Path) -> None:
    for write, mode in ((write_text, 0o644), (write_secret, 0o600)):
        write(tmp_path / "a", "x")
        assert (tmp_path / "a").stat().st_mode & 0o7777 == mode


def test_a_file_for_which_there_is_no_room_is_named(tmp_path: Path, mount_tmpfs: Callable[..., Path]) -> None:
    """Also where the call that fails, as it writes or flushes, knows of no name; none of it is left."""
    file = mount_tmpfs(tmp_path / "full", "size=64k") / "table.tsv"
    with pytest.raises(OSError, match=f"No space left on device: '{file}'$"):
        write_bytes(file, bytes(100_000))
    assert list(file.parent.iterdir()) == []


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


def test_what_would_block_or_mislead_a_log_s_writer_goes_and_a_log_stays(tmp_path: Path) -> None:
    log = tmp_path / "log"
    for make in (os.mkfifo, os.mkdir, lambda path: path.symlink_to("elsewhere")):
        make(log)
        clear_log(log)
        assert not os.path.lexists(log)
    log.write_text("kept")
    clear_log(log)
    assert log.read_text() == "kept"


def test_a_disk_that_fails_is_no_file_system_that_cannot_flush() -> None:
    with suppress_unsupported():
        raise OSError(errno.EINVAL, "it cannot")
    with pytest.raises(OSError, match="it failed"), suppress_unsupported():
        raise OSError(errno.EIO, "it failed")
