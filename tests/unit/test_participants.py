"""What is prepared for each participant is what the index says, and is made again where it was lost or damaged."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

import pytest
from batch_jobs import prepared_results
from neurotier.core.errors import InputError
from neurotier.core.places import Places
from neurotier.core.tables import read_table, write_table
from neurotier.run import participants
from neurotier.run.jobs import load_settings
from neurotier.run.participants import by_participant, images_of, prepare_all, restore_prepared, selected_by


@pytest.fixture
def places(tmp_path: Path) -> Places:
    return Places.from_settings(load_settings(prepared_results(tmp_path, ["01", "02"], others=3)))


def pipe_for(file: Path) -> None:
    """Put a FIFO in place of a file."""
    file.unlink()
    os.mkfifo(file)


def test_no_job_reads_the_index_of_everyone(places: Places, monkeypatch: pytest.MonkeyPatch) -> None:
    expected = selected_by(places.index / "images.tsv")["sub-01"]
    (places.index / "images.tsv").unlink()
    monkeypatch.setattr(participants, "known", {})
    assert images_of(places, "sub-01") == expected


def test_the_index_is_read_once_per_version(places: Places, monkeypatch: pytest.MonkeyPatch) -> None:
    table, read = places.index / "images.tsv", participants.read_index
    reads: list[Path] = []

    def noting(file: Path) -> participants.Selected:
        reads.append(file)
        return read(file)

    monkeypatch.setattr(participants, "read_index", noting)
    monkeypatch.setattr(participants, "known", {})
    assert len(selected_by(table)) == len(selected_by(table)) == 5
    assert len(reads) == 1
    write_table(table, "images", read_table(table, "images")[:3])
    assert len(selected_by(table)) == 3


@pytest.mark.parametrize(
    "spoil",
    [
        Path.unlink,
        lambda file: file.write_text(""),
        lambda file: file.write_bytes(file.read_bytes()[:50]),
        lambda file: file.write_text("[]"),
        lambda file: file.write_text('{"participant": "sub-02", "images": [{}]}'),
        pipe_for,
        lambda file: (file.unlink(), file.mkdir()),
    ],
    ids=["lost", "empty", "cut short", "other", "another's", "FIFO", "folder"],
)
def test_a_file_that_was_lost_or_damaged_is_made_again(places: Places, spoil: Callable[[Path], object]) -> None:
    expected, others = images_of(places, "sub-01"), places.prepared("sub-02").read_bytes()
    written = places.prepared("sub-01").read_bytes()
    spoil(places.prepared("sub-01"))
    assert images_of(places, "sub-01") == expected
    assert places.prepared("sub-01").read_bytes() == written
    assert places.prepared("sub-02").read_bytes() == others


@pytest.mark.parametrize(
    "spoil",
    [
        lambda places: os.rename(places.participants, places.state / "elsewhere"),
        lambda places: places.prepared("sub-02").unlink(),
        lambda places: pipe_for(places.prepared("sub-02")),
        lambda places: (places.participants / "count.json").write_text("{"),
        lambda places: (places.participants / "count.json").unlink(),
    ],
    ids=["all", "one", "FIFO", "count damaged", "count lost"],
)
def test_a_run_starts_with_all_prepared(places: Places, spoil: Callable[[Places], object]) -> None:
    written = {file: file.read_bytes() for file in places.participants.rglob("*.json")}
    made_ns = places.participants.stat().st_ctime_ns
    restore_prepared(places)
    assert places.participants.stat().st_ctime_ns == made_ns, "nothing was lost"
    spoil(places)
    restore_prepared(places)
    assert {file: file.read_bytes() for file in places.participants.rglob("*.json")} == written
    assert len(written) == 5 + 1


def test_an_index_made_again_leaves_nobody_of_the_old_one(places: Places) -> None:
    selected = selected_by(places.index / "images.tsv")
    (image,) = selected["sub-02"]
    prepare_all(places, by_participant([image]))
    assert [file.name for file in places.participants.rglob("sub-*.json")] == ["sub-02.json"]
    assert not list(places.state.glob(".*"))


def test_who_is_not_selected_is_refused(places: Places) -> None:
    with pytest.raises(InputError, match="no such participant is selected"):
        images_of(places, "sub-99")
