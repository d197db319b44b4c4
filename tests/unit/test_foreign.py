"""Safe opening: what is read and copied of a folder that somebody else made, to the byte of each limit."""

from __future__ import annotations

import fcntl
import os
import signal
import threading
from pathlib import Path, PurePath

import pytest
from neurotier.core.files import write_text
from neurotier.core.foreign import (
    DEEPEST,
    ForeignError,
    copy_file,
    copy_tree,
    entries_below,
    open_file,
    read_named,
    read_text,
    same_content,
)


@pytest.fixture
def foreign(tmp_path: Path) -> Path:
    """Two files of 3 bytes, one of them in a folder, and a link to the other."""
    folder = tmp_path / "foreign"
    write_text(folder / "a", "one")
    write_text(folder / "sub/b", "two")
    (folder / "link").symlink_to("a")
    return folder


@pytest.mark.parametrize(
    ("below", "why"),
    [
        ("link", "is a link, and only files are read"),
        ("sub", "is a folder, and only files are read"),
        ("fifo", "is a FIFO, and only files are read"),
        ("behind/b", "lies behind a link"),
        ("../foreign/a", "lies behind a link"),
        ("{foreign}/a", "lies behind a link"),
    ],
)
def test_only_files_that_no_link_leads_to_are_opened(foreign: Path, below: str, why: str) -> None:
    os.mkfifo(foreign / "fifo")
    (foreign / "behind").symlink_to("sub")
    with pytest.raises(ForeignError, match=why):
        open_file(foreign, below.format(foreign=foreign))


def test_what_cannot_be_opened_is_named_by_its_whole_path(foreign: Path) -> None:
    with pytest.raises(FileNotFoundError, match=f"'{foreign}/sub/c'"):
        open_file(foreign, "sub/c")


def test_file_that_a_file_server_has_leased_is_waited_for(foreign: Path) -> None:
    lease, asked = os.open(foreign / "a", os.O_RDWR), threading.Event()

    def give_up(*_: object) -> None:
        fcntl.fcntl(lease, fcntl.F_SETLEASE, fcntl.F_UNLCK)
        asked.set()

    before = signal.signal(signal.SIGIO, give_up)
    try:
        fcntl.fcntl(lease, fcntl.F_SETLEASE, fcntl.F_WRLCK)
        with open_file(foreign, "a") as file:
            assert file.read() == b"one"
        assert asked.is_set(), "there was no lease"
    finally:
        os.close(lease)
        signal.signal(signal.SIGIO, before)


def test_no_more_is_read_than_is_allowed(foreign: Path) -> None:
    assert (read_text(foreign, "a", 2), read_text(foreign, "a", 2, from_end=True)) == ("on", "ne")
    assert read_text(foreign, "a", 9, from_end=True) == "one"
    assert read_named(foreign / "link", 3, "a word") == b"one"
    with pytest.raises(ForeignError, match="is larger than a word"):
        read_named(foreign / "link", 2, "a word")


def test_a_copy_of_a_file_ends_at_its_limit(foreign: Path, tmp_path: Path) -> None:
    with open_file(foreign, "a") as file:
        assert copy_file(file, tmp_path / "copy", 3, 0o600, write_back=True) == 3
        with pytest.raises(ForeignError, match="holds more than the 2 bytes"):
            copy_file(file, tmp_path / "other", 2)
    assert ((tmp_path / "copy").read_bytes(), (tmp_path / "copy").stat().st_mode & 0o777) == (b"one", 0o600)
    assert not (tmp_path / "other").exists()


def test_a_folder_is_copied_up_to_its_limits(foreign: Path, tmp_path: Path) -> None:
    """A link counts as a file, with as many bytes as it has letters."""
    assert copy_tree(foreign, tmp_path / "all", limit_bytes=7, limit_files=3) == (7, 3)
    assert (tmp_path / "all/a").stat().st_mode & 0o7777 == (foreign / "a").stat().st_mode & 0o7777
    assert all(same_content(foreign, tmp_path / "all", PurePath(path)) for path in ("a", "link", "sub/b"))
    for size_bytes, files in ((6, 3), (7, 2)):
        with pytest.raises(ForeignError, match="is more than"):
            copy_tree(foreign, tmp_path / str(files), limit_bytes=size_bytes, limit_files=files)


def test_nothing_is_copied_over_or_through_a_link(foreign: Path, tmp_path: Path) -> None:
    target, kept = tmp_path / "target", list[PurePath]()
    (target / "elsewhere").mkdir(parents=True)
    (target / "a").write_bytes(b"own")
    with pytest.raises(ForeignError, match=r"^a: is there already"):
        copy_tree(foreign, target)
    (target / "sub").symlink_to("elsewhere")
    with pytest.raises(ForeignError, match=r"^sub/b: lies below 'sub', which is a link"):
        copy_tree(foreign, target, lambda entry: kept.append(entry.path))
    assert (kept, (target / "a").read_bytes()) == ([PurePath("a")], b"own")
    assert not (target / "elsewhere/b").exists()
    assert not same_content(foreign, target, PurePath("a"))


def test_folders_that_vanish_or_are_nested_too_deep_are_errors(foreign: Path) -> None:
    found = entries_below(foreign)
    assert next(found).path == PurePath("a")
    (foreign / "sub").rename(foreign / "other")
    with pytest.raises(FileNotFoundError):
        list(found)
    deep = foreign.joinpath(*["d"] * DEEPEST)
    deep.mkdir(parents=True)
    assert len(list(entries_below(foreign))) == 3
    (deep / "d").mkdir()
    with pytest.raises(ForeignError, match=f"nested more than {DEEPEST} deep"):
        list(entries_below(foreign))
