"""What a killed run leaves: its row is final before the next start removes what it is made from."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from neurotier.core.files import write_json, write_text
from neurotier.core.places import Places
from neurotier.core.settings import ROLES, Settings
from neurotier.core.tables import write_table
from neurotier.core.tiers import find_mount
from neurotier.meter.usage import Usage
from neurotier.run.hooks import look_ahead
from neurotier.run.participants import checksum_of
from neurotier.run.plan import Plan
from neurotier.run.snakemake_internals import Command
from neurotier.run.start import held

NAMES = ("sub-01", "sub-02", "sub-03")


def image_row(name: str) -> dict[str, Any]:
    label = name.removeprefix("sub-")
    path = f"{name}/anat/{name}_T1w.nii.gz"
    about = {"site": "", "session": None, "bids_run": None, "content": "MD5E-s1000--0", "size_bytes": 1000}
    return {"participant": name, "label": label, "path": path, **about}


def record(name: str, start_s: float) -> dict[str, Any]:
    """A participant of run r1, analysed in 2 s."""
    usage = Usage(start_s)
    usage.end_s, usage.wall_s = start_s + 2, 2.0
    phase = {"phase": "compute", **usage.record(), "staged_bytes": None, "traffic": []}
    about = {"participant": name, "run": "r1", "host": "h", "tool": "noop", "work_tier": "local"}
    return {**about, "analysis": "of before", "derivatives": {}, "images": [], "phases": [phase]}


@pytest.fixture
def plan(tmp_path: Path) -> Plan:
    """A results folder in which run r1 was killed after two of three participants; since then the tool is another."""
    tiers = {"local": {"path": str(tmp_path), "kind": find_mount(tmp_path).kind}}
    config = {"tiers": tiers, "placement": dict.fromkeys(ROLES, "local"), "results": "results"}
    settings = Settings.from_config({**config, "tool": {"name": "noop"}})
    places = Places.from_settings(settings)
    write_table(places.index / "images.tsv", "images", map(image_row, NAMES))
    write_text(places.index / "images.sha256", checksum_of((places.index / "images.tsv").read_bytes()))
    write_table(places.index / "skipped.tsv", "skipped", [])
    write_json(places.index / "dataset.json", {"kind": "datalad", "source": "demo", "path": str(tmp_path / "clone")})
    for number, name in enumerate(NAMES[:2]):
        places.analysed(name, by_app=False).mkdir(parents=True)
        write_json(places.record(name), record(name, 100.0 + number))
    facts = {"cores": 2, "parallelism": 2, "limits": {}, "oversubscribed": False, "analysis": "noop", "image": None}
    facts |= {"settings": settings.to_json(), "tiers": {role: {"name": "local"} for role in ROLES}, "started_s": 99.0}
    write_json(places.runs / "r1.json", {"run": "r1", **facts})
    return Plan(settings, places)


@pytest.mark.parametrize("damage", ["", "derivatives", "record", "facts of another run"])
def test_a_killed_run_has_its_row_though_the_next_one_removes_its_records(plan: Plan, damage: str) -> None:
    places, count = plan.places, 2
    if damage == "derivatives":  # healing removes both records
        for name in NAMES[:2]:
            places.analysed(name, by_app=False).rmdir()
    elif damage == "record":
        places.record("sub-02").write_text('{"derivatives": []}')
        count = 1
    elif damage:
        (places.runs / "r0.json").write_text("{")
    facts = places.runs / "r1.json"
    before = {file: file.read_bytes() for file in places.results.rglob("*") if file.is_file()}
    look_ahead(plan, Command(starts=False, is_dry_run=True), 2)
    assert before == {file: file.read_bytes() for file in places.results.rglob("*") if file.is_file()}
    try:
        look_ahead(plan, Command(starts=True), 2)
    finally:
        held.pop(places.lock.absolute(), None)
    assert not any(places.record(name).exists() for name in NAMES)
    row = json.loads(facts.read_text())["row"]
    left = f"{3 - count} participant{'s' * (count == 1)} not run"
    assert (row["participants"], row["valid"]) == (count, f"invalid: the run was killed; {left}")
