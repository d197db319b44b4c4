"""All storage workloads: what is wrong is said in a line before any is measured; points are kept, and shown."""

from __future__ import annotations

import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from neurotier.core.errors import SettingsError, TierError, ToolError
from neurotier.core.tables import Row, read_table
from neurotier.pages.kit.findings import tiers
from neurotier.storage.workload import write_tables
from page_reader import page_of
from workloads import TINY_IOR, TINY_SWEEP, left, run, settings_of


def sweep_of(**changes: Any) -> dict[str, Any]:
    return {"sets": {"a": TINY_SWEEP | changes}}


SECTIONS: dict[str, dict[str, Any]] = {
    "sweep": sweep_of(),
    "daq": {"writers": [1, 2], "rate": "2 MB", "seconds": 0.2},
    "ior": TINY_IOR,
    "staging": {
        "engines": ["adios2-bp5"],
        "sets": {"a": {"writers": [1], "readers": [1], "bytes": "1 MiB"}},
        "steps": 2,
    },
}


@pytest.mark.parametrize(
    ("target", "changes", "line"),
    [
        *((target, {"tiers": []}, "tiers: there is nothing to measure; take one") for target in SECTIONS),
        ("sweep", {"sets": {}}, "sets: there is nothing to measure"),
        ("sweep", {"tiers": ["fsat"]}, "tiers: no tier is named 'fsat'; did you"),
        ("sweep", sweep_of(block_sizes=["2 MiB"]), "sets.a.block_sizes: a block"),
        ("sweep", sweep_of(file_size="much"), "sets.a.file_size: 'much' is not"),
        ("sweep", sweep_of(file_size="8 MiB"), "tier 'fast': sweep set 'a' needs 16 MiB (2 files of"),
        ("daq", {"rate": 100}, "rate: less than a record comes per second"),
        ("daq", {"rate": "fast"}, "rate: 'fast' is not a size"),
        ("daq", {"together": [["fast"]]}, "together: at least two tiers of daq.tiers"),
        ("daq", {"rate": "1 GB"}, "tier 'fast': daq set 'psync' needs "),
        ("ior", {"block_size": "3 MiB"}, "block_size: blocks do not fill a file"),
        ("ior", {"file_size": "much"}, "file_size: 'much' is not a size"),
        ("ior", {"file_size": "1 GiB"}, "tier 'fast': ior set 'none' needs 2 GiB (2 files of 1 GiB)"),
        ("ior", {"nodes": [2]}, "target ior: nothing was measured: 2 points left out: several nodes need Slurm"),
        ("staging", {"sets": {"a": {"bytes": "4"}}}, "sets.a.bytes: 4 cannot be divided"),
    ],
)
def test_what_is_wrong_is_said_in_a_line(
    tmp_path: Path, memory: Path, target: str, changes: dict[str, Any], line: str
) -> None:
    """Of a tier, of the target, or of a key of its section."""
    errors = {"tier 'fast'": TierError, "target ior": ToolError}
    error = errors.get(line.partition(":")[0], SettingsError)
    where = f"config key {target}." if error is SettingsError else ""
    with pytest.raises(error) as raised:
        run(target, settings_of(target, tmp_path / "results", {"fast": memory}, **SECTIONS[target] | changes))
    assert str(raised.value).startswith(f"{where}{line}")


@pytest.mark.parametrize("target", SECTIONS)
def test_points_are_measured_once_and_shown(
    tmp_path: Path, memory: Path, target: str, request: pytest.FixtureRequest
) -> None:
    if target == "staging":
        request.getfixturevalue("staging_engines")
    settings, said = settings_of(target, tmp_path / "results", {"fast": memory}, **SECTIONS[target]), list[str]()
    tables = run(target, settings, said.append)
    rows = tables[target]
    assert {row["status"] for row in rows} == {"measured"}, rows
    assert said[0].startswith(f"0 of {len(rows)} point")
    assert not left(memory)
    assert run(target, settings, said.append) == tables
    assert said[-1].startswith(f"{len(rows)} of {len(rows)} point")
    write_tables({target: rows}, {target: str(tmp_path / "table.tsv")})
    assert len(read_table(tmp_path / "table.tsv", target)) == len(rows)
    spoilt = [rows[0] | {"status": "failed: <b>cable</b>"}]
    (tier,) = tiers([*rows, rows[0] | {"kernel": "of-then"}], "").rows or []
    assert tier["kernel"] == f"{rows[0]['kernel']}, of-then", "points that are kept may be of an earlier kernel"
    sentences, reader = page_of(target, tmp_path, settings, **tables | {target: [*rows, *spoilt]})
    assert sentences
    assert all(f"{sentence}." in reader.text for sentence in sentences)
    assert "<b>cable</b>" in reader.text
    nothing: dict[str, list[Row]] = {name: [] for name in tables} | {target: spoilt}
    said, reader = page_of(target, tmp_path, settings, **nothing)
    assert said[0].startswith("Nothing was measured")
    assert "0 of 1 point measured" in reader.text
    assert "checksum of its writer" not in reader.text


@pytest.mark.parametrize("target", ["daq", "ior", "sweep"])
def test_a_tier_that_goes_away_meanwhile_is_told_by_what_could_not_be_measured(
    tmp_path: Path, mount_tmpfs: Callable[..., Path], target: str
) -> None:
    tier = mount_tmpfs(tmp_path / "tier", "size=32m")
    many = {"daq": {"writers": [1, 2, 3, 4, 5]}, "ior": {"processes": [1, 2, 3, 4, 5]}, "sweep": {}}[target]
    settings = settings_of(target, tmp_path / "results", {"fast": tier}, **SECTIONS[target] | many)

    def say(line: str) -> None:
        if line.startswith("point 1 of"):
            subprocess.run(["umount", "--lazy", tier], check=True)

    try:
        with pytest.raises(ToolError, match="fio cannot be started: No such file or directory"):
            run(target, settings, say)
    finally:
        subprocess.run(["mount", "-t", "tmpfs", "tmpfs", tier], check=True)  # as it is to be found afterwards
