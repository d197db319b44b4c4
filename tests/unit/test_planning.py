"""Planning: limits of shared resources, and what each participant asks of them."""

from __future__ import annotations

from pathlib import Path

import pytest
from configured import settings_at
from neurotier.core.files import write_json
from neurotier.core.places import Places
from neurotier.run.plan import Plan
from pool_jobs import image, write_index


def plan(folder: Path, capacity: str, size_bytes: int, tool: str = "brainextractor") -> Plan:
    """A plan for one participant with two images."""
    disk = {"path": str(folder), "kind": "block", "capacity": capacity}
    settings = settings_at(tiers={"disk": disk}, tool={"name": tool})
    places = Places.from_settings(settings)
    write_index(places, [image("01", size_bytes)] * 2)
    return Plan(settings, places)


def test_job_that_cannot_fit_asks_for_all_there_is(tmp_path: Path) -> None:
    """Snakemake refuses the whole run otherwise; the job itself says what it misses."""
    assert plan(tmp_path, "50 MB", 10_000_000).of("sub-01").work_mb == 50


@pytest.mark.parametrize(("tool", "mem_mb"), [("brainextractor", 3100), ("bet", 600), ("noop", 100)])
def test_memory_is_asked_for_by_tool_and_size(tmp_path: Path, tool: str, mem_mb: int) -> None:
    made = plan(tmp_path, "1 GB", 10_000_000, tool)
    made.room["mem_mb"] = 10**6
    assert made.of("sub-01").mem_mb == mem_mb


def test_without_an_index_nobody_is_known_to_be_complete(tmp_path: Path) -> None:
    """Or the target participants would be finished, though the damage that took the index may have taken more."""
    made = plan(tmp_path, "1 GB", 1)
    markers = [made.places.complete, made.places.share("calibration.7")]
    for marker in markers:
        write_json(marker, {"participants": 1})
    (made.places.index / "images.tsv").unlink()
    made.settle({}, forced=False, slots=1, write=False)
    assert all(marker.exists() for marker in markers), "a command that only looks changes nothing"
    made.settle({}, forced=False, slots=1)
    assert not any(marker.exists() for marker in markers)


def test_without_an_index_nothing_is_removed_where_a_planted_link_leads(tmp_path: Path) -> None:
    made, precious = plan(tmp_path, "1 GB", 1), tmp_path / "precious"
    write_json(precious / "calibration.7", {})
    made.places.state.mkdir(parents=True, exist_ok=True)
    (made.places.state / "shares").symlink_to(precious)
    (made.places.index / "images.tsv").unlink()
    made.settle({}, forced=False, slots=1)
    assert (precious / "calibration.7").exists()
