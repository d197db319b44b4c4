"""Storage that does not answer is named in a line, and holds nobody up."""

from __future__ import annotations

import json
import signal
from collections.abc import Iterator
from pathlib import Path

import psutil
import pytest
from conftest import missing
from slow_network import available, slow_network_folder
from support import Project, read_json


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


def test_a_run_on_a_silent_tier_ends_in_a_line(silent: Path, project: Project) -> None:
    project.heads("01")
    far = {"far": {"path": silent, "kind": "network"}}
    ended = project.snakemake("check", tool="noop", tiers=far, placement={"work": "far"})
    assert ended.code == 1
    ended.says(f"tier 'far': {silent} does not answer within 20 s")
    ended = project.succeeds("participants", tool="noop", tiers=far)
    ended = project.snakemake("check")
    (table,) = (project.results / "check").glob("*.tsv")
    found = {row["tier"]: row for row in project.table(f"check/{table.name}")}
    assert (found["far"]["there"], found["far"]["writable"]) == ("false", "false")
    assert found["local"]["writable"] == "true"


@pytest.mark.parametrize("key", ["dataset.source", "results"])
def test_a_folder_that_is_named_without_a_tier_is_named_too(silent: Path, project: Project, key: str) -> None:
    far = str(silent / "study")
    ended = project.fails(
        "participants", tool="noop", **{"dataset": {"source": far}} if key == "dataset.source" else {"results": far}
    )
    ended.says(f"config key {key}: {silent}")
    assert "does not answer within 20 s" in ended.output


def test_the_silent_work_tier_of_a_killed_run_is_named_and_left(silent: Path, project: Project) -> None:
    project.heads("01")
    project.succeeds("participants", tool="noop", tiers={"far": {"path": silent, "kind": "network"}})
    (facts,) = (project.results / "state/runs").glob("*.json")
    killed = read_json(facts)
    del killed["ended_s"]
    killed["settings"]["placement"]["work"] = "far"
    facts.write_text(json.dumps(killed))
    ended = project.succeeds("participants", tool="noop")
    ended.says(f"of the killed run {facts.stem} stay: tier 'far': {silent} does not answer within 20 s")
