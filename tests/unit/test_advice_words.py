"""What the advice judges and says: placements, its recommendation, and what report and campaign say of it."""

from __future__ import annotations

import itertools
import re
from pathlib import Path
from typing import Any

import pytest
from configured import settings_at, tier
from neurotier.advice.calibration import read_observed
from neurotier.advice.matching import KNOWN_BY, matching_advice
from neurotier.advice.placements import candidates
from neurotier.advice.words import AT_ONCE, advices, interval, matters, recommendation, text_table
from neurotier.core.errors import InputError, SettingsError
from neurotier.core.files import write_json
from neurotier.core.places import Places
from neurotier.core.settings import Settings
from neurotier.core.tables import columns, read_table, write_table
from neurotier.pages import advice as page
from neurotier.pages.report.data import collect
from neurotier.pages.report.page import prediction
from neurotier.run.node_check import check_node
from report_data import ROWS, RUN, make_results
from shown_values import shown


def row(placement: str, predicted_s: float, share: float = 0.1, **changes: Any) -> dict[str, Any]:
    """A row of ``advice.tsv``."""
    about = {"placement": placement, "work_tier": placement, "in_use": placement == "disk", "predicted_s": predicted_s}
    ends = {"low_s": predicted_s * (1 - share), "high_s": predicted_s * (1 + share)}
    return dict.fromkeys(columns("advice"), 0) | ROWS["advice"] | about | ends | changes


MEMORY = f"computing, 4 at once, {AT_ONCE}"


@pytest.mark.parametrize(
    ("rows", "sentence"),
    [
        (
            [row("disk", 42.3, limit=MEMORY), row("tmpfs", 41.0, limit=MEMORY)],
            (
                "Limited by computing, 4 at once, for which memory and the work tier have room (96 % of the jobs'"
                " time): tmpfs saves 3 %, within the interval of the predictions: it does not matter where the"
                " work lies"
            ),
        ),
        (
            [row("disk", 42.3), row("tmpfs", 41.0)],
            (
                "You are compute-bound: tmpfs saves 3 %, within the interval of the predictions: it does not matter"
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
        (
            [row("disk", 97.0, limit="reading nfs"), row("tmpfs", 41.0, dataset_tier="tmpfs")],
            (
                "Place the data on tmpfs: 41 s (37 to 45) instead of 97 s (87 to 107), which is limited by reading nfs"
                " (96 % of the jobs' time)"
            ),
        ),
        ([row("disk", 41.0), row("nfs", 97.0)], "Stay with disk: 41 s (37 to 45), and nfs takes 97 s (87 to 107)"),
        (
            [row("disk", 9.73), row("tmpfs", 9.74), row("memory", 9.75)],
            "You are compute-bound: it does not matter where the work lies",
        ),
        ([row("disk", 1.0, fits=False, reason="full")], "No placement fits; disk does not fit: full"),
        *(
            (
                [row("disk", 100.0), row("tmpfs", tmpfs_s), row("slow", 350.0, limit="reading from slow")],
                (
                    "You are compute-bound: it does not matter whether disk or tmpfs; slow takes 6 min (5 to 6),"
                    " limited by reading from slow (96 % of the jobs' time)"
                ),
            )
            for tmpfs_s in (99.9, 100.1)  # whether the one in use is a little ahead or behind
        ),
        (
            [row("disk", 100.0), row("tmpfs", 100.49)],
            "You are compute-bound: it does not matter where the work lies",
        ),
        (
            [row("disk", 100.0), row("tmpfs", 100.6)],
            (
                "You are compute-bound: disk saves 0.6 % against tmpfs, within the interval of the predictions: it"
                " does not matter"
            ),
        ),
        (
            [row("a", 41.0, in_use=False), row("b", 97.0, in_use=False)],
            "Take a: 41 s (37 to 45), and b takes 97 s (87 to 107)",
        ),
        (
            [row("disk", 41.0)],
            "There is no choice but disk: 41 s (37 to 45), limited by computing (96 % of the jobs' time)",
        ),
    ],
)
def test_recommendation(rows: list[dict[str, Any]], sentence: str) -> None:
    assert recommendation(rows) == sentence


@pytest.mark.parametrize(
    ("predicted_s", "said"),
    [
        (7200.0, "2.0 h (1.8 to 2.2)"),
        (9.95, "10 s (9 to 11)"),
        (9.94, "9.94 s (8.95 to 10.93)"),
    ],
)
def test_ends_of_an_interval_are_as_exact_as_its_middle(predicted_s: float, said: str) -> None:
    assert interval(row("disk", predicted_s)) == said


def test_a_gain_that_is_no_more_than_the_interval_does_not_matter() -> None:
    """90 to 110 s holds 109.9 s, and 98.9 to 120.9 s holds 100 s; of 112 s it is not so."""
    best = row("disk", 100.0)
    assert matters(best, row("tmpfs", 112.0))
    for other in (
        row("tmpfs", 109.9),
        row("tmpfs", 112.0, share=0.2),
        row("tmpfs", 110.0, share=0.0),
        row("tmpfs", 115.0, low_s=100.0),
    ):
        assert not matters(best, other)


def test_each_parallelism_and_cache_has_its_advice() -> None:
    """And the table for a terminal has a line for each row."""
    ways = list(itertools.product((2, 4), ("cold", "warm")))
    rows = [row("disk", 41.0, parallelism=count, cache=cache) for count, cache in ways]
    assert [line.split(": ")[0] for line in advices(rows)] == [
        f"{count} at once, cache {cache}" for count, cache in ways
    ]
    assert advices(rows[:1])[0].startswith("There is no choice")
    assert advices(rows[:2])[1].startswith("2 at once, cache warm: ")
    head, first, *rest = text_table([*rows, row("tmpfs", 5.0, fits=False, reason="full")])
    assert head.split()[:3] == ["placement", "at", "once"]
    assert "disk (in use)" in first
    assert len(rest) == 4
    assert rest[-1].rstrip().endswith("no: full")
    data: Any = {"advice": [row("disk", 41.0, participants=1)]}
    chart: Any = page.advised(data)
    assert [lane["panel"].rsplit(", ", 1)[1] for lane in chart.lanes] == ["1 participant"]


def test_a_promise_is_that_of_the_same_run_as_found_first() -> None:
    run = {name: row("disk", 1.0)[name] for name in KNOWN_BY}
    cold, found, other = row("disk", 3.0, cache="cold"), row("disk", 2.0), row("disk", 1.0, participants=6)
    assert matching_advice([other, cold, found], run) == found
    assert matching_advice([other, cold], run) == cold
    assert matching_advice([other], run) is None


def settings_with(folder: Path, **sections: Any) -> Settings:
    """Two tiers that can be had, one that cannot, and two that are not for intermediate files of this machine."""
    tiers = {"tmpfs": {"path": "/dev/shm", "kind": "tmpfs"}, "gone": {"path": f"{folder}/gone", "kind": "block"}}
    others = {"node": {**tiers["tmpfs"], "node": True}, "archive": tier(folder, kind="block", read_only=True)}
    return settings_at(folder, tiers=tiers | others, tool={"name": "noop"}, **sections)


def test_placements_that_are_judged(tmp_path: Path) -> None:
    settings = settings_with(tmp_path)
    found = candidates(settings, [])
    assert found == {"disk": settings.placement, "tmpfs": settings.placement | {"work": "tmpfs"}}
    assert settings.placement["work"] == "disk"
    checked = tmp_path / "checked.tsv"
    write_table(checked, "check", check_node(settings, Places.from_settings(settings), "thin", None))
    assert list(candidates(settings, [checked])) == ["disk", "tmpfs", "node"], "as that node has them"
    campaign = {"placements": {"fast": {"work": "tmpfs", "dataset": "tmpfs"}}}
    only = candidates(settings_with(tmp_path, campaign=campaign), [])
    assert only == {"fast": settings.placement | {"work": "tmpfs", "dataset": "tmpfs"}}
    assert settings.placement["results"] == "disk"


def test_wrong_calibration_is_said(tmp_path: Path) -> None:
    places = Places.from_settings(settings_with(tmp_path))

    def observed(folder: Path) -> object:
        return read_observed(settings_with(tmp_path, advice={"calibration": str(folder)}), places)

    with pytest.raises(SettingsError, match="is not the results folder of a run"):
        observed(tmp_path)
    other, _ = make_results(tmp_path / "other", 1)
    write_json(other.record("sub-01"), {"participant": "sub-01", "run": RUN, "tool": "bet"})
    with pytest.raises(InputError, match="has no record of noop with these options, but of bet"):
        observed(other.results)
    write_json(other.runs / f"{RUN}.json", {"settings": {"app": {"image": None}}})
    with pytest.raises(InputError, match=r"is not what this version writes \(KeyError: 'tool'\)"):
        observed(other.results)


def test_report_holds_the_prediction_against_the_run(tmp_path: Path) -> None:
    places, settings = make_results(tmp_path, 5)
    run = read_table(places.profile / "runs.tsv", "runs")[-1]
    same = {name: run[name] for name in KNOWN_BY}
    promised = row("disk", run["makespan_s"] / 2, compute_sum_s=1.0, **same)
    write_table(places.advice / "advice.tsv", "advice", [promised])
    section = prediction(collect(places, settings))
    assert section is not None
    assert section.rows
    assert re.fullmatch(r"Predicted .* not within it\.", section.text)
    assert shown(section.rows[0], "what ratio") == "Makespan 0.5"
