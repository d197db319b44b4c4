"""Files of a work folder: counted exactly before and after, and as far as walks see them in between."""

from __future__ import annotations

import os
import pickle
import shutil
from pathlib import Path

from neurotier.core.files import write_bytes
from neurotier.meter.folders import FolderWatch, Removal, held_in
from neurotier.meter.traffic import growth


def make_files(folder: Path, count: int, size_bytes: int = 10) -> None:
    """So many files of a size, in folders of 100."""
    for number in range(count):
        write_bytes(folder / f"{number // 100:03d}/{number}", bytes(size_bytes), durable=False)


def walk_once(watch: FolderWatch) -> None:
    """Let the watch finish a walk, as the meter does: slice by slice."""
    before = watch.walks
    while watch.walks == before:
        watch.look()


def test_everything_that_takes_an_inode_is_counted(tmp_path: Path) -> None:
    make_files(tmp_path / "a", 250, 1000)
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
        assert flow["removed_files"] == (0 if seen else None), "without a walk nobody knows"
        assert (flow["removal_s"], flow["removal_cpu_s"]) == (1.0, 0.5)
