"""Shares: everyone in one, those who are done in no job, and never a reason to analyse anyone twice; and what each
participant asks of shared resources."""

from __future__ import annotations

import os
from collections.abc import Sequence
from itertools import chain
from pathlib import Path
from typing import Any

import pytest
from configured import settings_at
from neurotier.core.errors import InputError, ToolError
from neurotier.core.files import read_json_or_empty, write_json
from neurotier.core.places import Places
from neurotier.run.jobs import load_settings
from neurotier.run.participants import Made, Wanted, key_of, members_of, names_of_shares, require_all, selected_in
from neurotier.run.plan import Plan
from pool_jobs import image, prepared_results, write_index

MARKED_NS = 5_000_000_000


class Start(Plan):
    """A start in a results folder whose index has some participants."""

    def __init__(self, folder: Path, count: int, on_cluster: bool = False, **sections: Any) -> None:
        settings = load_settings(prepared_results(folder, [], **sections))
        super().__init__(settings, Places.from_settings(settings), on_cluster)
        write_json(self.places.index / "tool.json", {"name": "noop", "version": "1", "image": None})
        write_index(self.places, [image(f"{number:02d}", 1000 * number) for number in range(count)])
        self.selected = selected_in(self.places)

    def made(self, names: Sequence[str], **changed: Any) -> dict[str, Made]:
        """What whole records of some say."""
        for name in names:
            write_json(self.places.record(name), {})
            os.utime(self.places.record(name), ns=(MARKED_NS, MARKED_NS))
        own = {"tool": "noop", "tool_version": "1", "run": "earlier", **changed}
        return {name: {"analysis": key_of(self.analysis, self.selected[name]), **own} for name in names}

    def left(self, made: dict[str, Made], forced: bool = False) -> list[str]:
        """Who would be analysed, of shares without a marker, by what Snakemake and the pool see."""
        self.find_remaining(made, forced, 2)
        missing = [share for share in self.shares if not self.places.share(share).exists()]
        recorded = {name for name in self.selected if self.places.record(name).exists()}
        return sorted({name for share in missing for name in self.members(share)} - recorded)


def finish(start: Plan) -> None:
    for share in start.shares:
        write_json(start.places.share(share), {"failed": {}})


@pytest.mark.parametrize(
    ("count", "on_cluster", "participants", "lengths"),
    [
        (40, False, 3, [40]),
        (40, True, None, [14, 13, 13]),
        (17, True, None, [9, 8]),
        (3, True, 5, [3]),
        (0, True, None, []),
        (0, False, None, []),
    ],
)
def test_everyone_is_in_one_share_and_shares_are_few_and_alike(
    tmp_path: Path, count: int, on_cluster: bool, participants: int | None, lengths: list[int]
) -> None:
    start = Start(tmp_path, count, on_cluster, shares={"participants": participants})
    shares = [members_of(share, start.places) for share in start.shares]
    assert [*map(len, shares)] == lengths
    assert sorted(chain(*shares)) == sorted(start.selected)


def test_those_of_an_app_which_take_long_have_a_share_each() -> None:
    app = settings_at(in_containers=True, app={"image": "app.sif"})
    assert names_of_shares(3, app, on_cluster=True) == ["1-of-3", "2-of-3", "3-of-3"]


def test_shares_have_as_much_to_do_and_nobody_starts_late_who_takes_long(tmp_path: Path) -> None:
    start = Start(tmp_path, 6, on_cluster=True, shares={"participants": 2})
    members = [start.members(share) for share in start.shares]
    assert members == [["sub-05", "sub-02"], ["sub-04", "sub-01"], ["sub-03", "sub-00"]]


@pytest.mark.parametrize("share", ["0-of-2", "3-of-2", "5-of-5", "1-of-0"])
def test_a_share_that_is_not_there_is_said_so(tmp_path: Path, share: str) -> None:
    with pytest.raises(InputError, match="there is no such share"):
        members_of(share, Start(tmp_path, 4).places)


@pytest.mark.parametrize("on_cluster", [False, True])
def test_who_is_done_needs_no_job_and_its_marker_is_as_old_as_what_it_is_made_of(
    tmp_path: Path, on_cluster: bool
) -> None:
    start = Start(tmp_path, 4, on_cluster, shares={"participants": 2})
    tool = start.places.index / "tool.json"
    os.utime(tool, ns=(1, 1))
    done = members_of("1-of-2", start.places) if on_cluster else list(start.selected)
    assert start.left(start.made(done)) == sorted(set(start.selected) - set(done))
    marker = start.places.share(start.shares[0])
    assert marker.stat().st_mtime_ns == MARKED_NS, "what followed is not done again"
    write_json(tool, {"name": "noop", "version": "1"})
    marker.unlink()
    start.left(start.made(done))
    assert marker.stat().st_mtime_ns == tool.stat().st_mtime_ns, "nor the jobs for their inputs"


@pytest.mark.parametrize(
    "changed", [{}, {"analysis": "0" * 8}, {"tool_version": "0.9"}, {"tool": "bet"}, {"container": "sha256:0"}]
)
def test_who_was_analysed_otherwise_is_analysed_again(tmp_path: Path, changed: dict[str, Any]) -> None:
    """And the old record goes, or it would pass for the new result were that to fail; of those done, failures go."""
    start = Start(tmp_path, 2)
    finish(start)
    for name in start.selected:
        write_json(start.places.failure(name), {})
    made = start.made(["sub-00"]) | start.made(["sub-01"], **changed)
    assert start.left(made) == (["sub-01"] if changed else [])
    assert [start.places.failure(name).exists() for name in start.selected] == [False, bool(changed)]


def test_everyone_is_analysed_anew_if_asked_but_once(tmp_path: Path) -> None:
    start = Start(tmp_path, 2)
    finish(start)
    made = start.made(["sub-00"]) | start.made(["sub-01"], run="now")
    assert start.left(made, forced=True) == ["sub-00", "sub-01"]
    wanted = Wanted(start.analysis, read_json_or_empty(start.places.index / "tool.json"), forced=True, run="now")
    assert [wanted.is_met(made[name], start.selected[name]) for name in made] == [False, True]


def test_markers_of_shares_that_no_longer_exist_are_removed(tmp_path: Path) -> None:
    start = Start(tmp_path, 2)
    gone = [*map(start.places.share, ("1-of-7", "77")), start.places.dropped("1-of-7")]
    for marker in gone:
        write_json(marker, {})
    gone.append(start.places.share("1-of-1.7"))
    os.mkfifo(gone[-1])
    assert start.left(start.made(list(start.selected))) == []
    assert not [marker for marker in gone if marker.exists()]


@pytest.mark.parametrize(("name", "is_indexed"), [("shares", True), ("dropped", True), ("shares", False)])
def test_a_planted_link_to_a_folder_is_removed_and_the_folder_is_not(
    tmp_path: Path, name: str, is_indexed: bool
) -> None:
    """Without an index nothing is removed there."""
    start, precious = Start(tmp_path, 1), tmp_path / "precious"
    write_json(precious / "calibration.7", {})
    (start.places.state / name).symlink_to(precious)
    if not is_indexed:
        (start.places.index / "images.tsv").unlink()
    start.find_remaining({}, forced=False, slots=1)
    assert (precious / "calibration.7").exists()
    assert (start.places.state / name).is_symlink() != is_indexed


def plan(folder: Path, capacity: str, size_bytes: int, tool: str = "brainextractor") -> Plan:
    """A plan for one participant with two images."""
    disk = {"path": str(folder), "kind": "block", "capacity": capacity}
    settings = settings_at(tiers={"disk": disk}, tool={"name": tool})
    places = Places.from_settings(settings)
    write_index(places, [image("01", size_bytes)] * 2)
    return Plan(settings, places)


def test_job_that_cannot_fit_asks_for_all_there_is(tmp_path: Path) -> None:
    """Snakemake refuses the whole run otherwise; the job itself says what it misses."""
    made = plan(tmp_path, "50 MB", 10_000_000)
    (share,) = made.all_shares()
    assert made.share(share).work_mb == 50 < made.of("sub-01").work_mb


@pytest.mark.parametrize(("tool", "mem_mb"), [("brainextractor", 3100), ("bet", 600), ("noop", 100)])
def test_memory_is_asked_for_by_tool_and_size(tmp_path: Path, tool: str, mem_mb: int) -> None:
    assert plan(tmp_path, "1 GB", 10_000_000, tool).of("sub-01").mem_mb == mem_mb


def test_the_target_participants_is_reached_with_everyones_record_alone(tmp_path: Path) -> None:
    start = Start(tmp_path, 3)
    start.made(["sub-00", "sub-02"])
    with pytest.raises(ToolError, match=r"^sub-01: 1 of 3 participants failed; .*\['-sub-LABEL'\]"):
        require_all(start.places, [*start.selected])
    start.made(["sub-01"])
    assert require_all(start.places, [*start.selected]) == 3


def test_without_an_index_nobody_is_known_to_be_complete(tmp_path: Path) -> None:
    """Or the target participants would be finished, though the damage that took the index may have taken more."""
    made = plan(tmp_path, "1 GB", 1)
    markers = [made.places.complete, made.places.share("calibration.7")]
    for marker in markers:
        write_json(marker, {"participants": 1})
    (made.places.index / "images.tsv").unlink()
    made.find_remaining({}, forced=False, slots=1, write=False)
    assert all(marker.exists() for marker in markers), "a command that only looks changes nothing"
    made.find_remaining({}, forced=False, slots=1)
    assert not any(marker.exists() for marker in markers)
