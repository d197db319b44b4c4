"""Storage that does not answer is named in a line, and holds nobody up."""

from __future__ import annotations

import signal
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import psutil
import pytest
from conftest import missing
from neurotier.core.answering import require_answers
from neurotier.core.errors import TierError
from neurotier.core.places import Places
from neurotier.core.settings import ROLES, Settings
from neurotier.core.tiers import Tier, find_mount
from neurotier.run.node_check import check_node, mark_tiers
from slow_network import available, slow_network_folder
from support import Project, plain_dataset, small_head, t1w


@pytest.fixture(scope="module")
def silent() -> Iterator[Path]:
    """A network file system whose daemon has stopped."""
    if not available():
        missing("root, sshfs, sshd and iproute2")
    with slow_network_folder("400mbit") as folder:
        (daemon,) = [
            process
            for process in psutil.process_iter(["cmdline"])
            if {"sshfs", str(folder)} <= set(process.info["cmdline"] or [])
        ]
        daemon.send_signal(signal.SIGSTOP)
        try:
            yield folder
        finally:
            daemon.send_signal(signal.SIGCONT)


def tier_at(path: Path) -> Tier:
    return Tier("far", path, "network", None)


def test_who_answers_is_let_pass(tmp_path: Path) -> None:
    (tmp_path / "closed").mkdir(mode=0)
    before = set(psutil.Process().children())  # other tests may have left some
    require_answers([])
    require_answers([tier_at(path) for path in (tmp_path, tmp_path / "missing", tmp_path / "closed")])
    require_answers([replace(tier_at(tmp_path), node=True)])
    assert set(psutil.Process().children()) <= before, "no child is left"


def test_a_silent_tier_is_named(silent: Path, tmp_path: Path) -> None:
    tiers = [replace(tier_at(tmp_path), name="near"), tier_at(silent)]
    with pytest.raises(TierError, match=rf"^tier 'far': {silent} does not answer within 10 s; see whether its server"):
        require_answers(tiers, within_s=10)


def test_the_check_of_a_node_goes_on_to_the_other_tiers(silent: Path, tmp_path: Path) -> None:
    near = {"path": str(tmp_path), "kind": find_mount(tmp_path).kind}
    tiers = {"far": {"path": str(silent), "kind": "network"}, "near": near}
    settings = Settings.from_config({"tiers": tiers, "placement": dict.fromkeys(ROLES, "near")})
    places = Places.from_settings(settings)
    assert list(mark_tiers(settings, places)) == ["near"]
    far, other = check_node(settings, places, "", None)
    assert (far["there"], far["writable"]) == (False, False)
    assert "does not answer" in far["problem"]
    assert (other["there"], other["problem"]) == (True, None)


def test_a_run_on_a_silent_tier_ends_in_a_line(silent: Path, project: Project) -> None:
    plain_dataset(project.folder / "bids", {t1w("01"): small_head()})
    far = {"far": {"path": str(silent), "kind": "network"}}
    given = project.configure(dataset={"source": "bids"}, tool={"name": "noop"}, tiers=far, placement={"work": "far"})
    ended = project.snakemake(*given, targets=["check"])
    assert ended.code == 1
    assert ended.lines(f"tier 'far': {silent} does not answer within 20 s"), ended.output
    given = project.configure(dataset={"source": "bids"}, tool={"name": "noop"}, tiers=far)
    ended = project.snakemake(*given, targets=["participants"])
    assert ended.code == 0, ended.output
