"""A tier without inodes: refused beforehand where it is known, named as that where it is found out, waited for."""

from __future__ import annotations

import errno
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml
from conftest import missing
from neurotier.analysis.staging import check_room, full, naming_full_tier
from neurotier.core.errors import TierError, ToolError
from neurotier.core.places import Places
from neurotier.core.settings import ROLES, Settings
from neurotier.core.tiers import Tier, find_mount
from neurotier.run.needs import needs_of
from neurotier.run.plan import Plan
from pool_jobs import prepared_results
from support import ENVIRONMENT, ROOT, script

INODES = 1024
MAKER = """# as a pipeline that makes many small files and heeds no exit code of its own steps
seq 5000 | xargs touch || exit 1
"""


@pytest.fixture(scope="module")
def small_disk(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """An ext4 with room for 40 MB and for few files."""
    folder = tmp_path_factory.mktemp("disk")
    image, place = folder / "image", folder / "mounted"
    place.mkdir()
    with image.open("wb") as file:
        file.truncate(48 << 20)
    path = f"{ENVIRONMENT['PATH']}:/usr/sbin:/sbin"
    made = ["mkfs.ext4", "-q", "-F", "-N", str(INODES), str(image)]
    mounted = ["mount", "-o", "loop", str(image), str(place)]
    for command in (made, mounted):
        if os.getuid() != 0 or subprocess.run(command, env=ENVIRONMENT | {"PATH": path}).returncode != 0:
            missing("a loop device with ext4 needs root and e2fsprogs")
    yield place
    subprocess.run(["umount", str(place)], check=True)


def tiers(folder: Path, work: Path) -> dict[str, Any]:
    """Sections of a configuration whose intermediates lie on a small disk."""
    declared = {"disk": {"path": str(folder), "kind": find_mount(folder).kind}, "small": {"path": str(work)}}
    declared["small"]["kind"] = "block"
    return {"tiers": declared, "placement": dict.fromkeys(ROLES, "disk") | {"work": "small"}}


def job(results: Path, log: Path, path: str = "") -> subprocess.CompletedProcess[str]:
    """One participant job."""
    words = ["analyze-participants", "--only", "sub-01", "--results", str(results), "--log", str(log)]
    environment = {**ENVIRONMENT, "PYTHONPATH": str(ROOT / "workflow")}
    environment["PATH"] = f"{path}{os.pathsep}{environment['PATH']}"
    return subprocess.run([sys.executable, "-m", "neurotier", *words], env=environment, capture_output=True, text=True)


def description(folder: Path, files: int) -> dict[str, Any]:
    """A tool section: a rehearsal that makes so many files of a byte each."""
    data = yaml.safe_load((ROOT / "workflow/neurotier/analysis/rehearsal/profiles/noop.yaml").read_text())
    data["figures"]["files"] = {"value": [[files, 1]], "source": "test"}
    (folder / "own.yaml").write_text(yaml.safe_dump(data))
    return {"name": "rehearsal", "rehearsal": {"profile": str(folder / "own.yaml")}}


def test_a_tool_that_uses_up_the_inodes_is_told_so(small_disk: Path, tmp_path: Path) -> None:
    script(tmp_path / "bin" / "bet", MAKER)
    results = prepared_results(tmp_path / "job", ["01"], tool={"name": "bet"}, **tiers(tmp_path, small_disk))
    done = job(results, tmp_path / "log", str(tmp_path / "bin"))
    print(done.stderr)
    assert done.returncode == TierError.exit_code
    assert "tier 'small' is out of inodes" in done.stderr
    assert "No space left" not in done.stderr
    assert done.stderr.count("\n") == 2
    assert not list(small_disk.glob("neurotier-*/work/*/*")), "what was made is removed"


def test_a_participant_that_needs_more_files_than_there_are_inodes_is_not_begun(
    small_disk: Path, tmp_path: Path
) -> None:
    results = prepared_results(
        tmp_path / "job", ["01"], tool=description(tmp_path, 4000), **tiers(tmp_path, small_disk)
    )
    done = job(results, tmp_path / "log")
    assert done.returncode == TierError.exit_code
    assert "tier 'small' has too few inodes" in done.stderr
    assert "4,0" in done.stderr, "and how many are needed"


def test_inodes_are_a_resource_that_jobs_wait_for(small_disk: Path, tmp_path: Path) -> None:
    tool = description(tmp_path, 400)
    results = prepared_results(tmp_path / "job", ["01", "02", "03"], tool=tool, **tiers(tmp_path, small_disk))
    settings = Settings.from_json(yaml.safe_load((results / "state" / "settings.json").read_text()))
    places = Places.from_settings(settings)
    plan = Plan(settings, places)
    free = plan.limits()["work_files"]
    assert 900 < free < INODES
    assert 400 < plan.of("sub-01").work_files < 450
    assert needs_of(plan, ["sub-01"])["work_files"] == [plan.of("sub-01").work_files]
    plan.slots = 15
    assert (plan.share("1-of-1").at_once, plan.share("1-of-1").work_files) == (3, free), (
        "the pool starts no more than fit"
    )


def test_file_systems_without_a_limit_are_never_out_of_inodes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """As btrfs, which has no number of inodes and says 0."""
    facts = os.statvfs(tmp_path)
    none = os.statvfs_result((*facts[:5], 0, 0, 0, *facts[8:]))
    tier = Tier("disk", tmp_path, "block", None)
    monkeypatch.setattr(os, "statvfs", lambda _: none)
    assert tier.free_files() is None
    check_room(tier, 0, 10**12)
    assert "inodes" not in str(full(tier, 0, None, "became full"))


@pytest.mark.parametrize("number", [errno.ENOSPC, errno.EDQUOT])
def test_a_tool_that_found_no_room_was_on_a_full_tier(tmp_path: Path, number: int) -> None:
    with pytest.raises(TierError, match="became full"), naming_full_tier(Tier("disk", tmp_path, "block", None), 1):
        raise ToolError(f"bet: {os.strerror(number)}")
