"""A tier without inodes: refused beforehand where it is known, named as that where it is found out, waited for."""

from __future__ import annotations

import math
import os
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from neurotier.analysis.staging import check_room, full_tier, naming_full_tier
from neurotier.core.errors import TierError, ToolError
from neurotier.core.places import Places
from neurotier.core.tiers import Tier
from neurotier.run.jobs import load_settings
from neurotier.run.needs import needs_of
from neurotier.run.plan import Plan
from pool_jobs import analysed, prepared_results, rehearsal_of
from shown_values import shown
from support import script

INODES = 1024
MAKER = """# as a pipeline that makes many small files and heeds no exit code of its own steps
seq 5000 | xargs touch || exit 1
"""


@pytest.fixture
def few(tmp_path: Path, mount_tmpfs: Callable[..., Path]) -> Path:
    """A file system with room for 48 MB and for few files."""
    return mount_tmpfs(tmp_path / "few", f"size=48m,nr_inodes={INODES}")


def on(disk: Path) -> dict[str, Any]:
    """Sections of a configuration whose intermediates lie there."""
    return {"tiers": {"small": {"path": str(disk), "kind": "tmpfs"}}, "placement": {"work": "small"}}


def makers_of(files: int, disk: Path, *labels: str) -> Path:
    """A results folder of participants whose tool, a rehearsal, makes so many files of a byte each on a disk."""
    own = disk.parent / "own.yaml"
    own.write_text(rehearsal_of(files=[[files, 1]]))
    tool = {"name": "rehearsal", "rehearsal": {"profile": str(own)}}
    return prepared_results(disk.parent, labels, tool=tool, **on(disk))


def test_a_tool_that_uses_up_the_inodes_is_said_to_have_done_so(few: Path, tmp_path: Path) -> None:
    script(tmp_path / "bin" / "bet", MAKER)
    results = prepared_results(tmp_path / "job", ["01"], tool={"name": "bet"}, **on(few))
    done = analysed(results, "01", str(tmp_path / "bin"))
    assert done.returncode == TierError.exit_code
    assert "tier 'small' is out of inodes" in done.stderr
    assert "No space left" not in done.stderr
    assert done.stderr.count("\n") == 2
    assert not list(few.glob("neurotier-*/work/*/*")), "what was made is removed"


def test_a_participant_that_needs_more_files_than_there_are_inodes_is_not_begun(few: Path) -> None:
    done = analysed(makers_of(4000, few, "01"), "01")
    assert done.returncode == TierError.exit_code
    assert re.search(r"tier 'small' has too few inodes.*4,0", done.stderr), "and how many are needed"


def test_inodes_are_a_resource_that_jobs_wait_for(few: Path) -> None:
    settings = load_settings(makers_of(400, few, "01", "02", "03"))
    plan = Plan(settings, Places.from_settings(settings))
    free = plan.limits()["work_files"]
    assert 900 < free < INODES
    assert 400 < plan.of("sub-01").work_files < 450
    assert needs_of(plan, ["sub-01"])["work_files"] == [plan.of("sub-01").work_files]
    plan.slots = 15
    assert shown(plan.share("1-of-1"), "at_once work_files") == f"3 {free}", "the pool starts no more than fit"


def test_file_systems_without_a_limit_are_never_out_of_inodes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """As btrfs, which has no number of inodes and says 0."""
    facts = os.statvfs(tmp_path)
    none = os.statvfs_result((*facts[:5], 0, 0, 0, *facts[8:]))
    tier = Tier("disk", tmp_path, "block", None)
    monkeypatch.setattr(os, "statvfs", lambda _: none)
    assert tier.free_files() == math.inf
    check_room(tier, 0, 10**12)
    assert "inodes" not in str(full_tier(tier, 0, None, "became full"))


def test_an_error_that_names_no_file_names_the_tier(tmp_path: Path) -> None:
    """Such as that of a flush."""
    with pytest.raises(OSError, match=str(tmp_path)), naming_full_tier(Tier("disk", tmp_path, "block", None), 1):
        raise OSError(5, "Input/output error")


FULL = [("No space left on device: 'x'", r"[\d.]+ [KMGT]iB"), ("Disk quota exceeded", "no more for you of the ")]


@pytest.mark.parametrize(("reason", "said"), FULL, ids=["full", "quota"])
def test_a_tool_that_found_no_room_was_on_a_full_tier(tmp_path: Path, reason: str, said: str) -> None:
    """What is free is not said to be free for a user whose quota is used up. Its words may name another place."""
    match = rf"became full \(bet: {reason}\): {said}"
    with pytest.raises(TierError, match=match), naming_full_tier(Tier("disk", tmp_path, "block", None), 1):
        raise ToolError(f"bet: {reason}")
