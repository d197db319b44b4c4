"""Who shares a job: decided from what is there, kept while it holds, and never a reason to analyse anyone twice."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from neurotier.core.files import write_json
from neurotier.core.places import Places
from neurotier.core.settings import Settings
from neurotier.dataset.bids import Image
from neurotier.run.batches import (
    SHORT_S,
    Batches,
    Made,
    Wanted,
    decide,
    decided_analysis,
    divided,
    key_of,
    read_batches,
    set_apart,
    size_for,
)

WANTED = Wanted("analysis", "noop", "1", None)


def image(participant: str, size_bytes: int = 1000, content: str = "key") -> Image:
    label = participant.removeprefix("sub-")
    return Image(participant, "", label, "", "", f"{participant}/{label}.nii.gz", size_bytes, content)


def everyone(count: int, **changed: Any) -> dict[str, list[Image]]:
    return {f"sub-{number:02d}": [image(f"sub-{number:02d}", **changed)] for number in range(count)}


def as_wanted(names: list[str], selected: dict[str, list[Image]], **changed: Any) -> dict[str, Made]:
    """What whole records of some say."""
    made = {name: Made(key_of("analysis", selected[name]), "noop", "1", None, "earlier", 1) for name in names}
    return {name: replace(each, **changed) for name, each in made.items()}


@pytest.fixture
def places(tmp_path: Path) -> Places:
    return Places(*(tmp_path / name for name in ("results", "datasets", "work", "images", "store")))


def by(size: int) -> Callable[[Mapping[str, Sequence[Image]]], int]:
    """So many participants share a job, whoever they are."""
    return lambda _: size


def finish(places: Places, batches: Batches, *numbers: str) -> None:
    for number in numbers:
        write_json(places.batch(number), {"participants": batches[number], "failed": {}})


def missing_in(places: Places, batches: Batches) -> list[str]:
    """Who would be analysed: those in batches without a marker."""
    return sorted(name for number, of in batches.items() if not places.batch(number).exists() for name in of)


def test_batches_are_as_few_as_can_be_and_alike() -> None:
    for count, size, lengths in ((700, 16, {15, 16}), (17, 16, {8, 9}), (3, 5, {3}), (0, 5, set())):
        batches = divided([str(number) for number in range(count)], size)
        assert len(batches) == -(-count // size)
        assert {len(batch) for batch in batches} == lengths
        assert sorted(name for batch in batches for name in batch) == sorted(map(str, range(count)))


def test_nobody_starts_late_who_takes_long(places: Places) -> None:
    selected = {f"sub-{number:02d}": [image(f"sub-{number:02d}", 1000 * number)] for number in range(6)}
    batches = decide(places, selected, {}, WANTED, by(2))
    assert [of[0] for of in batches.values()] == ["sub-05", "sub-04", "sub-03"]


def test_a_second_start_decides_the_same(places: Places) -> None:
    selected = everyone(5)
    first = decide(places, selected, {}, WANTED, by(2))
    assert decide(places, selected, {}, WANTED, by(2)) == first == read_batches(places)
    finish(places, first, *first)
    before = places.batches_file.stat().st_mtime_ns
    assert decide(places, selected, as_wanted(list(selected), selected), WANTED, by(2)) == first
    assert places.batches_file.stat().st_mtime_ns == before


def test_only_the_missing_are_divided_anew(places: Places) -> None:
    selected = everyone(40)
    first = decide(places, selected, {}, WANTED, by(16))
    finish(places, first, "0")
    done = [*first["0"], *first["1"][:10], *first["2"][:1]]
    left = sorted(set(selected) - set(done))
    second = decide(places, selected, as_wanted(done, selected), WANTED, by(16))
    assert second["0"] == first["0"]
    assert missing_in(places, second) == left
    assert sum(not places.batch(number).exists() for number in second) == -(-len(left) // 16)
    assert sorted(name for of in second.values() for name in of) == sorted(selected)


def test_what_followed_the_done_is_not_done_again(places: Places) -> None:
    """A batch of those who are done is as old as their records, but no older than what their jobs waited for."""
    selected = everyone(3)
    first = decide(places, selected, {}, WANTED, by(3))
    made = as_wanted(["sub-00", "sub-01"], selected, time_ns=5_000_000_000)
    (number,) = (number for number, of in decide(places, selected, made, WANTED, by(3)).items() if "sub-00" in of)
    assert number not in first
    assert places.batch(number).stat().st_mtime_ns == 5_000_000_000
    write_json(places.index / "tool.json", {"name": "noop", "version": "1"})
    (places.batches_file).unlink()
    (number,) = (number for number, of in decide(places, selected, made, WANTED, by(3)).items() if "sub-00" in of)
    assert places.batch(number).stat().st_mtime_ns == (places.index / "tool.json").stat().st_mtime_ns


@pytest.mark.parametrize(
    ("changed", "again"),
    [
        ({}, False),
        ({"analysis": "00000000"}, True),
        ({"version": "0.9"}, True),
        ({"tool": "bet"}, True),
        ({"container": "sha256:0"}, True),
    ],
)
def test_who_was_analysed_otherwise_is_analysed_again(places: Places, changed: dict[str, Any], again: bool) -> None:
    selected = everyone(2)
    finish(places, decide(places, selected, {}, WANTED, by(2)), "0")
    made = as_wanted(["sub-00"], selected) | as_wanted(["sub-01"], selected, **changed)
    assert missing_in(places, decide(places, selected, made, WANTED, by(2))) == (["sub-01"] if again else [])


def test_other_images_are_analysed_and_those_no_more_selected_are_not(places: Places) -> None:
    selected = everyone(3)
    made = as_wanted(list(selected), selected)
    finish(places, decide(places, selected, made, WANTED, by(3)), "0")
    selected["sub-01"] = [image("sub-01", content="other")]
    del selected["sub-02"]
    batches = decide(places, selected, made, WANTED, by(3))
    assert missing_in(places, batches) == ["sub-01"]
    assert sorted(name for of in batches.values() for name in of) == ["sub-00", "sub-01"]


def test_everyone_is_analysed_anew_if_asked_but_once(places: Places) -> None:
    selected = everyone(2)
    made = as_wanted(["sub-00"], selected) | as_wanted(["sub-01"], selected, run="now")
    anew = replace(WANTED, anew=True)
    assert missing_in(places, decide(places, selected, made, anew, by(2))) == ["sub-00", "sub-01"]
    assert missing_in(places, decide(places, selected, made, replace(anew, run="now"), by(2))) == ["sub-00"]


def test_a_command_that_only_looks_writes_nothing(places: Places) -> None:
    selected = everyone(4)
    finish(places, decide(places, selected, {}, WANTED, by(2)), "0")
    before = {file: file.read_bytes() for file in places.state.rglob("*") if file.is_file()}
    would_be = decide(places, selected, as_wanted(["sub-00", "sub-02"], selected), WANTED, by(2), write=False)
    assert missing_in(places, would_be) == ["sub-01", "sub-03"]
    assert {file: file.read_bytes() for file in places.state.rglob("*") if file.is_file()} == before


def test_those_whom_an_advice_waits_for_share_no_job(places: Places) -> None:
    selected = everyone(6)
    first = decide(places, selected, {}, WANTED, by(4))
    set_apart(places, ["sub-00", "sub-03"])
    batches = read_batches(places)
    assert sorted(name for of in batches.values() for name in of) == sorted(selected)
    assert [of for of in batches.values() if {"sub-00", "sub-03"} & set(of)] == [["sub-00"], ["sub-03"]]
    assert not set(batches) & set(first)  # their members are others
    again = decide(places, selected, {}, WANTED, by(4), apart=["sub-00", "sub-03"])
    assert [of for of in again.values() if {"sub-00", "sub-03"} & set(of)] == [["sub-00"], ["sub-03"]]
    finish(places, again, *again)
    set_apart(places, ["sub-01"])
    assert read_batches(places) == again  # done is done


@pytest.mark.parametrize("content", [b"", b"{", b"[]", b'{"next": "x", "batches": {}}', b'{"next": 1, "batches": [1]}'])
def test_a_damaged_decision_is_made_again_from_the_records(places: Places, content: bytes) -> None:
    selected = everyone(4)
    finish(places, decide(places, selected, {}, WANTED, by(2)), "0")
    places.batches_file.write_bytes(content)
    assert read_batches(places) == {}
    batches = decide(places, selected, as_wanted(["sub-03"], selected), WANTED, by(2))
    assert missing_in(places, batches) == ["sub-00", "sub-01", "sub-02"]


def test_who_is_done_needs_no_job_on_a_cluster_either(places: Places) -> None:
    """To Snakemake, jobs done here would have new inputs there; a marker that no job has made has none."""
    selected = everyone(4)
    here = decide(places, selected, {}, WANTED, by(2))
    finish(places, here, "0")
    made = as_wanted(here["0"], selected)
    there = decide(places, selected, made, WANTED, by(2), elsewhere=True)
    assert missing_in(places, there) == sorted(here["1"])
    assert here["0"] not in [there.get("0")]
    assert here["0"] in there.values()
    assert decide(places, selected, made, WANTED, by(2), elsewhere=True) == there, "and that once"
    assert here["0"] in decide(places, selected, made, WANTED, by(2)).values()


def test_markers_of_batches_that_are_no_more_are_removed(places: Places) -> None:
    finish(places, {"77": ["sub-00"], "A": []}, "77", "A")
    places.dropped("77").parent.mkdir(parents=True)
    places.dropped("77").touch()
    decide(places, everyone(1), {}, WANTED, by(1))
    assert not places.batch("77").exists()
    assert not places.batch("A").exists()
    assert not places.dropped("77").exists()


def settings(folder: Path, **sections: Any) -> Settings:
    tiers = {"disk": {"path": str(folder), "kind": "block"}}
    placement = dict.fromkeys(("dataset", "work", "images", "results"), "disk")
    return Settings.from_config({"tiers": tiers, "placement": placement, **sections})


@pytest.mark.parametrize(
    ("tool", "size_bytes", "slots", "size"),
    [
        ({"name": "noop"}, 1000, 25, 40),  # 200 of them: five jobs, in which five are analysed at once
        ({"name": "noop"}, 1000, 7, 29),
        ({"name": "noop", "noop": {"sleep_s": 5}}, 1000, 2, 3),
        ({"name": "noop", "noop": {"sleep_s": SHORT_S}}, 1000, 2, 1),
        ({"name": "brainextractor"}, 10_000_000, 2, 1),
        ({"name": "bet"}, 10_000_000, 2, 4),
    ],
)
def test_short_participants_share_a_job_and_long_ones_do_not(
    tmp_path: Path, tool: dict[str, Any], size_bytes: int, slots: int, size: int
) -> None:
    assert size_for(settings(tmp_path, tool=tool), everyone(200, size_bytes=size_bytes), slots) == size
    most = 5 if size > 1 else 1
    assert size_for(settings(tmp_path, tool=tool), everyone(30, size_bytes=size_bytes), 25) == most  # no slot is idle
    asked = settings(tmp_path, tool=tool, batches={"participants": 16})
    assert size_for(asked, everyone(200, size_bytes=size_bytes), slots) == 16


def test_a_record_goes_when_its_participant_is_analysed_anew(places: Places) -> None:
    """Were the new analysis to fail, the old record would pass for its result; of those who are done failures go."""
    selected = everyone(3)
    for name in selected:
        write_json(places.record(name), {})
        write_json(places.failure(name), {})
    made = as_wanted(["sub-00"], selected) | as_wanted(["sub-01", "sub-02"], selected, version="0.9")
    decide(places, selected, made, WANTED, by(3), write=False)
    assert places.record("sub-01").exists()
    decide(places, selected, made, WANTED, by(3))
    assert [name for name in selected if places.record(name).exists()] == ["sub-00"]
    assert [name for name in selected if places.failure(name).exists()] == ["sub-01", "sub-02"]


def test_participants_of_two_sites_share_no_job_where_sites_must_be_valid(places: Places) -> None:
    selected = {f"{site}/sub-{n}": [replace(image(f"sub-{n}"), site=site)] for n in range(3) for site in "AB"}
    assert len(decide(places, selected, {}, WANTED, by(10))) == 1
    places.batches_file.unlink()
    batches = decide(places, selected, {}, WANTED, by(10), by_site=True)
    assert sorted({name[0] for name in of} for of in batches.values()) == [{"A"}, {"B"}]


@pytest.mark.parametrize("name", ["batches", "dropped"])
def test_a_planted_link_to_a_folder_is_removed_and_the_folder_is_not(places: Places, tmp_path: Path, name: str) -> None:
    precious = tmp_path / "precious"
    precious.mkdir()
    (precious / "thesis").touch()
    places.state.mkdir(parents=True)
    (places.state / name).symlink_to(precious)
    decide(places, everyone(1), {}, WANTED, by(1))
    assert (precious / "thesis").exists()
    assert not (places.state / name).is_symlink()


@pytest.mark.parametrize("plant", [os.mkfifo, os.mkdir])
def test_a_decision_that_is_no_file_is_made_again(places: Places, plant: Callable[[Path], None]) -> None:
    places.state.mkdir(parents=True)
    plant(places.batches_file)
    assert read_batches(places) == {}


def test_nodes_go_by_the_analysis_that_was_decided(places: Places) -> None:
    decide(places, everyone(1), {}, WANTED, by(1))
    assert decided_analysis(places) == "analysis"
    set_apart(places, ["sub-00"])
    assert decided_analysis(places) == "analysis"
