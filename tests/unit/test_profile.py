"""The profile and the group stage: sums that can be checked by hand."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
from configured import settings_at, tier
from fastjsonschema import JsonSchemaValueException
from neurotier.core.files import Record, write_json, write_text
from neurotier.core.places import Places
from neurotier.core.settings import ROLES
from neurotier.core.tables import Row, Rows, read_table, write_table
from neurotier.meter.measure import STOPPED
from neurotier.meter.traffic import flow
from neurotier.meter.usage import Usage
from neurotier.run.group import group_rows, summary
from neurotier.run.profile_tables import close_run, profile_rows, run_rows, traffic_rows
from shown_values import shown


def record(participant: str, start_s: float, run: str = "r1", voxels: int = 1000) -> dict[str, Any]:
    """A job of 2 s: 0.5 s stage_in, 1 s compute with 0.8 s CPU, 0.5 s stage_out."""
    phases = []
    for phase, begin, wall_s, user_s in (("stage_in", 0, 0.5, 0), ("compute", 0.5, 1, 0.8), ("stage_out", 1.5, 0.5, 0)):
        usage = Usage(start_s + begin)
        usage.end_s, usage.wall_s, usage.user_s = start_s + begin + wall_s, wall_s, user_s
        flows = [flow("local", "growth", written=(7, 1))]
        phases.append({"phase": phase, **usage.record(), "staged_bytes": None, "traffic": flows})
    image = {"image": f"{participant}_T1w.nii.gz", "mask": "m", "brain_voxels": voxels, "voxel_volume_mm3": 2.0}
    image |= {"session": None, "bids_run": None}
    names = {"participant": participant, "run": run, "host": "h", "tool": "noop", "work_tier": "local"}
    return names | {"phases": phases, "images": [image]}


FACTS: dict[str, Any] = {
    "settings": settings_at().to_json(),
    "started_s": 90.0,
    "cores": 2,
    "parallelism": 2,
    "limits": {},
    "oversubscribed": False,
    "analysis": "noop",
    "image": None,
    "tiers": {role: {"name": "local"} for role in ROLES},
}


def rows_at(*starts_s: float, run: str = "r1") -> Rows:
    """Rows of ``profile.tsv`` of participants ``sub-1``, ``sub-2`` ... whose jobs began then."""
    made = [record(f"sub-{number}", start_s, run) for number, start_s in enumerate(starts_s, 1)]
    return [row for each in made for row in profile_rows(each)]


def note(places: Places, run: str, **facts: Any) -> None:
    write_json(places.runs / f"{run}.json", {"run": run, **FACTS, **facts})


@pytest.fixture
def places(tmp_path: Path) -> Places:
    return Places(*[tmp_path] * 5)


def run_of(places: Places, rows: Rows, everyone: int = 1, failures: Sequence[Record] = (), **facts: Any) -> Row:
    """The row of the run ``r1``, of which this is noted."""
    note(places, "r1", **facts)
    (run,) = run_rows(places, rows, failures, everyone)
    return run


def test_each_phase_has_its_cpu_and_io_which_add_up_to_wall_and_its_traffic(places: Places) -> None:
    made = record("NYU/sub-01", 100.0) | {"got": {"wall_s": 7.5}}
    rows, traffic = profile_rows(made), traffic_rows(made)
    assert {row["fetch_s"] for row in rows} == {7.5}
    assert profile_rows(made | {"got": None})[0]["fetch_s"] is None, "of a plain folder"
    assert [shown(row, "cpu_s io_s") for row in rows] == ["0 0.5", "0.8 0.2", "0 0.5"]
    moved = [shown(row, "phase tier written_bytes read_bytes") for row in traffic]
    assert moved == ["stage_in local 7 -", "compute local 7 -", "stage_out local 7 -"]
    for name, each in (("profile", rows), ("traffic", traffic)):
        write_table(places.profile / f"{name}.tsv", name, each)
    assert read_table(places.profile / "profile.tsv", "profile")[1]["site"] == "NYU"


def test_a_run_whose_work_tier_is_gone_has_a_row(places: Places) -> None:
    """As that of a batch job, named by its environment."""
    settings = settings_at(tiers={"gone": tier("$NOT_DEFINED_ANYWHERE")}, placement={"work": "gone"})
    assert run_of(places, profile_rows(record("a/sub-1", 100.0)), settings=settings.to_json())["makespan_s"] == 2


def test_makespan_and_parallelism(places: Places) -> None:
    """Jobs of 2 s from 100, 101 and 104 s: makespan 6 s, 6 job seconds, two at once for 1 s."""
    run = run_of(places, rows_at(100, 101, 104), 3, ended_s=1)
    names = "makespan_s mean_parallelism peak_parallelism wall_sum_s cpu_sum_s participants"
    assert shown(run, names) == "6 1 2 6 2.4 3"


@pytest.mark.parametrize(
    ("starts_s", "everyone", "facts", "limited_by"),
    [
        (
            (100, 101, 104),
            3,
            {"ended_s": 1},
            (
                "1.0 ran at once on average:"
                " fewer at the first start, at the last end, between two jobs, or if memory, room or images were short"
            ),
        ),
        # brainextractor is taken to need 500 MB
        (
            (100, 100, 102, 102),
            4,
            {"ended_s": 1, "parallelism": 4, "limits": {"mem_mb": 1200}},
            "memory has room for 2 at once (500 MB each, 1,200 MB)",
        ),
        # who was running when it was killed may have run beside the two of which there are times
        ((100, 102), 3, {}, "-"),
        # memory has room for all; of the others there are no times, since they were not done when the run ended
        (
            range(100, 110),
            30,
            {"parallelism": 25, "limits": {"mem_mb": 240_000}},
            "jobs of 2 s were over before more than 2 could be started, one every 1.00 s",
        ),
    ],
)
def test_what_limited_a_run_is_said(
    places: Places, starts_s: Sequence[float], everyone: int, facts: dict[str, Any], limited_by: str
) -> None:
    assert shown(run_of(places, rows_at(*starts_s), everyone, **facts), "limited_by") == limited_by


@pytest.mark.parametrize(
    ("facts", "failures", "everyone", "validity"),
    [
        ({"ended_s": 1}, [], 1, "valid"),
        ({}, [], 1, "invalid: the run was killed, or had no room to write its end"),
        ({"ended_s": 1}, [{"run": "r1"}], 2, "invalid: 1 participant failed"),
        ({"ended_s": 1}, [], 3, "invalid: 2 participants not run"),
        ({"ended_s": 1, "swap_out_bytes": 4096}, [], 1, "invalid: the machine swapped"),
    ],
)
def test_validity(
    places: Places, facts: dict[str, Any], failures: list[dict[str, Any]], everyone: int, validity: str
) -> None:
    rows = rows_at(100)
    assert run_of(places, rows, everyone, failures, **facts)["valid"] == validity
    suspended = run_of(places, [row | {"account_reason": STOPPED} for row in rows], everyone, failures, **facts)
    assert "participants were suspended and resumed during the run" in suspended["valid"]


@pytest.mark.parametrize(("set_by_s", "valid"), [(0.5, "valid"), (-3600, "invalid: the machine's clock was set ")])
def test_a_clock_that_is_set_spoils_the_times_of_a_run(places: Places, set_by_s: float, valid: str) -> None:
    write_text(places.readings("r1"), f"100 50 0 0 0 0\n{110 + set_by_s} {50 + set_by_s} 0 0 0 0\n")
    assert run_of(places, rows_at(100), ended_s=1)["valid"].startswith(valid)


APART = "the machine's clock was set during the run, or clocks of nodes differ"


@pytest.mark.parametrize(
    ("off_s", "valid"),
    [(0, "valid"), *((off_s, f"invalid: {APART}") for off_s in (-3600, 3600))],
)
def test_a_node_whose_clock_is_off_spoils_the_times_of_a_run(places: Places, off_s: float, valid: str) -> None:
    """Its participants seem to have begun before the head, or to have ended after it."""
    assert run_of(places, rows_at(100, 100 + off_s), 2, elsewhere=True, ended_s=110)["valid"] == valid


def test_a_run_in_which_everyone_failed_has_a_row(places: Places) -> None:
    run = run_of(places, [], failures=[{"run": "r1"}], ended_s=1)
    assert shown(run, "participants failed makespan_s") == "0 1 -"
    write_table(places.profile / "runs.tsv", "runs", [run])


def test_a_run_beside_others_is_disturbed_as_far_as_they_may(places: Places) -> None:
    """Jobs from 100 to 106 s on two processors, of which others take 31 %; the readings go with the final row."""
    readings = places.readings("r1")
    write_text(readings, "99 0 50 10 5 0\n107 0 62.96 18 5 0\n")
    for most, validity in ((0.1, "invalid: disturbed: others took 31 % of the CPU time"), (0.35, "valid")):
        settings = {**FACTS["settings"], "validity": {"others_cpu_share": most}}
        run = run_of(places, rows_at(100, 104), 2, ended_s=1, host="h", cpus=2, settings=settings)
        assert shown(run, "valid others_cpu_share") == f"{validity} 0.31"
    for name, start_s in (("sub-1", 100.0), ("sub-2", 104.0)):
        write_json(places.record(name), record(name, start_s))
    close_run(places, "r1", ["sub-1", "sub-2"], [])
    assert not readings.exists()
    (closed,) = run_rows(places, [], [], 2)
    assert closed["others_cpu_share"] == pytest.approx(0.31)


def test_run_that_is_over_keeps_its_row(places: Places) -> None:
    """Run r1 failed one of two; r2 mends it, and redoes the other: r1 stays what it was."""
    note(places, "r1", ended_s=1)
    write_json(places.record("sub-1"), record("sub-1", 100.0, "r1"))
    close_run(places, "r1", ["sub-1", "sub-2"], [{"run": "r1"}])
    note(places, "r2")
    first, second = run_rows(places, rows_at(5000, 5000, run="r2"), [], 2)
    assert shown(first, "valid participants makespan_s") == "invalid: 1 participant failed 1 2"
    assert shown(second, "participants failed") == "2 0"


def test_group_mean_spread_and_outliers(places: Places) -> None:
    voxels = [1000, 1010, 1020, 1030, 1040, 3000]
    rows = group_rows([record(f"sub-{number}", 0.0, voxels=count) for number, count in enumerate(voxels)])
    write_table(places.group / "group.tsv", "group", rows)
    found = summary(rows)
    assert found["mean_brain_voxels"] == sum(voxels) / 6
    assert found["mean_brain_volume_mm3"] == sum(voxels) / 3
    assert found["outliers"] == ["sub-5_T1w.nii.gz"]


def test_sums_of_the_account_do_not_pass_for_a_whole(places: Places) -> None:
    """Phases without an account are left out of the sums only while they are next to nothing."""
    rows = rows_at(100)
    whole = [row | {"account": "exact", "account_user_s": row["user_s"]} for row in rows]
    for wall_s, expected in ((0.0, pytest.approx(0.8)), (0.01, pytest.approx(0.8)), (0.1, None)):
        run = run_of(places, [*whole, rows[0] | {"phase": "start_up", "wall_s": wall_s}], ended_s=1.0)
        assert run["account_user_sum_s"] == expected


@pytest.mark.parametrize("wrong", [{"wall_s": "1"}, {"phase": "lunch"}, {"participant": None}, {"more": 1}])
def test_a_row_that_does_not_satisfy_its_schema_is_refused(places: Places, wrong: dict[str, Any]) -> None:
    rows = profile_rows(record("NYU/sub-01", 100.0))
    table = places.profile / "profile.tsv"
    with pytest.raises(JsonSchemaValueException):
        write_table(table, "profile", [*rows, rows[0] | wrong])
    assert not list(places.profile.iterdir()), "neither the table nor a part of it"
