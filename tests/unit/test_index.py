"""The index: selection as BIDS people write it, and everything left out said."""

from __future__ import annotations

import dataclasses
import os
import re
import shutil
import time
from collections.abc import Sequence
from contextlib import nullcontext
from pathlib import Path
from typing import Any

import pytest
import yaml
from configured import settings_at
from neurotier.analysis.activity import CHOOSING
from neurotier.core.errors import InputError, ToolError
from neurotier.core.files import write_text
from neurotier.core.foreign import open_in_dataset
from neurotier.core.places import Places
from neurotier.core.settings import DatasetSettings
from neurotier.dataset.bids import Image
from neurotier.dataset.index import Index, changed_since, index_dataset, list_tree
from neurotier.dataset.source import Dataset, plain_sites
from neurotier.dataset.validation import validate
from neurotier.run.plan import Plan
from support import by_an_ordinary_user, committed, plain_dataset, quiet, t1w

SETTINGS = settings_at().dataset


def plain(folder: Path, *sites: str) -> Dataset:
    """A plain folder as a dataset, which has participants itself unless it has sites."""
    return Dataset("x", folder, "folder", {site: {} for site in sites or [""]}, {})


def index(folder: Path, suffixes: list[str] | None = None, sites: Sequence[str] = (), **filters: Any) -> Index:
    dataset = plain(folder, *(sites or plain_sites(folder, [])))
    return index_dataset(dataset, dataclasses.replace(SETTINGS, **filters), suffixes, quiet)


def indexed(found: Index) -> dict[str, list[Image]]:
    """The one image of each participant."""
    return {image.participant: [image] for image in found.images}


@pytest.fixture
def one(tmp_path: Path) -> Path:
    """A dataset of one participant."""
    return plain_dataset(tmp_path / "one", {t1w("01"): b""})


IMAGES = """
sub-01/ses-1/anat/sub-01_ses-1_run-1_T1w.nii.gz
sub-01/ses-1/anat/sub-01_ses-1_run-02_T1w.nii.gz
sub-01/ses-2/anat/sub-01_ses-2_T1w.nii
sub-02/anat/sub-02_acq-mprage_T1w.nii.gz
sub-02/anat/sub-02_acq-mprage_T1w.nii
sub-02/anat/sub-02_T2w.nii.gz
sub-02/anat/sub-02_part-phase_T1w.nii.gz
sub-02/anat/sub-02_desc-raw_T1w.nii.gz
sub-03/func/sub-03_task-rest_bold.nii.gz
derivatives/x/sub-01/anat/sub-01_T1w.nii.gz
"""


@pytest.fixture
def dataset(tmp_path: Path) -> Path:
    plain_dataset(tmp_path, dict.fromkeys(IMAGES.split(), b""))
    (tmp_path / "sub-05").symlink_to("sub-01")
    (tmp_path / "participants.tsv").write_text("\ufeffparticipant_id\nsub-01\nsub-04\n")  # as spreadsheets do
    return tmp_path


def test_a_name_in_a_clone_that_is_not_text_is_left_out_once(tmp_path: Path) -> None:
    """Git gives it otherwise, and it is not away for another run."""
    name = os.fsdecode(b"sub-01/anat/sub-01_acq-\xe9_T1w.nii.gz")
    found = index(committed(plain_dataset(tmp_path, {t1w("01"): b"", name: b""})))
    assert len(found.images) == 1
    assert list(found.skipped) == [repr(name)]


def test_a_file_that_is_gone_while_a_clone_is_listed_is_in_the_index(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """git-annex has it away for another run, and it is here again at once."""
    clone = committed(plain_dataset(tmp_path / "clone", dict.fromkeys(map(t1w, ("01", "02")), b"")))

    def listed(*given: Any) -> Any:
        away = (clone / t1w("01")).rename(tmp_path / "away")
        found = list_tree(*given)
        away.rename(clone / t1w("01"))
        return found

    monkeypatch.setattr("neurotier.dataset.index.list_tree", listed)
    assert [image.path for image in index(clone).images] == [t1w("01"), t1w("02")]


def test_a_folder_of_a_clone_that_is_a_link_out_of_it_is_not_given_to_an_app(one: Path) -> None:
    (one / "sub-01/ses-1").symlink_to("/nowhere")
    found = index(committed(one), [])
    assert [image.path for image in found.images] == [t1w("01")]
    assert list(found.skipped) == ["'sub-01/ses-1'"]


def test_images_and_what_is_left_out(dataset: Path) -> None:
    found = index(dataset)
    assert [image.path for image in found.images] == [
        "sub-01/ses-1/anat/sub-01_ses-1_run-02_T1w.nii.gz",
        "sub-01/ses-1/anat/sub-01_ses-1_run-1_T1w.nii.gz",
        "sub-01/ses-2/anat/sub-01_ses-2_T1w.nii",
        "sub-02/anat/sub-02_acq-mprage_T1w.nii",
    ]
    assert found.skipped == {
        "'sub-02/anat/sub-02_acq-mprage_T1w.nii.gz'": "the same image is there with another extension",
        "'sub-02/anat/sub-02_desc-raw_T1w.nii.gz'": "the entity desc- is of derivatives, not of raw data",
        "'sub-02/anat/sub-02_part-phase_T1w.nii.gz'": "part-phase is not a magnitude image; only those are analysed",
        "'sub-05'": "is a link to a folder that is listed already",
        "sub-03": "no T1w image",
        "sub-04": "in participants.tsv, but there is no folder",
    }


FOUND = "import sys, pathlib, test_index as t; i = t.index(pathlib.Path(sys.argv[1])); print(len(i.images), i.skipped)"


@pytest.mark.parametrize("first", ["", "import os, pathlib; pathlib.Path.is_symlink = os.path.islink; "])
def test_a_folder_that_may_not_be_entered_leaves_out_its_participant_alone(tmp_path: Path, first: str) -> None:
    """Whether it may be listed, as after ``chmod -R 644``, or a link leads there; the job of an image says why.

    From Python 3.14 on, ``Path.is_symlink`` is ``os.path.islink``, which raises nothing: tried with older ones, too.
    """
    folder = plain_dataset(tmp_path / "bids", dict.fromkeys(map(t1w, ("01", "02", "03")), b""))
    (folder / "sub-02").rename(folder / "code")
    (folder / "sub-02").symlink_to("code/anat")
    (folder / "code").chmod(0)
    (folder / t1w("03")).parent.chmod(0o644)
    found = by_an_ordinary_user(first + FOUND, folder)
    assert found == """2 {"'sub-02'": 'cannot be read: Permission denied'}\n"""


def test_a_link_through_a_circle_of_links_stops_nobody(tmp_path: Path) -> None:
    """Beside an image it is not looked at; an image behind one is listed, so that its job says why it fails."""
    folder = plain_dataset(tmp_path / "bids", dict.fromkeys(map(t1w, ("01", "02")), b""))
    (folder / "sub-01/anat/loop").symlink_to("loop")
    (folder / "sub-01/anat/notes.txt").symlink_to("loop/notes.txt")
    (folder / t1w("02")).unlink()
    (folder / t1w("02")).symlink_to("../../sub-01/anat/loop/T1w.nii.gz")
    found = index(folder)
    assert [image.path for image in found.images] == [t1w("01"), t1w("02")]
    assert found.skipped == {"'sub-01/anat/loop'": "is a link that leads in a circle"}
    with pytest.raises(InputError, match="is a link that leads in a circle"):
        open_in_dataset(folder, t1w("02"))


def test_why_the_validator_fails_is_said_and_not_where_in_it(tmp_path: Path) -> None:
    """As in a folder that may not be entered."""
    with pytest.raises(ToolError, match=r"failed: error: .*No such file or directory .*: .*'/\S+/gone'"):
        validate(tmp_path / "gone", "dataset")


def test_labels_that_are_too_long_or_differ_in_case_alone_are_skipped(tmp_path: Path) -> None:
    """For files of its name; and on some tiers the results of one would replace those of the other."""
    long = 230 * "a"
    plain_dataset(tmp_path, dict.fromkeys(map(t1w, ("a1", "A1", "b1", long)), b""))
    found = index(tmp_path)
    assert [image.participant for image in found.images] == ["sub-A1", "sub-b1"]
    assert found.skipped.pop("sub-a1") == "differs from sub-A1 in case alone"
    assert found.skipped
    assert all(long in item for item in found.skipped)


def test_a_sub_dataset_in_a_site_is_said_to_be_one(one: Path) -> None:
    (one / "sub-02").mkdir()
    for made, said in (
        (one, "no T1w image"),
        (one / ".gitmodules", "a sub-dataset in a sub-dataset: name that one as dataset.source"),
        (one / "sub-02/.gitmodules", "holds sub-datasets, which are not installed"),
    ):
        made.touch()
        assert index(one.parent, sites=["one"]).skipped == {"one/sub-02": said}


@pytest.mark.parametrize(
    ("text", "why"),
    [
        (
            'participant_id\tnote\nsub-01\t"tall\nsub-02\tx\n',
            "unexpected end of data (commas for tabs, a quotation mark?)",
        ),
        ("participant_id,age\nsub-01,30\nsub-02,31\n", "is not a table of participant_id"),
    ],
)
def test_participants_tsv_with_an_open_quote_or_commas_for_tabs_is_named(one: Path, text: str, why: str) -> None:
    """What comes after the quote would be part of one cell, and the participants there unknown."""
    (one / "participants.tsv").write_text(text)
    assert why in index(one).skipped.pop("'participants.tsv'")


def test_who_is_new_or_gone(tmp_path: Path) -> None:
    """Neither another file, nor who is not selected or was left out, nor sites that are away, count or do harm."""
    heads = [f"{site}/{t1w(label)}" for site in ("A", "B") for label in ("01", "02")]
    plain_dataset(tmp_path, dict.fromkeys(heads, b""))
    before = indexed(index(tmp_path, sites=["A", "B"]))
    before["C/sub-01"] = [before["A/sub-01"][0]._replace(participant="C/sub-01", site="C")]

    def changed(*participants: str, since_s: float = -60.0) -> list[str]:
        settings = dataclasses.replace(SETTINGS, participants=list(participants))
        return changed_since(plain(tmp_path, "A", "B", "C"), settings, None, before, time.time() + since_s)

    (tmp_path / "A/sub-01/anat/sub-01_T1w.json").write_text("{}")
    assert changed() == changed(since_s=60) == []
    plain_dataset(tmp_path, {f"A/{t1w('03')}": b""})
    (tmp_path / "A/sub-04_note.txt").touch()
    (tmp_path / "B/sub-02/ses-2/anat").mkdir(parents=True)
    assert changed(since_s=60) == [], "nothing is younger"
    os.utime(tmp_path / heads[2], (1, 1))  # as a copy may have
    assert changed() == changed(since_s=60) == ["A/sub-03", "B/sub-01"], "whether it is younger, or of another time"
    assert changed("01", "02") == ["B/sub-01"]
    shutil.copy(tmp_path / heads[3], tmp_path / "B/sub-02/ses-2/anat/sub-02_ses-2_T1w.nii.gz")
    assert changed() == ["A/sub-03", "B/sub-01", "B/sub-02"], "another session"
    shutil.rmtree(tmp_path / "A/sub-01")
    shutil.rmtree(tmp_path / "B/sub-01")
    assert changed("01", "02", since_s=60) == ["A/sub-01", "B/sub-01"], "named by the settings, and gone"


def test_a_link_that_leads_to_an_older_folder_has_changed_everyone(tmp_path: Path) -> None:
    """Whoever is analysed now gets the images of the other release: those of one file have another size or time."""
    for release in ("new", "old"):
        plain_dataset(tmp_path / release, {t1w("01"): b""})
    current = tmp_path / "current"
    current.symlink_to("new")
    before = indexed(index(current))
    assert changed_since(plain(current), SETTINGS, None, before, time.time() + 60) == []
    current.unlink()
    current.symlink_to("old")
    assert changed_since(plain(current), SETTINGS, None, before, time.time() + 60) == ["sub-01"]


def test_an_image_that_must_not_be_read_has_nobody_indexed_at_each_start(
    one: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Nothing was indexed of it that could be another now; a look at everyone would take minutes on a network tier."""
    (one / t1w("02")).parent.mkdir(parents=True)
    (one / t1w("02")).symlink_to(one / ".." / "outside.nii.gz")
    (one.parent / "outside.nii.gz").touch()
    before = indexed(index(one))
    monkeypatch.setattr("neurotier.dataset.index.index_dataset", lambda *_: pytest.fail("everyone was indexed"))
    assert changed_since(plain(one), SETTINGS, None, before, time.time() + 60) == []


@pytest.mark.parametrize(
    ("filters", "count"),
    [
        ("participants: [sub-01]", 3),
        ("participants: ['02', '01']", 4),
        ("sessions: [ses-1]", 2),
        ("runs: [2]", 1),
        ("runs: [run-01]", 1),
        ("{participants: ['01'], sessions: ['2']}", 1),
        ("participants: ['-sub-01']", 1),
        ("participants: ['01', '02', '-02']", 3),
        ("{participants: ['-02'], sessions: ['1']}", 2),
    ],
)
def test_filters(dataset: Path, filters: str, count: int) -> None:
    assert len(index(dataset, **yaml.safe_load(filters)).images) == count


SELECT_NOTHING = "source concurrent_gets get_attempts get_backoff_s drop validation ahead"


def test_the_dataset_is_indexed_again_if_a_key_that_selects_images_changes(tmp_path: Path) -> None:
    """A key is among the filters (``CHOOSING``), or is named here as one on which the index does not depend."""
    settings = settings_at(tmp_path, dataset={"source": "bids"})
    filters = Plan(settings, Places.from_settings(settings)).filters()
    assert {*filters, *SELECT_NOTHING.split()} == {*DatasetSettings.__annotations__}
    assert not filters.keys() & {*SELECT_NOTHING.split()}
    assert set(CHOOSING) <= filters.keys()


FILES = """
sub-01/sub-01_sessions.tsv
sub-01/ses-1/anat/sub-01_run-1_T1w.nii
sub-01/ses-1/fmap/sub-01_epi.nii
sub-01/ses-2/anat/sub-01_run-2_T1w.nii
sub-02/anat/sub-02_T1w.nii
sub-02/sub-02_sessions.tsv
"""


@pytest.mark.parametrize(
    ("filters", "left"),
    [
        ("sessions: ['1']", "run-1_T1w.nii epi.nii sessions.tsv"),
        ("runs: [2]", "epi.nii run-2_T1w.nii sessions.tsv"),
        ("{sessions: ['1'], runs: [1]}", "run-1_T1w.nii epi.nii sessions.tsv"),
    ],
)
def test_an_app_is_given_what_belongs_to_no_session_or_run(tmp_path: Path, filters: str, left: str) -> None:
    """And nobody who has but that, such as sub-02."""
    for name in FILES.split():
        write_text(tmp_path / name, "")
    found = index(tmp_path, [], **yaml.safe_load(filters)).images
    assert [image.path.partition("/sub-01_")[2] for image in found] == left.split()


@pytest.mark.parametrize(
    ("suffixes", "left"),
    [([], "meg.json .zgroup 0 .zarray a.meg4"), (["meg"], "meg.json a.meg4"), (["SPIM"], ".zgroup 0 .zarray")],
)
def test_a_file_that_is_a_folder_is_given_to_an_app_whole(tmp_path: Path, suffixes: list[str], left: str) -> None:
    """CTF's recordings and images in OME-ZARR, which nobody can read without its hidden files; no others are given."""
    zarr, files = (
        "01_run-1_SPIM.ome.zarr",
        "01_meg.json 01_run-1_meg.ds/a.meg4 01_run-1_meg.ds/.b 01_run-2_meg.ds/c.meg4",
    )
    for name in (*files.split(), *(f"{zarr}/{file}" for file in (".zgroup", "1/0", "1/.zarray", ".git/.zarray"))):
        write_text(tmp_path / f"sub-01/x/sub-{name}", "")
    write_text(tmp_path / "dataset_description.json", "{}")
    found = index(tmp_path, suffixes, runs=[1]).images
    assert {image.path.rpartition("/")[2].removeprefix("sub-01_") for image in found} == set(left.split())


def test_an_app_is_given_files_in_a_folder_that_is_named_like_its_session(tmp_path: Path) -> None:
    """BIDS has no such folders, and pybids finds what is in them."""
    path = "sub-01/sub-01_ses-1/anat/sub-01_ses-1_run-2_T1w.nii.gz"
    plain_dataset(tmp_path, {path: b""})
    assert [(image.path, image.bids_run) for image in index(tmp_path, ["T1w"]).images] == [(path, "2")]


@pytest.mark.parametrize(
    ("name", "text", "changes_an_app_s"),
    [
        ("dataset_description.json", '{"Name": "another"}', False),
        ("participants.tsv", "participant_id\tage\nsub-01\t20\n", False),
        ("task-rest_events.tsv", "onset\tduration\n1\t2\n", True),
        ("T1w.json", '{"EchoTime": 2}', True),
    ],
)
def test_a_sidecar_at_the_root_is_part_of_what_an_app_is_given(
    one: Path, name: str, text: str, changes_an_app_s: bool
) -> None:
    """And nothing to a tool, nor are descriptions to either."""
    (one / name).write_text(text)
    tool, app = index(one).images, index(one, []).images
    time.sleep(0.02)  # times of files have steps
    indexed_s = time.time()
    time.sleep(0.02)
    (one / name).write_text(f"{text}\n")
    assert (index(one).images != tool, index(one, []).images != app) == (False, changes_an_app_s)
    for suffixes, images, changed in ((None, tool, False), ([], app, changes_an_app_s)):
        assert changed_since(plain(one), SETTINGS, suffixes, {"sub-01": images}, indexed_s) == ["sub-01"] * changed


@pytest.mark.parametrize(
    ("filters", "line"),
    [
        ("participants: ['1']", "dataset.participants: the dataset has no sub-1; did you mean '01'?"),
        ("sessions: ['3']", "dataset.sessions: the dataset has no ses-3"),
        ("runs: [7]", "dataset.runs: the dataset has no run-7"),
        ("participants: ['03']", "dataset.source"),
        ("participants: ['-1']", "dataset.participants: the dataset has no sub-1; did you mean '01'?"),
        ("participants: ['-01', '-02']", "dataset.source"),
    ],
)
def test_filters_that_select_nothing_say_so(dataset: Path, filters: str, line: str) -> None:
    with pytest.raises(InputError, match=f"^{re.escape(line)}"):
        index(dataset, **yaml.safe_load(filters))


def test_a_session_of_a_dataset_without_sessions_is_said_so(one: Path) -> None:
    with pytest.raises(InputError, match=r"^dataset\.sessions: the dataset has no ses-1; leave it out$"):
        index(one, sessions=["1"])


def test_a_site_in_a_dataset_that_has_participants_itself_is_a_site_alone(tmp_path: Path) -> None:
    sites = ("", "NYU", "more/UPSM")
    for folder in sites:
        plain_dataset(tmp_path / folder, {t1w("01"): b""})
    found = index(tmp_path, sites=sites)
    assert [image.participant for image in found.images] == ["NYU/sub-01", "more/UPSM/sub-01", "sub-01"]
    assert found.skipped == {}


@pytest.mark.parametrize(("asked", "is_refused"), [([], False), (["-NYU"], False), (["one", "other", "-NYU"], True)])
def test_a_site_that_is_not_a_dataset_is_refused_if_it_was_named(one: Path, asked: list[str], is_refused: bool) -> None:
    (one.parent / "other").mkdir()
    settings = dataclasses.replace(SETTINGS, sites=asked)
    with pytest.raises(InputError, match=r"^'other': is not a BIDS dataset") if is_refused else nullcontext():
        found = index_dataset(plain(one.parent, "one", "other"), settings, None, quiet)
        assert found.skipped == {"other": "not a BIDS dataset"}


def test_what_only_the_validator_ignores_is_analysed(tmp_path: Path) -> None:
    """The README of the configuration says so."""
    plain_dataset(tmp_path, {t1w("01"): b""})
    (tmp_path / ".bidsignore").write_text("sub-01/\n")
    assert [image.participant for image in index(tmp_path).images] == ["sub-01"]


def test_a_folder_without_t1w_images_says_what_it_holds(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="is not a BIDS dataset"):
        index(tmp_path)
    plain_dataset(tmp_path, {"sub-01/func/sub-01_task-rest_bold.nii.gz": b""})
    with pytest.raises(InputError, match="holds no T1w image; skipped sub-01: no T1w image"):
        index(tmp_path)
