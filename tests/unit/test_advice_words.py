"""What the advice judges and says: placements, its recommendation, and what report and campaign tell of it."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from configured import settings_at
from neurotier.advice.calibration import read_observed
from neurotier.advice.placements import candidates
from neurotier.advice.room import room_for
from neurotier.advice.words import recommendation
from neurotier.core.errors import InputError, SettingsError
from neurotier.core.files import write_json
from neurotier.core.places import Places
from neurotier.core.settings import Settings
from neurotier.core.tables import columns, read_table, write_table
from neurotier.pages.report.data import collect
from neurotier.pages.report.page import prediction
from report_data import make_results


def row(placement: str, predicted_s: float, share: float = 0.1, **changes: Any) -> dict[str, Any]:
    """A row of ``advice.tsv``."""
    filled: dict[str, Any] = dict.fromkeys(columns("advice"), 0)
    tiers = {"dataset_tier": "disk", "work_tier": placement, "images_tier": None, "results_tier": "disk"}
    filled |= tiers | {"placement": placement, "in_use": placement == "disk", "tool": "noop", "cache": "as found"}
    ends = {"low_s": predicted_s * (1 - share), "high_s": predicted_s * (1 + share)}
    limit = {"limit": "computing", "limit_share": 0.96, "parallelism": 2, "participants": 5}
    return filled | {"predicted_s": predicted_s, **ends, **limit, "fits": True, "reason": None} | changes


@pytest.mark.parametrize(
    ("rows", "sentence"),
    [
        (
            [row("disk", 42.3), row("tmpfs", 41.0)],
            (
                "You are compute-bound: tmpfs buys 3 %, within the interval of the predictions: it does not matter"
                " where the work lies"
            ),
        ),
        (
            [row("disk", 97.0, limit="reading nfs"), row("tmpfs", 41.0)],
            (
                "Place the work on tmpfs: 41 s (37 to 45) instead of 97 s (87 to 107), which is limited by reading nfs"
                " (96 % of the jobs' time)"
            ),
        ),
        (
            [row("disk", 97.0), row("tmpfs", 41.0, fits=False, reason="needs 141 GiB (work) on tmpfs, has 112 GiB")],
            (
                "Only disk fits: 97 s (87 to 107), limited by computing (96 % of the jobs' time); tmpfs does not fit:"
                " needs 141 GiB (work) on tmpfs, has 112 GiB"
            ),
        ),
        ([row("disk", 41.0), row("nfs", 97.0)], "Stay with disk: 41 s (37 to 45), and nfs takes 97 s (87 to 107)"),
        ([row("disk", 1.0, fits=False, reason="full")], "No placement fits; disk does not fit: full"),
    ],
)
def test_recommendation(rows: list[dict[str, Any]], sentence: str) -> None:
    assert recommendation(rows) == sentence


@pytest.mark.parametrize("best_s", [99.9, 100.1])
def test_a_slow_placement_is_named_where_the_others_are_alike(best_s: float) -> None:
    """Whether the one in use is a little ahead or behind."""
    slow = row("slow", 350.0, limit="reading from slow", limit_share=0.9)
    assert recommendation([row("disk", 100.0), row("tmpfs", best_s), slow]) == (
        "You are compute-bound: it does not matter whether disk or tmpfs; slow takes 6 min (5 to 6), limited by reading"
        " from slow (90 % of the jobs' time)"
    )


def test_roles_on_one_tier_need_room_together() -> None:
    needed, tiers = {"dataset": 6, "work": 4, "results": 1}, {"dataset": "a", "work": "a", "results": "b"}
    assert room_for(tiers, needed, {"a": 10, "b": 1})["fits"]
    assert (
        room_for(tiers, needed, {"a": 9, "b": None})["reason"] == "needs 10 bytes (dataset and work) on a, has 9 bytes"
    )


def settings_with(folder: Path, **sections: Any) -> Settings:
    """Two tiers that can be had, one that cannot."""
    tiers = {
        "tmpfs": {"path": "/dev/shm", "kind": "tmpfs"},
        "gone": {"path": str(folder / "gone"), "kind": "block"},
    }
    return settings_at(folder, tiers=tiers, **{"tool": {"name": "noop"}, **sections})


def test_placements_that_are_judged(tmp_path: Path) -> None:
    assert [(one.name, one.tiers["work"], one.in_use) for one in candidates(settings_with(tmp_path))] == [
        ("disk", "disk", True),
        ("tmpfs", "tmpfs", False),
    ]
    campaign = {"placements": {"fast": {"work": "tmpfs", "dataset": "tmpfs"}}}
    (only,) = candidates(settings_with(tmp_path, campaign=campaign))
    assert (only.name, only.tiers["dataset"], only.tiers["results"], only.in_use) == ("fast", "tmpfs", "disk", False)


def test_wrong_calibration_is_said(tmp_path: Path) -> None:
    places = Places.from_settings(settings_with(tmp_path))
    with pytest.raises(SettingsError, match="is not the results folder of a run"):
        read_observed(settings_with(tmp_path), places, tmp_path)
    image = {"participant": "sub-1", "site": None, "label": "1", "session": None, "bids_run": None, "path": "p"}
    other = Places(*[tmp_path / "other"] * 5)
    write_table(other.index / "images.tsv", "images", [{**image, "size_bytes": 1, "content": "c"}])
    write_json(other.record("sub-1"), {"participant": "sub-1", "run": "r", "tool": "bet"})
    write_json(
        other.runs / "r.json", {"started_s": 0.0, "settings": settings_with(tmp_path, tool={"name": "bet"}).to_json()}
    )
    with pytest.raises(InputError, match="has no record of noop with these options, but of bet"):
        read_observed(settings_with(tmp_path), places, other.results)


def test_report_holds_the_prediction_against_the_run(tmp_path: Path) -> None:
    places, settings = make_results(tmp_path, 5)
    run = read_table(places.profile / "runs.tsv", "runs")[-1]
    promised = row("disk", run["makespan_s"] / 2, compute_sum_s=1.0) | {
        name: run[name] for name in ("dataset_tier", "work_tier", "images_tier", "results_tier", "tool", "parallelism")
    }
    promised["participants"] = run["participants"]
    write_table(places.advice / "advice.tsv", "advice", [promised])
    section = prediction(collect(places, settings))
    assert section is not None
    assert section.rows
    assert section.text.startswith("Predicted ")
    assert section.text.endswith("not within it.")
    assert (section.rows[0]["what"], section.rows[0]["ratio"]) == ("Makespan", pytest.approx(0.5))
    assert "(computing, 96 % of the jobs' time), measured" in section.text
    write_table(places.advice / "advice.tsv", "advice", [promised | {"participants": 99}])
    assert prediction(collect(places, settings)) is None
