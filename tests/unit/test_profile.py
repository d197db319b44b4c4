"""The profile and the group stage: sums that can be checked by hand."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import Any

import pytest
from configured import settings_at, tier
from fastjsonschema import JsonSchemaValueException
from neurotier.core.files import Record, write_json
from neurotier.core.places import Places
from neurotier.core.settings import ROLES
from neurotier.core.tables import Rows, read_table, write_table
from neurotier.meter.measure import STOPPED
from neurotier.meter.traffic import flow
from neurotier.meter.usage import Usage
from neurotier.run.group import group_rows, summary
from neurotier.run.profile_tables import close_run, profile_rows, run_rows, traffic_rows
from told import told


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


def rows_of(records: Iterable[Record]) -> Rows:
    """Rows of ``profile.tsv`` of some participant jobs."""
    return [row for record in records for row in profile_rows(record)]


def note(places: Places, run: str, **facts: Any) -> None:
    write_json(places.runs / f"{run}.json", {"run": run, **FACTS, **facts})


@pytest.fixture
def places(tmp_path: Path) -> Places:
    return Places(*[tmp_path] * 5)


def test_each_phase_has_its_cpu_and_io_which_add_up_to_wall_and_its_traffic(places: Places) -> None:
    rows, traffic = profile_rows(record("NYU/sub-01", 100.0)), traffic_rows(record("NYU/sub-01", 100.0))
    assert [told(row, "cpu_s io_s") for row in rows] == ["0 0.5", "0.8 0.2", "0 0.5"]
    moved = [told(row, "phase tier written_bytes read_bytes") for row in traffic]
    assert moved == ["stage_in local 7 -", "compute local 7 -", "stage_out local 7 -"]
    for name, each in (("profile", rows), ("traffic", traffic)):
        write_table(places.profile / f"{name}.tsv", name, each)
    assert read_table(places.profile / "profile.tsv", "profile")[1]["site"] == "NYU"


def test_a_run_whose_work_tier_is_gone_has_a_row(places: Places) -> None:
    """As that of a batch job, named by its environment."""
    settings = settings_at(tiers={"gone": tier("$NOT_DEFINED_ANYWHERE")}, placement={"work": "gone"})
    note(places, "r1", settings=settings.to_json())
    assert [row["makespan_s"] for row in run_rows(places, rows_of([record("a/sub-1", 100.0)]), [], 1)] == [2.0]


def test_makespan_and_parallelism(places: Places) -> None:
    """Jobs of 2 s from 100, 101 and 104 s: makespan 6 s, 6 job seconds, two at once for 1 s."""
    rows = rows_of([record("a/sub-1", 100.0), record("a/sub-2", 101.0), record("a/sub-3", 104.0)])
    note(places, "r1", ended_s=1)
    (run,) = run_rows(places, rows, [], 3)
    names = "makespan_s mean_parallelism peak_parallelism wall_sum_s cpu_sum_s participants"
    assert told(run, names) == "6 1 2 6 2.4 3"
    assert run["limited_by"] == (
        "1.0 ran at once on average: fewer at the first start, at the last end or between two jobs"
    )


def test_memory_that_keeps_jobs_waiting_is_named(places: Places) -> None:
    """brainextractor is taken to need 500 MB: of 1,200 MB there is room for two."""
    rows = rows_of([record(f"a/sub-{number}", 100.0 + 2 * (number > 1)) for number in range(4)])
    note(places, "r1", ended_s=1, parallelism=4, limits={"mem_mb": 1200})
    (run,) = run_rows(places, rows, [], 4)
    assert run["limited_by"] == "memory has room for 2 at once (500 MB each, 1,200 MB)"


def test_nothing_is_said_to_limit_a_run_that_ended_before_all_were_done(places: Places) -> None:
    """Who was running when it was killed may have run beside the two of which there are times."""
    note(places, "r1", parallelism=2)
    (run,) = run_rows(places, rows_of([record("sub-1", 100.0), record("sub-2", 102.0)]), [], 3)
    assert run["limited_by"] is None


def test_memory_in_which_all_have_room_is_not_named(places: Places) -> None:
    """Though there are fewer of whom there are times than were asked for: the others were not done when it ended."""
    note(places, "r1", parallelism=25, limits={"mem_mb": 240_000})
    (run,) = run_rows(places, rows_of([record(f"sub-{number}", 100.0 + number) for number in range(10)]), [], 30)
    assert run["limited_by"] == "jobs of 2 s were over before more than 2 could be started, one every 1.00 s"


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
    note(places, "r1", **facts)
    rows = profile_rows(record("sub-1", 100.0))
    (run,) = run_rows(places, rows, failures, everyone)
    assert run["valid"] == validity
    (run,) = run_rows(places, [row | {"account_reason": STOPPED} for row in rows], failures, everyone)
    assert "participants were suspended and resumed during the run" in run["valid"]


@pytest.mark.parametrize(("set_by_s", "valid"), [(0.5, "valid"), (-3600, "invalid: the machine's clock was set ")])
def test_a_clock_that_is_set_spoils_the_times_of_a_run(places: Places, set_by_s: float, valid: str) -> None:
    note(places, "r1", ended_s=1)
    places.readings("r1").write_text(f"100 50 0 0 0 0\n{110 + set_by_s} {50 + set_by_s} 0 0 0 0\n")
    (run,) = run_rows(places, profile_rows(record("sub-1", 100.0)), [], 1)
    assert run["valid"].startswith(valid)


APART = "the machine's clock was set during the run, or clocks of nodes differ"


@pytest.mark.parametrize(
    ("off_s", "valid"),
    [(0, "valid"), *((off_s, f"invalid: {APART}") for off_s in (-3600, 3600))],
)
def test_a_node_whose_clock_is_off_spoils_the_times_of_a_run(places: Places, off_s: float, valid: str) -> None:
    """Its participants seem to have begun before the head, or to have ended after it."""
    note(places, "r1", elsewhere=True, ended_s=110)
    (run,) = run_rows(places, rows_of([record("sub-1", 100.0), record("sub-2", 100.0 + off_s)]), [], 2)
    assert run["valid"] == valid


def test_a_run_in_which_everyone_failed_has_a_row(places: Places) -> None:
    note(places, "r1", ended_s=1)
    (run,) = run_rows(places, [], [{"run": "r1"}], 1)
    assert told(run, "participants failed makespan_s") == "0 1 -"
    write_table(places.profile / "runs.tsv", "runs", [run])


def test_a_run_beside_others_is_disturbed_as_far_as_they_may(places: Places) -> None:
    """Jobs from 100 to 106 s on two processors, of which others take 31 %; the readings go with the final row."""
    records = {name: record(name, start_s) for name, start_s in (("sub-1", 100.0), ("sub-2", 104.0))}
    rows = rows_of(records.values())
    readings = places.readings("r1")
    readings.parent.mkdir(parents=True)
    readings.write_text("99 0 50 10 5 0\n107 0 62.96 18 5 0\n")
    for most, validity in ((0.1, "invalid: disturbed: others took 31 % of the CPU time"), (0.35, "valid")):
        settings = {**FACTS["settings"], "validity": {"others_cpu_share": most}}
        note(places, "r1", ended_s=1, host="h", cpus=2, settings=settings)
        (run,) = run_rows(places, rows, [], 2)
        assert told(run, "valid others_cpu_share") == f"{validity} 0.31"
    for name, one in records.items():
        write_json(places.record(name), one)
    close_run(places, "r1", [*records], [])
    assert not readings.exists()
    (closed,) = run_rows(places, [], [], 2)
    assert closed["others_cpu_share"] == pytest.approx(0.31)


def test_run_that_is_over_keeps_its_row(places: Places) -> None:
    """Run r1 failed one of two; r2 mends it, and redoes the other: r1 stays what it was."""
    note(places, "r1", ended_s=1)
    write_json(places.record("sub-1"), record("sub-1", 100.0, "r1"))
    close_run(places, "r1", ["sub-1", "sub-2"], [{"run": "r1"}])
    note(places, "r2")
    rows = rows_of([record("sub-1", 5000.0, "r2"), record("sub-2", 5000.0, "r2")])
    first, second = run_rows(places, rows, [], 2)
    assert told(first, "valid participants makespan_s") == "invalid: 1 participant failed 1 2"
    assert told(second, "participants failed") == "2 0"


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
    note(places, "r1", ended_s=1.0)
    rows = profile_rows(record("sub-01", 100.0))
    whole = [row | {"account": "exact", "account_user_s": row["user_s"]} for row in rows]
    for wall_s, expected in ((0.0, pytest.approx(0.8)), (0.01, pytest.approx(0.8)), (0.1, None)):
        (run,) = run_rows(places, [*whole, rows[0] | {"phase": "start_up", "wall_s": wall_s}], [], 1)
        assert run["account_user_sum_s"] == expected


@pytest.mark.parametrize("wrong", [{"wall_s": "1"}, {"phase": "lunch"}, {"participant": None}, {"more": 1}])
def test_a_row_that_does_not_satisfy_its_schema_is_refused(places: Places, wrong: dict[str, Any]) -> None:
    rows = profile_rows(record("NYU/sub-01", 100.0))
    table = places.profile / "profile.tsv"
    with pytest.raises(JsonSchemaValueException):
        write_table(table, "profile", [*rows, rows[0] | wrong])
    assert not list(places.profile.iterdir()), "neither the table nor a part of it"
