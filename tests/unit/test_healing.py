"""Healing finds whatever is not as it was written, and nothing else."""

from __future__ import annotations

import errno
import os
from collections.abc import Callable
from pathlib import Path

import pytest
from configured import settings_at
from neurotier.analysis.staging import publish
from neurotier.core.errors import StateError
from neurotier.core.files import open_lock, read_json, remove_path, try_lock, write_json, write_text
from neurotier.core.places import Places, file_of
from neurotier.run.head import acquire, close_killed
from neurotier.run.healing import (
    Damage,
    correct_future_dates,
    damage_lines,
    find_damage,
    note_outputs,
    remove_partial,
)
from neurotier.run.jobs import keep_failure
from neurotier.run.participants import checksum_of
from pool_jobs import image, write_index

MASK = "anat/sub-01_desc-brain_mask.nii.gz"


BIGBRAIN = "bigbrain/runs/spark/local/1/1"

FILES = {
    "state/runs/a.json": '{"run": "a", "started_s": 1.0, "ended_s": 2.0}',
    "state/latest_run": "a\n",
    "index/dataset.json": '{"source": "x", "sites": {"": {}}}',
    "derivatives/dataset_description.json": "{}",
    "derivatives/mine/dataset_description.json": "{}",
    "derivatives/group/\x1b[31mall": "{}",
    "profile/steps/run_group_level.json": r'{"derivatives": {"group/\u001b[31mall": [2, "x"]}}',
    "profile/steps/obtain_image.json": '{"x": 1}',
    "index/image.json": '{"x": 1}',
    "index/skipped.tsv": "item\treason\n",
    "index/skipped.json": '{"x": {"Description": "x"}}',
    "group/group.tsv": "participant\nsub-01\n",
    "group/group.json": '{"participant": {"Description": "x"}}',
    "report.html": "<p>",
    "campaign/done.tsv": "position\n1\n",
    "campaign/runs/tmpfs/1/condition.json": '{"valid": "valid"}',
    "campaign/runs/tmpfs/1/profile/runs.tsv": "run\nr\n",
    **{f"{BIGBRAIN}/{name}.json": '{"x": 1}' for name in ("plan", "checked", "records/block_1")},
}

SELECTION = "# {}\n"


def outputs_of(file: Path) -> list[Path]:
    """As if a rule made each file but the record of a step in a job, and a table of images what was skipped."""
    if file.stem == "obtain_image":
        return []
    return [file.with_name("images.tsv") if file.stem == "skipped" else file]


@pytest.fixture
def places(tmp_path: Path) -> Places:
    """A results folder of one participant with two files, one table and a page, as a run leaves it."""
    places = Places.from_settings(settings_at(tmp_path))
    made = tmp_path / "made"
    write_text(made / MASK, "mask" * 100)
    (made / "anat/link").symlink_to("sub-01_desc-brain_mask.nii.gz")
    _, kept = publish(made, places.analysed("sub-01", False))
    write_json(places.record("sub-01"), {"participant": "sub-01", "derivatives": kept})
    write_index(places, [image("01")])
    write_text(places.index / "images.sha256", checksum_of((places.index / "images.tsv").read_bytes()) + SELECTION)
    for name, text in FILES.items():
        write_text(places.results / name, text)
    note_outputs(places, outputs_of)
    return places


def without_last_line(file: Path) -> None:
    file.write_text("".join(file.read_text().splitlines(keepends=True)[:-1]))


def cut(file: Path) -> None:
    """Cut a file short."""
    file.write_bytes(file.read_bytes()[: file.stat().st_size // 2])


def no_object(file: Path) -> None:
    """Have a file hold whole JSON that is no object."""
    file.write_text("[1]")


def a_fifo(file: Path) -> None:
    file.unlink()
    os.mkfifo(file)


RECORD = file_of(Path("profile/records"), "sub-01").as_posix()
DERIVATIVE = f"derivatives/sub-01/{MASK}"
BLOCK = f"{BIGBRAIN}/records/block_1.json"
RUN = "campaign/runs/tmpfs/1"
DAMAGES: dict[str, Callable[[Path], None]] = {
    "cut": cut,
    "lost": Path.unlink,
    "no object": no_object,
    "a FIFO": a_fifo,
    "a line less": without_last_line,
}

CASES = f"""
cut                   | {BIGBRAIN}/plan.json       | {BIGBRAIN}/checked.json {BIGBRAIN}/plan.json
cut                   | {BLOCK}                    | {BIGBRAIN}/checked.json {BIGBRAIN}/plan.json {BLOCK}
cut, lost             | {DERIVATIVE}               | {RECORD}
lost                  | derivatives/sub-01/anat/link | {RECORD}
cut, a FIFO           | {RECORD}                   | {RECORD}
cut, no object, a FIFO | state/runs/a.json         | state/runs/a.json
cut, no object, lost  | state/outputs.json         | group/group.json group/group.tsv report.html
cut, a line less, a FIFO | index/images.tsv        | index/images.tsv report.html
cut, a FIFO           | index/dataset.json         | index/dataset.json index/images.tsv report.html
lost                  | index/dataset.json         | index/images.tsv report.html
cut                   | profile/steps/obtain_image.json | index/image.json profile/steps/obtain_image.json
cut                   | profile/steps/run_group_level.json | profile/steps/run_group_level.json report.html
cut, lost             | derivatives/group/\x1b[31mall | profile/steps/run_group_level.json
lost                  | index/skipped.tsv          | index/images.tsv report.html
cut                   | index/skipped.tsv          | index/images.tsv index/skipped.tsv report.html
cut                   | index/skipped.json         | index/images.tsv index/skipped.json report.html
cut                   | index/images.json          | index/images.json index/images.tsv report.html
cut                   | group/group.tsv            | group/group.tsv report.html
lost                  | group/group.tsv            | report.html
lost                  | group/group.json           | group/group.tsv report.html
lost                  | {RUN}/condition.json       | campaign/done.tsv
cut                   | {RUN}/profile/runs.tsv     | campaign/done.tsv {RUN}/condition.json {RUN}/profile/runs.tsv
cut                   | report.html                | report.html
"""
"""What is done to a file, and what goes with it, in order of name."""

EACH = [
    (damage, name.strip(), removed.split())
    for damages, name, removed in (line.split("|") for line in CASES.strip().splitlines())
    for damage in damages.strip().split(", ")
]


def files(places: Places) -> set[str]:
    """Everything in the results folder but derivatives."""
    found = (path.relative_to(places.results).as_posix() for path in places.results.rglob("*") if not path.is_dir())
    return {name for name in found if not name.startswith("derivatives")}


def damages_in(places: Places) -> list[Damage]:
    return find_damage(places, outputs_of, by_app=False, selection=SELECTION, whole={})


def remove(damages: list[Damage]) -> None:
    for file in (file for damage in damages for file in damage.files):
        remove_path(file)


def test_readings_that_a_run_could_not_remove_go_at_the_next_start(places: Places) -> None:
    (places.runs / "a.json").write_text('{"run": "a", "row": {}}')
    places.readings("a").write_text("1 2 3 4 5\n")
    close_killed(places)
    assert [file.name for file in places.runs.iterdir()] == ["a.json"]


def test_who_was_stopped_on_a_node_after_the_end_of_the_run_has_not_failed(places: Places) -> None:
    write_json(places.runs / "a.json", {"run": "a", "row": None, "stopped_by": "SIGINT"})
    keep_failure(places, "sub-01", "analyze_participant", "stopped", 143, places.logs / "log")
    write_json(places.failure("sub-01"), read_json(places.failure("sub-01")) | {"run": "a"})
    close_killed(places)
    assert not places.failure("sub-01").exists()


def test_who_takes_the_lock_on_a_disk_that_is_full_has_it(places: Places, monkeypatch: pytest.MonkeyPatch) -> None:
    """What needs room there says so; the lock only lacks the name of this process."""

    def full(*_: object) -> int:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    with monkeypatch.context() as patched:
        patched.setattr(os, "write", full)
        acquire(places)
    assert try_lock(open_lock(places.lock)) == "another process"


def test_whatever_a_rule_makes_or_needs_that_is_from_the_future_is_from_now(places: Places, tmp_path: Path) -> None:
    """As where a clock was set back; a link may lead to a file of somebody else."""
    demo, theirs = places.datasets / "demo-0a1b2c3d.json", tmp_path / "theirs"
    write_text(demo, "{}")
    theirs.touch()
    (places.group / "link").symlink_to(theirs)
    places.mosaics.mkdir(parents=True)
    future_s, files = 2**31, (demo, places.mosaics, places.group / "group.tsv")
    for file in (*files, theirs):
        os.utime(file, (future_s, future_s))
    correct_future_dates(places)
    assert all(file.stat().st_mtime < future_s for file in files)
    assert theirs.stat().st_mtime == future_s


def test_what_another_pipeline_made_beside_the_derivatives_is_left_alone(places: Places) -> None:
    """Though a rule makes files of the same names for each site."""
    for folder in (places.derivatives, places.derivatives / "mine"):
        (folder / "dataset_description.json").write_text('{"Name": "other"}')
    assert [damage.files[0].parent for damage in damages_in(places)] == [places.derivatives]


@pytest.mark.parametrize(("damage", "name", "removed"), EACH)
def test_damage_is_found_and_what_depends_on_it_goes(
    places: Places, damage: str, name: str, removed: list[str]
) -> None:
    """And a FIFO blocks nobody."""
    DAMAGES[damage](places.results / name)
    before = files(places)
    found = damages_in(places)
    assert damage != "a FIFO" or any(name in each.reason for each in found)
    assert all(line.isprintable() for line in damage_lines(found, removed=True))
    remove(found)
    assert sorted(before - files(places)) == removed


def test_folders_in_the_place_of_the_list_and_of_what_takes_long_go(places: Places) -> None:
    """Snakemake takes a folder for the page that it makes there."""
    folders = [places.outputs, places.results / "staging.html", places.results / "staging/staging.tsv"]
    places.outputs.unlink()
    for folder in folders:
        folder.mkdir(parents=True)
    remove(damages_in(places))
    assert [folder.exists() for folder in folders] == [True, False, False]


def test_a_run_that_is_on_says_nothing_of_its_outputs(places: Places) -> None:
    """It may be killed when it has written some of them anew."""
    places.outputs.unlink()  # as the start of another run does
    write_json(places.runs / "b.json", {"run": "b", "started_s": 3.0})
    write_text(places.latest_run, "b\n")
    cut(places.group / "group.tsv")
    assert damages_in(places) == []


def test_a_fifo_in_place_of_the_lock_is_refused_and_blocks_nobody(places: Places) -> None:
    os.mkfifo(places.state / "lock")
    with pytest.raises(StateError, match="lock"):
        acquire(places)


def test_planted_lists_have_nothing_removed_that_is_not_of_the_results(places: Places, tmp_path: Path) -> None:
    victim = tmp_path / "victim"
    write_json(victim / "condition.json", {})
    (places.results / "linked").symlink_to(victim)
    (places.campaign / "runs/tmpfs/2").symlink_to(victim)
    (places.results / "circle").symlink_to("circle")
    names = [str(victim), str(victim / "condition.json"), "../victim", "circle/x", "nul\0/x", "linked/condition.json"]
    names += ["campaign/runs/tmpfs/2/condition.json", "figures/../../victim", ""]
    write_json(places.outputs, {**dict.fromkeys(names, 1), "group/group.tsv": 1})
    (victim / "condition.json").write_text("theirs")
    remove(damages_in(places))
    assert (victim / "condition.json").read_text() == "theirs"
    assert not (places.group / "group.tsv").exists(), "what the list rightly names is still made again"


@pytest.mark.parametrize(
    ("succeeded", "target"), [(False, "all"), (True, "group/group.tsv"), (False, "group/group.tsv")]
)
def test_a_page_of_a_part_is_made_again_with_its_tables_when_it_is_asked_for(
    places: Places, succeeded: bool, target: str
) -> None:
    write_json(places.runs / "a.json", {"run": "a", "started_s": 1.0, "succeeded": succeeded})
    remove_partial(places, outputs_of, [str(places.results / target)])
    gone = not succeeded and target != "all"
    assert (places.group / "group.tsv").exists() != gone
    assert (places.results / "report.html").exists() != gone
    assert places.record("sub-01").exists()
