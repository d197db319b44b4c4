"""Rows of the comparison from results folders, against what the folders were made with."""

from __future__ import annotations

import os
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from neurotier.core.errors import InputError
from neurotier.core.files import read_json, write_json
from neurotier.core.tables import read_table
from neurotier.meter.traffic import flow
from neurotier.pages.comparison.verdict import Comparison
from neurotier.run.compared import (
    read_comparison_tables,
    runs_of_results,
    tier_bytes,
    write_comparison_tables,
)
from report_data import EARLIER, IMAGE_BYTES, RUN, make_results
from shown_values import shown


def test_a_results_folder(tmp_path: Path) -> None:
    places, _ = make_results(tmp_path / "a", 12, slots=3)
    compared = runs_of_results(places.results, "campaign", repetition=2, cache="cold")
    (run,) = compared.runs
    (own,) = read_table(places.profile / "runs.tsv", "runs")
    shared = run.keys() & own.keys() - {"cache"}
    assert {name: run[name] for name in shared} == {name: own[name] for name in shared}
    about = "origin placement parallelism repetition cache valid input_resident_before"
    assert shown(run, about) == "campaign disk 3 2 cold valid 1"
    profile = read_table(places.profile / "profile.tsv", "profile")
    assert len(compared.participants) == len(profile)
    assert sum(row["wall_s"] for row in compared.participants) == pytest.approx(run["wall_sum_s"])
    # Staged in and out: read and written; the analysis left as much again.
    (moved,) = compared.traffic
    names = "origin run tier read_bytes written_bytes"
    assert shown(moved, names) == f"campaign {RUN} disk {24 * IMAGE_BYTES} {36 * IMAGE_BYTES}"
    write_comparison_tables(compared, tmp_path / "comparison")
    back = read_comparison_tables(tmp_path / "comparison")
    assert back.runs == [pytest.approx(run)]
    assert back.traffic == compared.traffic


@pytest.mark.parametrize("kind", ["tmpfs", "fsdax"])
def test_inputs_in_memory_have_no_page_cache_before_them(tmp_path: Path, kind: str) -> None:
    """Whatever the kernel says of their files."""
    places, _ = make_results(tmp_path, 3)
    facts = places.runs / f"{RUN}.json"
    written = read_json(facts)
    written["tiers"]["dataset"]["kind"] = kind
    write_json(facts, written)
    (run,) = runs_of_results(places.results, "campaign", "memory", cache="cold").runs
    assert shown(run, "cache input_resident_before") == "memory -"


def test_a_run_that_did_the_rest_is_not_compared(tmp_path: Path) -> None:
    places, _ = make_results(tmp_path, 10, earlier=4)
    found = runs_of_results(places.results, "campaign")
    assert {run["run"]: run["valid"] for run in found.runs} == {
        EARLIER: "invalid: 4 of 10 participants only, the others are from other runs",
        RUN: "invalid: 6 of 10 participants only, the others are from other runs",
    }
    assert Comparison(found.runs).conditions == {}


def test_records_that_are_gone_leave_no_partial_sums(tmp_path: Path) -> None:
    places, _ = make_results(tmp_path, 4)
    for name in ("profile", "traffic"):
        table = places.profile / f"{name}.tsv"
        lines = table.read_text().splitlines(keepends=True)
        table.write_text("".join(line for line in lines if "sub-01" not in line))
    found = runs_of_results(places.results, "campaign")
    (run,) = found.runs
    assert run["valid"] == "invalid: later runs have replaced the records of 1 participant"
    assert shown(run, "participants input_resident_before") == "4 -"
    assert found.traffic == []


def changing(old: str, new: str) -> Callable[[Path], object]:
    """Changes a file."""
    return lambda file: file.write_text(re.sub(old, new, file.read_text()))


def fifo_in_its_place(file: Path) -> None:
    file.unlink()
    os.mkfifo(file)


@pytest.mark.parametrize(
    ("name", "damage"),
    [
        ("runs", changing("makespan_s", "makespan")),
        ("runs", changing("\tvalid\t", "\tmaybe\t")),
        ("profile", changing("\tcompute\t", "\tthink\t")),
        ("profile", changing(r"\t\d+\.\d+", "\tinf")),
        ("traffic", changing(r"\t\d+\t", "\t" + 40 * "1" + "\t")),
        ("traffic", Path.unlink),
        ("runs", fifo_in_its_place),
    ],
)
def test_a_folder_that_cannot_be_read_is_a_clear_error(
    tmp_path: Path, name: str, damage: Callable[[Path], object]
) -> None:
    """Nor is one in which somebody has changed something."""
    places, _ = make_results(tmp_path, 2)
    table = places.profile / f"{name}.tsv"
    damage(table)
    with pytest.raises(InputError) as raised:
        runs_of_results(places.results, "campaign")
    assert raised.value.where == str(table)


def traffic(participant: str, phase: str, *flows: dict[str, Any]) -> list[dict[str, Any]]:
    return [{"run": "r", "participant": participant, "phase": phase, **one} for one in flows]


def test_bytes_are_counted_once() -> None:
    rows = [
        *traffic("a", "stage_in", flow("nfs", "staging", read=(100, 1)), flow("nfs", "device", read=(900, None))),
        *traffic("a", "stage_in", flow("disk", "staging", written=(100, 1)), flow("disk", "cgroup", written=(128, 1))),
        *traffic("a", "compute", flow("disk", "growth", written=(40, 1)), flow("disk", "cgroup", (7, None), (64, 1))),
        *traffic("a", "container_start", flow("disk", "page_cache", read=(1000, 1))),
        *traffic("b", "compute", flow("disk", "cgroup", (3, None), (5, None))),
        *traffic("b", "container_start", flow("ram", "page_cache")),
    ]
    assert tier_bytes(rows) == [
        {"tier": "disk", "read_bytes": 7 + 1000 + 3, "written_bytes": 100 + 40 + 5},
        {"tier": "nfs", "read_bytes": 100, "written_bytes": None},
        {"tier": "ram", "read_bytes": None, "written_bytes": None},
    ]
