"""Healing finds whatever is not as it was written, and nothing else."""

from __future__ import annotations

import os
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest
from neurotier.analysis.staging import publish
from neurotier.core.errors import StateError
from neurotier.core.files import write_json, write_text
from neurotier.core.places import Places, file_of
from neurotier.core.tables import write_table
from neurotier.dataset.bids import read_image
from neurotier.dataset.index import Index
from neurotier.run.head import acquire
from neurotier.run.healing import (
    damage_lines,
    find_damage,
    note_outputs,
    remove,
    remove_partial,
)
from neurotier.run.participants import checksum_of
from support import t1w

MASK = "anat/sub-01_desc-brain_mask.nii.gz"


@pytest.fixture
def places(tmp_path: Path) -> Places:
    """A results folder of one participant with two files, one table and a page, as a run leaves it."""
    places = Places(*(tmp_path / name for name in ("results", "datasets", "work", "images", "image-store")))
    made = tmp_path / "made"
    (made / "anat").mkdir(parents=True)
    (made / MASK).write_bytes(b"mask" * 100)
    (made / "anat" / "link").symlink_to("sub-01_desc-brain_mask.nii.gz")
    _, kept = publish(made, places.analysed("sub-01", False))
    write_json(places.record("sub-01"), {"participant": "sub-01", "derivatives": kept})
    write_json(places.runs / "a.json", {"run": "a", "started_s": 1.0, "ended_s": 2.0})
    write_text(places.latest_run, "a\n")
    write_json(places.index / "dataset.json", {"source": "x"})
    image = replace(read_image(t1w("01"), ""), size_bytes=1, content="key")
    write_table(places.index / "images.tsv", "images", Index([image], {}).rows())
    write_text(places.index / "images.sha256", checksum_of((places.index / "images.tsv").read_bytes()))
    write_text(places.index / "skipped.tsv", "item\treason\n")
    write_json(places.index / "skipped.json", {"x": {"Description": "x"}})
    write_text(places.group / "group.tsv", "participant\nsub-01\n")
    write_json(places.group / "group.json", {"participant": {"Description": "x"}})
    write_text(places.results / "report.html", "<p>")
    write_text(places.campaign / "done.tsv", "position\n1\n")
    write_json(places.campaign / "runs" / "tmpfs" / "1" / "condition.json", {"valid": "valid"})
    write_text(places.campaign / "runs" / "tmpfs" / "1" / "profile" / "runs.tsv", "run\nr\n")
    for name in ("plan.json", "checked.json", "records/block_1.json"):
        write_json(places.bigbrain_run("spark/local/1/1") / name, {"x": 1})
    note_outputs(places)
    return places


def without_last_line(name: str) -> Callable[[Places], None]:
    def damage(places: Places) -> None:
        file = places.results / name
        file.write_text("".join(file.read_text().splitlines(keepends=True)[:-1]))

    return damage


def cut(*names: str) -> Callable[[Places], None]:
    """Cut files of the results folder short."""

    def damage(places: Places) -> None:
        for name in names:
            content = (places.results / name).read_bytes()
            (places.results / name).write_bytes(content[: len(content) // 2])

    return damage


def begin_another_run(places: Places) -> None:
    """What the start of a run does to the list of outputs."""
    places.outputs.unlink(missing_ok=True)
    write_json(places.runs / "b.json", {"run": "b", "started_s": 3.0})
    write_text(places.latest_run, "b\n")


def without(*names: str) -> Callable[[Places], None]:
    """Remove files of the results folder."""

    def damage(places: Places) -> None:
        for name in names:
            (places.results / name).unlink()

    return damage


def no_object(name: str) -> Callable[[Places], None]:
    """Have a file hold whole JSON that is no object."""
    return lambda places: write_text(places.results / name, "[1]")


RECORD = file_of(Path("profile/records"), "sub-01").as_posix()
DERIVATIVE = f"derivatives/sub-01/{MASK}"

BIGBRAIN = "bigbrain/runs/spark/local/1/1"

CASES = [
    (cut(f"{BIGBRAIN}/plan.json"), [f"{BIGBRAIN}/checked.json", f"{BIGBRAIN}/plan.json"]),
    (
        cut(f"{BIGBRAIN}/records/block_1.json"),
        [f"{BIGBRAIN}/{name}.json" for name in ("checked", "plan", "records/block_1")],
    ),
    (cut(DERIVATIVE), [RECORD]),
    (without(DERIVATIVE), [RECORD]),
    (without("derivatives/sub-01/anat/link"), [RECORD]),
    (cut(RECORD), [RECORD]),
    (cut("state/runs/a.json"), ["state/runs/a.json"]),
    (no_object("state/runs/a.json"), ["state/runs/a.json"]),
    (no_object("state/outputs.json"), ["group/group.json", "group/group.tsv", "report.html"]),
    (without_last_line("index/images.tsv"), ["index/images.tsv", "report.html"]),
    (cut("index/images.tsv"), ["index/images.tsv", "report.html"]),
    (cut("index/dataset.json"), ["index/dataset.json", "index/images.tsv", "report.html"]),
    (without("index/dataset.json"), ["index/images.tsv", "report.html"]),
    (cut("group/group.tsv"), ["group/group.tsv", "report.html"]),
    (without("group/group.tsv"), ["report.html"]),
    (without("group/group.json"), ["group/group.tsv", "report.html"]),
    (without("campaign/runs/tmpfs/1/condition.json"), ["campaign/done.tsv"]),
    (
        cut("campaign/runs/tmpfs/1/profile/runs.tsv"),
        ["campaign/done.tsv", *(f"campaign/runs/tmpfs/1/{name}" for name in ("condition.json", "profile/runs.tsv"))],
    ),
    (without("index/skipped.tsv"), ["index/images.tsv", "report.html"]),
    (cut("index/skipped.tsv"), ["index/images.tsv", "index/skipped.tsv", "report.html"]),
    (cut("index/skipped.json"), ["index/images.tsv", "index/skipped.json", "report.html"]),
    (cut("index/images.json"), ["index/images.json", "index/images.tsv", "report.html"]),
    (cut("report.html"), ["report.html"]),
    (cut("state/outputs.json"), ["group/group.json", "group/group.tsv", "report.html"]),
    (without("state/outputs.json"), ["group/group.json", "group/group.tsv", "report.html"]),
]


def files(places: Places) -> set[str]:
    """Everything in the results folder but derivatives."""
    found = (path.relative_to(places.results).as_posix() for path in places.results.rglob("*") if path.is_file())
    return {name for name in found if not name.startswith("derivatives")}


def test_nothing_is_found_where_all_is_well(places: Places) -> None:
    assert find_damage(places, by_app=False, whole={}) == []


@pytest.mark.parametrize(("damage", "removed"), CASES)
def test_damage_is_found_and_what_depends_on_it_goes(
    places: Places, damage: Callable[[Places], None], removed: list[str]
) -> None:
    damage(places)
    before = files(places)
    found = find_damage(places, by_app=False, whole={})
    assert bool(found) == bool(removed)
    assert all("\n" not in line for line in damage_lines(found, removed=True))
    remove(found)
    assert sorted(before - files(places)) == removed
    assert find_damage(places, by_app=False, whole={}) == [] or removed, (
        "nothing is left to heal but what Snakemake makes now"
    )


def test_a_run_that_is_on_says_nothing_of_its_outputs(places: Places) -> None:
    """It may be killed when it has written some of them anew."""
    begin_another_run(places)
    cut("group/group.tsv")(places)
    assert find_damage(places, by_app=False, whole={}) == []


@pytest.mark.parametrize("name", [RECORD, "state/runs/a.json", "index/images.tsv", "index/dataset.json"])
def test_a_fifo_in_place_of_a_file_is_damage_and_blocks_nobody(places: Places, name: str) -> None:
    (places.results / name).unlink()
    os.mkfifo(places.results / name)
    damages = find_damage(places, by_app=False, whole={})
    assert any(name in damage.reason for damage in damages)
    remove(damages)
    assert not (places.results / name).exists()


def test_a_fifo_in_place_of_the_lock_is_refused_and_blocks_nobody(places: Places) -> None:
    os.mkfifo(places.state / "lock")
    with pytest.raises(StateError, match="lock"):
        acquire(places)


def test_planted_lists_have_nothing_removed_that_is_not_of_the_results(places: Places, tmp_path: Path) -> None:
    victim = tmp_path / "victim"
    write_json(victim / "condition.json", {})
    (places.results / "linked").symlink_to(victim)
    (places.campaign / "runs" / "tmpfs" / "2").symlink_to(victim)
    theirs = [str(victim), str(victim / "condition.json")]
    (places.results / "circle").symlink_to("circle")
    names = [
        *theirs,
        "../victim",
        "circle/x",
        "nul\0/x",
        "linked/condition.json",
        "campaign/runs/tmpfs/2/condition.json",
        "figures/../../victim",
        "",
    ]
    write_json(places.outputs, {**dict.fromkeys(names, 1), "group/group.tsv": 1})
    (victim / "condition.json").write_text("theirs")
    damages = find_damage(places, by_app=False, whole={})
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
    remove_partial(places, [str(places.results / target)])
    gone = not succeeded and target != "all"
    assert (places.group / "group.tsv").exists() != gone
    assert (places.results / "report.html").exists() != gone
    assert places.record("sub-01").exists()
