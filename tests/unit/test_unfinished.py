"""Pages of a part: asked for by their path, they are made again, with their tables."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from batch_jobs import prepared_results
from neurotier.core.files import write_json
from neurotier.core.places import Places
from neurotier.run.jobs import load_settings
from neurotier.run.unfinished import forget_made, note_unfinished, remove_asked_for


@pytest.fixture
def places(tmp_path: Path) -> Places:
    """Results with a page of a part, and another page that is whole."""
    places = Places.from_settings(load_settings(prepared_results(tmp_path, ["01"])))
    for name in ("bigbrain.html", "probe.html", "bigbrain/runs.tsv", "bigbrain/figures/a.svg", "bigbrain/later.tsv"):
        (places.results / name).parent.mkdir(parents=True, exist_ok=True)
        (places.results / name).write_text(name)
    page, tables = places.results / "bigbrain.html", [places.bigbrain / "runs.tsv", places.bigbrain / "missing.tsv"]
    note_unfinished(places, page, tables, (places.bigbrain / "figures").glob("*"))
    return places


def make(places: Places, *names: str) -> None:
    """Write some files again, later."""
    for name in names:
        written_s = (places.results / name).stat().st_mtime
        (places.results / name).write_text("whole")
        os.utime(places.results / name, (written_s + 1, written_s + 1))


def there(places: Places) -> list[str]:
    return sorted(path.name for path in places.results.rglob("*") if path.suffix in (".html", ".svg", ".tsv"))


@pytest.mark.parametrize("name", ["bigbrain.html", "bigbrain/runs.tsv", "bigbrain/figures/a.svg"])
def test_what_is_asked_for_is_removed_with_all_that_belongs_to_it(
    places: Places, name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(places.results.parent)
    before = there(places)
    targets = ["bigbrain", f"{places.results.name}/{name}"]
    (line,) = remove_asked_for(places, targets, remove=False)
    assert line.endswith("bigbrain.html is of a run that failed; it would be made again, with its tables")
    assert there(places) == before
    assert len(remove_asked_for(places, targets, remove=True)) == 1
    assert there(places) == sorted({*before} - {"bigbrain.html", "runs.tsv", "a.svg"})
    assert remove_asked_for(places, targets, remove=True) == [], "it is forgotten"


def test_what_has_been_made_since_is_not_removed(places: Places) -> None:
    make(places, "bigbrain.html", "bigbrain/runs.tsv")
    before = there(places)
    assert remove_asked_for(places, [str(places.results / "bigbrain.html")], remove=True) == []
    assert there(places) == before


def test_the_note_goes_with_the_last_of_its_pages(places: Places) -> None:
    make(places, "bigbrain/runs.tsv")
    forget_made(places)
    assert places.unfinished.exists(), "its page is still that of a part"
    make(places, "bigbrain.html")
    forget_made(places)
    assert not places.unfinished.exists()
    forget_made(places)


def test_what_is_not_asked_for_stays(places: Places) -> None:
    before = there(places)
    assert remove_asked_for(places, ["bigbrain", "probe", str(places.results / "probe.html")], remove=True) == []
    assert there(places) == before


@pytest.mark.parametrize("noted", [{"bigbrain.html": 3}, {"bigbrain.html": {"x": None}}, ["bigbrain.html"], "{", None])
def test_a_damaged_note_is_passed_over(places: Places, noted: object) -> None:
    write_json(places.unfinished, noted)
    if noted == "{":
        places.unfinished.write_text("{")
    before = there(places)
    assert remove_asked_for(places, [str(places.results / "bigbrain.html")], remove=True) == []
    assert there(places) == before


def test_a_planted_note_removes_nothing_elsewhere(places: Places) -> None:
    """By a whole path, by one that leads upwards, or through a link in the results."""
    outside = places.results.parent / "outside"
    outside.mkdir()
    (places.results / "link").symlink_to(outside)
    for name in ("whole", "above", "linked"):
        (outside / name).write_text("mine")
    page, table = "bigbrain.html", "bigbrain/runs.tsv"
    names = [page, table, str(outside / "whole"), "../outside/above", "link/linked"]
    write_json(places.unfinished, {page: {name: (places.results / name).stat().st_mtime_ns for name in names}})
    asked = [str(places.results / page), str(outside / "whole")]
    assert len(remove_asked_for(places, asked, remove=True)) == 1
    assert not (places.results / table).exists()
    assert sorted(os.listdir(outside)) == ["above", "linked", "whole"]
