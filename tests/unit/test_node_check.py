"""The check of a node: what is there, what is shared, and what is wrong, without a trace left."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

from configured import settings_at, tier
from neurotier.core.places import Places
from neurotier.core.private import private_folder
from neurotier.core.settings import Settings
from neurotier.core.tables import Row, checker
from neurotier.core.tiers import find_mount
from neurotier.run.node_check import check_lines, check_node, mark_tiers, problems, remove_marks


def configured(folder: Path, **tiers: dict[str, Any]) -> tuple[Settings, Places]:
    """Settings with a tier ``disk`` that holds all roles, and others."""
    settings = settings_at(folder, tiers=tiers)
    return settings, Places.from_settings(settings)


def checked(settings: Settings, places: Places, marks: dict[str, str] | None = None) -> dict[str, Row]:
    """Rows by tier; all satisfy the table's schema."""
    rows = check_node(settings, places, "thin", marks)
    for row in rows:
        checker("check")(row)
    assert len(check_lines(rows)) == len(rows) + 3
    return {row["tier"]: row for row in rows}


def test_tier_with_the_same_file_is_shared(tmp_path: Path) -> None:
    own = tmp_path / "own"
    own.mkdir()
    settings, places = configured(tmp_path, other=tier(own), node=tier(own, node=True))
    marks = mark_tiers(settings, places)
    assert marks.keys() == {"disk", "other"}
    marks["other"] = "of another folder with the same path"
    rows = checked(settings, places, marks)
    assert {name: row["shared"] for name, row in rows.items()} == {"disk": True, "other": False, "node": False}
    assert all(row["writable"] and row["problem"] is None for row in rows.values())
    remove_marks(settings, places)
    assert list(tmp_path.iterdir()) == [own]
    assert list(own.iterdir()) == []
    assert checked(settings, places)["disk"]["shared"] is None  # on one machine


def test_what_cannot_be_used_says_why(tmp_path: Path, mount_tmpfs: Callable[..., Path]) -> None:
    read_only = mount_tmpfs(tmp_path / "read-only", "size=1m")
    subprocess.run(["mount", "-o", "remount,ro", str(read_only)], check=True)
    planted = tmp_path / "planted"
    planted.mkdir()
    private_folder(planted).symlink_to(tmp_path)
    settings, places = configured(
        tmp_path,
        gone=tier("/nowhere/gone"),
        wrong=tier(tmp_path, kind="network"),
        closed=tier(read_only),
        planted=tier(planted),
        unknown=tier("$NOT_DEFINED_ANYWHERE", node=True),
    )
    rows = checked(settings, places, mark_tiers(settings, places))

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
        sections: dict[str, Any] = {"tiers": {"gone": tier("/nowhere")}, section: {"tiers": ["gone"]}}
        used = settings_at(tmp_path, **sections)
        (line,) = problems(list(checked(used, places).values()))
        assert "/nowhere" in line


def test_a_tier_that_is_only_read_is_not_written_to(tmp_path: Path) -> None:
    study = tmp_path / "study"
    study.mkdir()
    settings, places = configured(tmp_path, study=tier(study, read_only=True))
    before_ns = study.stat().st_mtime_ns
    row = checked(settings, places, mark_tiers(settings, places))["study"]
    assert (row["there"], row["writable"], row["shared"], row["problem"]) == (True, False, None, None)
    assert study.stat().st_mtime_ns == before_ns


def test_a_fifo_in_the_place_of_the_mark_blocks_nobody(tmp_path: Path) -> None:
    """On a node the folder may be somebody else's, who waits there for a reader."""
    settings, places = configured(tmp_path)
    marks = mark_tiers(settings, places)
    (mark,) = tmp_path.rglob("mark")
    mark.unlink()
    os.mkfifo(mark)
    assert checked(settings, places, marks)["disk"]["shared"] is False
    remove_marks(settings, places)
    assert not mark.exists()
