"""Tiers: what a path is really on, how much room there is, and the check of a node: what is there, shared and wrong,
without a trace left."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

import psutil
import pytest
from configured import settings_at
from configured import tier as given
from neurotier.core.configuration import config_schema
from neurotier.core.errors import SettingsError, TierError
from neurotier.core.kinds import KINDS
from neurotier.core.places import Places
from neurotier.core.private import private_folder
from neurotier.core.settings import Settings, TierSettings
from neurotier.core.tables import Row, checker
from neurotier.core.tiers import Mount, Tier, find_mount, parse_size, tiers_of, with_tiers_for_folders
from neurotier.run.node_check import check_lines, check_node, mark_tiers, problems, remove_marks
from shown_values import shown


def tier(path: Path | str, kind: str = "block", capacity: str | int | None = None, node: bool = False) -> Tier:
    return Tier.from_settings(TierSettings("t", str(path), kind, capacity, node=node))


@pytest.mark.parametrize(
    ("fs_type", "options", "kind"),
    [
        ("tmpfs", "rw", "tmpfs"),
        ("nfs4", "rw,vers=4.2", "network"),
        ("lustre", "rw", "network"),
        ("xfs", "rw,noatime,dax=always", "fsdax"),
        ("ext4", "rw,dax", "fsdax"),
        ("ext4", "rw,dax=never", "block"),
        ("overlay", "rw", "block"),
    ],
)
def test_kind_of_a_mounted_file_system(fs_type: str, options: str, kind: str) -> None:
    assert Mount("source", "/m", fs_type, options).kind == kind


def test_a_kind_that_may_be_declared_is_one_that_is_known() -> None:
    declared = config_schema()["properties"]["tiers"]["additionalProperties"]["properties"]["kind"]["enum"]
    assert sorted(declared) == sorted(KINDS), "the schema of the configuration and core/kinds.py list the same kinds"


def test_mount_below_another_is_found(tmp_path: Path, mount_tmpfs: Callable[..., Path]) -> None:
    folder = mount_tmpfs(tmp_path / "fast disk", "size=4m,mode=0700")
    (folder / "below").mkdir()
    assert shown(find_mount(folder / "below"), "mount_point fs_type") == f"{folder} tmpfs"
    facts = tier(folder, "tmpfs").facts()
    assert facts["free_bytes"] == 4 * 2**20
    assert "size=4096k" in facts["mount_options"]


def test_in_a_chroot_a_path_that_is_not_there_is_on_nothing_that_is_known(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Which was a trace; what is there is on a file system whose type alone is known."""
    monkeypatch.setattr(psutil, "disk_partitions", lambda **_: [])
    assert find_mount(tmp_path).fs_type
    assert not find_mount(tmp_path / "gone").fs_type


def test_sizes_are_as_people_write_them() -> None:
    assert [parse_size(text, "x") for text in ("1.5kB", "2 tb", ".5 Mi", "7 B")] == [1500, 2 * 10**12, 1 << 19, 7]
    for text in ("5 potatoes", "1.2.3 GB", "", "GB", ".", "-1 GB", "1 iB"):
        with pytest.raises(SettingsError, match="is not a size"):
            parse_size(text, "x")


def test_link_to_another_tier_is_seen_through(tmp_path: Path) -> None:
    (tmp_path / "link").symlink_to("/dev/shm")
    with pytest.raises(TierError, match=r"declared as 'block', but .* is on tmpfs"):
        tier(tmp_path / "link").check()


def test_capacity_limits_what_is_free(tmp_path: Path) -> None:
    assert tier(tmp_path, "block", "1 MiB").free_bytes() == 2**20
    assert tier(tmp_path, "block", 2**60).free_bytes() < 2**60


def test_variables_are_expanded_or_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SLURM_TMPDIR", "/local/job")
    assert tier("$SLURM_TMPDIR/x").path == Path("/local/job/x")
    monkeypatch.delenv("SLURM_TMPDIR")
    with pytest.raises(SettingsError, match=r"tiers\.t\.path"):
        tier("$SLURM_TMPDIR/x")


def test_a_nodes_tier_is_found_and_made_by_the_job(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("SLURM_JOB_ID", raising=False)
    own = tier(tmp_path / "$SLURM_JOB_ID" / "x", node=True)
    own.check()  # nothing to check where the workflow is started
    assert own.facts()["free_bytes"] is None
    with pytest.raises(SettingsError, match="SLURM_JOB_ID"):
        own.here()
    monkeypatch.setenv("SLURM_JOB_ID", "7")
    assert own.here().path == tmp_path / "7" / "x"
    own.here().check()
    with pytest.raises(TierError, match="declared as 'tmpfs'"):
        tier(tmp_path / "$SLURM_JOB_ID", "tmpfs", node=True).here().check()


def test_a_nodes_tier_is_not_made_where_its_mount_is_missing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SLURM_JOB_ID", "7")
    monkeypatch.setenv("SLURM_TMPDIR", str(tmp_path / "gone"))
    for path in (tmp_path / "local" / "$SLURM_JOB_ID", "$SLURM_TMPDIR/x", tmp_path / "fixed"):
        with pytest.raises(TierError, match="is not an existing folder"):
            tier(path, node=True).here()
    assert list(tmp_path.iterdir()) == []


def test_what_is_each_nodes_own_is_not_looked_at_from_elsewhere(tmp_path: Path) -> None:
    """A disk that holds what all jobs share is one that they share; memory and other disks are not."""
    for work, kind, looked_at in (("gone", "block", False), ("gone", "network", True), ("disk", "block", True)):
        gone = {"path": str(tmp_path / "gone"), "kind": kind}
        settings = settings_at(tmp_path, tiers={"gone": gone}, placement={"work": work})
        assert tiers_of(settings, on_cluster=True)["work"].node != looked_at
        assert not tiers_of(settings)["work"].node


@pytest.mark.parametrize(
    ("key", "value", "why"),
    [
        (
            "placement",
            {"work": "results", "images": "results", "results": ["x"]},
            r"\.results: \['x'\] is not of type 'string'",
        ),
        ("results", "/x", ": '/x' is an absolute path, which makes a tier named 'results', and there is one"),
    ],
)
def test_folders_that_cannot_be_placed_are_said_by_key(key: str, value: object, why: str, tmp_path: Path) -> None:
    tiers = {"results": {"path": ".", "kind": "block"}}
    config = {"dataset": {"source": str(tmp_path)}, "tiers": tiers, "placement": {}, key: value}
    with pytest.raises(SettingsError, match=f"^config key {key}{why}"):
        Settings.from_config(with_tiers_for_folders(config))


def checked(settings: Settings, marks: dict[str, str] | None = None) -> dict[str, Row]:
    """Rows by tier; all satisfy the table's schema."""
    rows = check_node(settings, Places.from_settings(settings), "thin", marks)
    for row in rows:
        checker("check")(row)
    assert len(check_lines(rows)) == len(rows) + 3
    return {row["tier"]: row for row in rows}


def test_tier_with_the_same_file_is_shared_and_one_that_is_only_read_is_not_written_to(tmp_path: Path) -> None:
    """Where the folder is somebody else's on a node, a FIFO in the place of the mark waits for a reader: for ever."""
    own, study = tmp_path / "own", tmp_path / "study"
    own.mkdir()
    study.mkdir()
    before_ns = study.stat().st_mtime_ns
    tiers = {"other": given(own), "node": given(own, node=True), "study": given(study, read_only=True)}
    settings = settings_at(tmp_path, tiers=tiers)
    places = Places.from_settings(settings)
    marks = mark_tiers(settings, places)
    assert marks.keys() == {"disk", "other"}
    marks["other"] = "of another folder with the same path"

    def shared() -> dict[str, bool | None]:
        rows = checked(settings, marks)
        assert {name for name, row in rows.items() if row["writable"]} == {"disk", "other", "node"}
        assert all(row["there"] and row["problem"] is None for row in rows.values())
        return {name: row["shared"] for name, row in rows.items()}

    seen = {"disk": True, "other": False, "node": False, "study": None}
    assert shared() == seen
    (mark,) = set(tmp_path.rglob("mark")) - set(own.rglob("mark"))
    mark.unlink()
    os.mkfifo(mark)
    assert shared() == seen | {"disk": False}
    remove_marks(settings, places)
    assert sorted(tmp_path.rglob("*")) == [own, study]
    assert study.stat().st_mtime_ns == before_ns
    assert checked(settings)["disk"]["shared"] is None  # on one machine


def test_what_cannot_be_used_says_why(tmp_path: Path, mount_tmpfs: Callable[..., Path]) -> None:
    read_only = mount_tmpfs(tmp_path / "read-only", "size=1m")
    subprocess.run(["mount", "-o", "remount,ro", str(read_only)], check=True)
    planted = tmp_path / "planted"
    planted.mkdir()
    private_folder(planted).symlink_to(tmp_path)
    tiers = {
        "gone": given("/nowhere/gone"),
        "wrong": given(tmp_path, kind="network"),
        "closed": given(read_only),
        "planted": given(planted),
        "unknown": given("$NOT_DEFINED_ANYWHERE", node=True),
    }
    settings = settings_at(tmp_path, tiers=tiers)
    rows = checked(settings, mark_tiers(settings, Places.from_settings(settings)))

    def those(column: str) -> set[str]:
        return {name for name, row in rows.items() if row[column]}

    assert rows.keys() - those("problem") == {"disk"}
    assert those("writable") == {"disk", "wrong"}
    assert those("there") == {"disk", "wrong", "closed", "planted"}
    assert rows["wrong"]["found_kind"] == find_mount(tmp_path).kind
    assert "read-only" in rows["closed"]["problem"]
    assert "is a link made by user root" in rows["planted"]["problem"]
    assert problems(list(rows.values())) == []  # nothing of that is in use
    for section in ("probe", "bigbrain", "daq"):
        used: dict[str, Any] = {section: {"tiers": ["gone"]}}
        (line,) = problems([*checked(settings_at(tmp_path, tiers=tiers, **used)).values()])
        assert "/nowhere" in line
