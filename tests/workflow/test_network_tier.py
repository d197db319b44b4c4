"""Tiers on a real network file system: sshfs over a link of its own."""

from __future__ import annotations

import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from conftest import missing
from shown_values import shown
from slow_network import available, slow_network_folder
from support import Project, checksums

RATE = "400mbit"
FOLLOWED = "no_contain_symlinks"


@pytest.fixture(scope="module")
def refuses() -> bool:
    """Whether this sshfs refuses links that lead upwards, unless it is told to follow them."""
    if not available():
        missing("sshfs with an SSH server, or root")
    return FOLLOWED in subprocess.run(["sshfs", "-h"], capture_output=True, text=True).stdout


@contextmanager
def network_tier(*options: str) -> Iterator[Path]:
    """A folder on a network file system, to be declared as a tier."""
    with slow_network_folder(RATE, *options) as mounted:
        (mounted / "tier").mkdir()
        yield mounted / "tier"


def configure(project: Project, source: Path, tier: Path, **placement: str) -> None:
    """A run of noop with roles on the network."""
    project.configure(
        dataset={"source": source, "sites": ["SiteB"]},
        tool="noop",
        tiers={"network": {"path": tier, "kind": "network"}},
        placement=placement,
    )


@pytest.mark.nightly
def test_dataset_intermediates_and_results_may_lie_on_a_network(
    project: Project, demo_source: Path, refuses: bool
) -> None:
    with network_tier(*[FOLLOWED] * refuses) as tier:
        configure(project, demo_source, tier, dataset="network", work="network", results="network")
        project.succeeds().says("2 of 2 participants done, 0 failed")
        (project.folder / "results").symlink_to(tier / "results")
        assert shown(project.only_run, "dataset_tier work_tier valid") == "network network valid"
        for phase in ("stage_in", "stage_out"):
            assert set(project.columns("tier", "profile/traffic.tsv", phase=phase)) == {"network"}
        project.snakemake().says("Nothing to be done")
        assert [path for path in tier.glob("neurotier-*/work/**/*") if path.is_file()] == []
        whole = checksums(project.derivatives)
    project.succeeds(
        "participants", "--config", "results=local", dataset={"source": demo_source, "sites": ["SiteB"]}, tool="noop"
    )
    assert checksums(project.folder / "local/derivatives").items() <= whole.items()


def test_links_that_the_file_system_refuses_are_said_to_be_refused(
    project: Project, demo_source: Path, refuses: bool
) -> None:
    if not refuses:
        pytest.skip("this sshfs follows all links")
    with network_tier() as tier:
        configure(project, demo_source, tier, dataset="network")
        ended = project.fails("participants")
    (said, *_) = ended.lines("cannot be read: Operation not permitted")
    assert FOLLOWED in said
