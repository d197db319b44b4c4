"""Healing finds whatever is not as it was written, and nothing else."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

import pytest
from configured import settings_at
from neurotier.analysis.staging import publish
from neurotier.core.errors import StateError
from neurotier.core.files import write_json, write_text
from neurotier.core.places import Places, file_of
from neurotier.run.head import acquire, close_killed
from neurotier.run.healing import (
    damage_lines,
    find_damage,
    note_outputs,
    remove,
    remove_partial,
)
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


def outputs_of(file: Path) -> list[Path]:
    """As if a rule made each file, and a table of images what was skipped."""
    return [file.with_name("images.tsv") if file.stem == "skipped" else file]


@pytest.fixture
def places(tmp_path: Path) -> Places:
    """A results folder of one participant with two files, one table and a page, as a run leaves it."""
    places = Places.from_settings(settings_at(tmp_path))
    made = tmp_path / "made"
    (made / "anat").mkdir(parents=True)
    (made / MASK).write_bytes(b"mask" * 100)
    (made / "anat" / "link").symlink_to("sub-01_desc-brain_mask.nii.gz")
    _, kept = publish(made, places.analysed("sub-01", False))
    write_json(places.record("sub-01"), {"participant": "sub-01", "derivatives": kept})
    write_index(places, [image("01")])
    write_text(places.index / "images.sha256", checksum_of((places.index / "images.tsv").read_bytes()))
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
DONE = "campaign/done.tsv"
GROUP = ["group/group.json", "group/group.tsv", "report.html"]

CASES = [
    (cut, f"{BIGBRAIN}/plan.json", [f"{BIGBRAIN}/checked.json", f"{BIGBRAIN}/plan.json"]),
    (
        cut,
        f"{BIGBRAIN}/records/block_1.json",
        [f"{BIGBRAIN}/{name}.json" for name in ("checked", "plan", "records/block_1")],
    ),
    *((damage, DERIVATIVE, [RECORD]) for damage in (cut, Path.unlink)),
    (Path.unlink, "derivatives/sub-01/anat/link", [RECORD]),
    *((damage, RECORD, [RECORD]) for damage in (cut, a_fifo)),
    *((damage, "state/runs/a.json", ["state/runs/a.json"]) for damage in (cut, no_object, a_fifo)),
    *((damage, "state/outputs.json", GROUP) for damage in (cut, no_object, Path.unlink)),
    *((damage, "index/images.tsv", ["index/images.tsv", "report.html"]) for damage in (cut, without_last_line, a_fifo)),
    *(
        (damage, "index/dataset.json", ["index/dataset.json", "index/images.tsv", "report.html"])
        for damage in (cut, a_fifo)
    ),
    *((Path.unlink, f"index/{name}", ["index/images.tsv", "report.html"]) for name in ("dataset.json", "skipped.tsv")),
    *(
        (cut, f"index/{name}", sorted([f"index/{name}", "index/images.tsv", "report.html"]))
        for name in ("skipped.tsv", "skipped.json", "images.json")
    ),
    (cut, "group/group.tsv", GROUP[1:]),
    (Path.unlink, "group/group.tsv", GROUP[2:]),
    (Path.unlink, "group/group.json", GROUP[1:]),
    (Path.unlink, "campaign/runs/tmpfs/1/condition.json", [DONE]),
    (
        cut,
        "campaign/runs/tmpfs/1/profile/runs.tsv",
        [DONE, *(f"campaign/runs/tmpfs/1/{name}" for name in ("condition.json", "profile/runs.tsv"))],
    ),
    (cut, "report.html", ["report.html"]),
]


def files(places: Places) -> set[str]:
    """Everything in the results folder but derivatives."""
    found = (path.relative_to(places.results).as_posix() for path in places.results.rglob("*") if not path.is_dir())
    return {name for name in found if not name.startswith("derivatives")}


def test_nothing_is_found_where_all_is_well(places: Places) -> None:
    assert find_damage(places, outputs_of, by_app=False, whole={}) == []


def test_readings_that_a_run_could_not_remove_go_at_the_next_start(places: Places) -> None:
    (places.runs / "a.json").write_text('{"run": "a", "row": {}}')
    places.readings("a").write_text("1 2 3 4 5\n")
    close_killed(places)
    assert [file.name for file in places.runs.iterdir()] == ["a.json"]


def test_what_another_pipeline_made_beside_the_derivatives_is_left_alone(places: Places) -> None:
    """Though a rule makes files of the same names for each site."""
    for folder in (places.derivatives, places.derivatives / "mine"):
        (folder / "dataset_description.json").write_text('{"Name": "other"}')
    damages = find_damage(places, outputs_of, by_app=False, whole={})
    assert [damage.files[0].parent for damage in damages] == [places.derivatives]


@pytest.mark.parametrize(("damage", "name", "removed"), CASES)
def test_damage_is_found_and_what_depends_on_it_goes(
    places: Places, damage: Callable[[Path], None], name: str, removed: list[str]
) -> None:
    """And a FIFO blocks nobody."""
    damage(places.results / name)
    before = files(places)
    found = find_damage(places, outputs_of, by_app=False, whole={})
    assert damage != a_fifo or any(name in each.reason for each in found)
    assert all("\n" not in line for line in damage_lines(found, removed=True))
    remove(found)
    assert sorted(before - files(places)) == removed


def test_a_run_that_is_on_says_nothing_of_its_outputs(places: Places) -> None:
    """It may be killed when it has written some of them anew."""
    places.outputs.unlink()  # as the start of another run does
    write_json(places.runs / "b.json", {"run": "b", "started_s": 3.0})
    write_text(places.latest_run, "b\n")
    cut(places.group / "group.tsv")
    assert find_damage(places, outputs_of, by_app=False, whole={}) == []


def test_a_fifo_in_place_of_the_lock_is_refused_and_blocks_nobody(places: Places) -> None:
    os.mkfifo(places.state / "lock")
    with pytest.raises(StateError, match="lock"):
        acquire(places)


def test_planted_lists_have_nothing_removed_that_is_not_of_the_results(places: Places, tmp_path: Path) -> None:
    victim = tmp_path / "victim"
    write_json(victim / "condition.json", {})
    (places.results / "linked").symlink_to(victim)
    (places.campaign / "runs" / "tmpfs" / "2").symlink_to(victim)
    (places.results / "circle").symlink_to("circle")
    names = [str(victim), str(victim / "condition.json"), "../victim", "circle/x", "nul\0/x", "linked/condition.json"]
    names += ["campaign/runs/tmpfs/2/condition.json", "figures/../../victim", ""]
    write_json(places.outputs, {**dict.fromkeys(names, 1), "group/group.tsv": 1})
    (victim / "condition.json").write_text("theirs")
    damages = find_damage(places, outputs_of, by_app=False, whole={})
    remove(damages)
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
