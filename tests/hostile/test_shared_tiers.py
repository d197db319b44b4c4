"""Another user has been on the tier first: planted links, folders and owners are refused, and harm nobody."""

from __future__ import annotations

import json
import os
import shutil
import socket
import subprocess
import tempfile
from collections.abc import Iterator
from pathlib import Path

import psutil
import pytest
from conftest import missing
from neurotier.core.places import short_hash
from neurotier.core.private import private_folder
from support import STAND_INS, Ended, Project, plain_dataset, small_head, t1w

OTHER_USER = 65534
"""Nobody's number; processes of the attacker run under it."""


@pytest.fixture
def tier() -> Iterator[Path]:
    """A folder in memory that everybody may write to, and only owners may remove from: like ``/dev/shm`` itself."""
    if os.getuid() != 0:
        missing("becoming another user needs root")
    with tempfile.TemporaryDirectory(prefix="neurotier-test-", dir="/dev/shm") as name:
        Path(name).chmod(0o1777)
        yield Path(name)


@pytest.fixture
def victim() -> Iterator[Path]:
    """A folder of this user's with a file that nobody else may read or lose."""
    with tempfile.TemporaryDirectory(prefix="victim-", dir="/dev/shm") as name:
        (Path(name) / "sub-01").mkdir()
        (Path(name) / "sub-01" / "precious").write_text("canary")
        yield Path(name)
        assert (Path(name) / "sub-01" / "precious").read_text() == "canary"
        assert sorted(path.name for path in Path(name).rglob("*")) == ["precious", "sub-01"]


@pytest.fixture
def bystander() -> Iterator[subprocess.Popen[bytes]]:
    """A process of this user's that is none of the run's."""
    process = subprocess.Popen(["sleep", "600"])
    yield process
    assert process.poll() is None
    process.kill()
    process.wait()


def as_other_user(script: str) -> None:
    """Run a shell script as the attacker."""
    subprocess.run(["sh", "-euc", script], user=OTHER_USER, group=OTHER_USER, extra_groups=[], check=True)


def run(project: Project, tier: Path, results_tier: str = "local") -> Ended:
    """One participant with a stand-in for bet, its intermediates on the tier."""
    source = plain_dataset(project.folder / "source", {t1w("01"): small_head()})
    arguments = project.configure(
        dataset={"source": str(source)},
        tool={"name": "bet"},
        tiers={"shared": {"path": str(tier), "kind": "tmpfs"}},
        placement={"work": "shared", "results": results_tier},
    )
    return project.snakemake(*arguments, path=STAND_INS, targets=["participants"])


def refused(ended: Ended, part: str) -> None:
    """It ended with one line that names owner and mend."""
    assert ended.code != 0
    (line,) = ended.lines(part)
    assert "user nobody" in line
    assert "Traceback" not in ended.output


def test_an_honest_tier_is_used_and_left_clean(project: Project, tier: Path) -> None:
    ended = run(project, tier)
    assert ended.code == 0, ended.output
    assert list(tier.iterdir()) == []


def test_a_link_at_our_name_is_refused(project: Project, tier: Path, victim: Path) -> None:
    as_other_user(f"ln -s {victim} {private_folder(tier)}")
    refused(run(project, tier), "is a link made by user")


def test_a_folder_at_our_name_is_refused(
    project: Project, tier: Path, victim: Path, bystander: subprocess.Popen[bytes]
) -> None:
    """The folder for work is known beforehand: in it stands a link, and an owner that is somebody else's process."""
    work = private_folder(tier) / "work" / short_hash(str(project.results))
    owner = {
        "host": socket.gethostname(),
        "pid": bystander.pid,
        "started_s": psutil.Process(bystander.pid).create_time(),
    }
    planted = f"mkdir -m 777 -p {work}/sub-01; ln -s {victim} {work}/sub-02; cd {work}/sub-01"
    as_other_user(f"{planted}; echo '{json.dumps(owner)}' > owner.json; chmod -R 777 {private_folder(tier)} || :")
    refused(run(project, tier), "belongs to user")


def test_a_results_folder_that_another_user_made_is_refused(project: Project, tier: Path, victim: Path) -> None:
    as_other_user(f"mkdir -m 777 {tier}/results; ln -s {victim} {tier}/results/derivatives")
    refused(run(project, tier, results_tier="shared"), "made where everybody may write")


def test_a_campaigns_results_are_not_planted_either(project: Project, tier: Path, victim: Path) -> None:
    """A folder that was ours to write to for all is no longer: what others have put there is not touched."""
    private_folder(tier).mkdir()
    private_folder(tier).chmod(0o777)
    as_other_user(f"ln -s {victim} {private_folder(tier)}/work; ln -s {victim} {private_folder(tier)}/campaign")
    ended = run(project, tier)
    assert ended.code != 0
    assert ended.lines("is writable by other users"), ended.output
    private_folder(tier).chmod(0o700)  # as the message says, without looking first
    ended = run(project, tier)
    assert ended.code != 0
    assert ended.lines("work is a link made by user nobody"), ended.output


def test_intermediates_are_readable_by_the_user_alone(project: Project, tier: Path) -> None:
    """A private image stays private: seen while the tool runs, which looks at what it was given."""
    spy = project.folder / "bin"
    spy.mkdir()
    seen = project.folder / "seen"
    look = f'stat -c "%a %n" "$1" "$(dirname "$1")" {private_folder(tier)} >>{seen}; exec {STAND_INS}/bet "$@"'
    (spy / "bet").write_text(f"#!/bin/sh\n{look}\n")
    (spy / "bet").chmod(0o755)
    shutil.copy(STAND_INS / "bet", spy / "real_bet")
    source = plain_dataset(project.folder / "source", {t1w("01"): small_head()})
    (source / t1w("01")).chmod(0o600)
    arguments = project.configure(
        dataset={"source": str(source)},
        tool={"name": "bet"},
        tiers={"shared": {"path": str(tier), "kind": "tmpfs"}},
        placement={"work": "shared"},
    )
    ended = project.snakemake(*arguments, path=spy, targets=["participants"])
    assert ended.code == 0, ended.output
    modes = [line.split()[0] for line in seen.read_text().splitlines()]
    assert modes == ["600", "700", "700"]
