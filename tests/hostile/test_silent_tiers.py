"""Storage that does not answer is named in a line, and holds nobody up."""

from __future__ import annotations

import json
import signal
from collections.abc import Iterator
from pathlib import Path

import psutil
import pytest
from conftest import missing
from shown_values import shown
from slow_network import available, slow_network_folder
from support import Project, read_json, words_of


@pytest.fixture(scope="module")
def silent() -> Iterator[Path]:
    """A network file system whose daemon has stopped."""
    if not available():
        missing("root, sshfs, sshd and iproute2")
    with slow_network_folder("400mbit") as folder:
        (daemon,) = [one for one in psutil.process_iter() if {"sshfs", str(folder)} <= {*words_of(one)}]
        daemon.send_signal(signal.SIGSTOP)
        try:
            yield folder
        finally:
            daemon.send_signal(signal.SIGCONT)


def test_a_silent_tier_is_named_and_holds_nobody_up(silent: Path, project: Project) -> None:
    """Nor does that of a run that was killed."""
    project.heads("01")
    far = {"far": {"path": silent, "kind": "network"}}
    project.succeeds("participants", tool="noop", tiers=far)
    (facts,) = (project.results / "state/runs").glob("*.json")
    killed = read_json(facts)
    del killed["ended_s"]
    killed["settings"]["placement"]["work"] = "far"
    facts.write_text(json.dumps(killed))
    line = f"tier 'far': {silent} does not answer within 20 s"
    project.succeeds("participants", tool="noop").says(f"of the killed run {facts.stem} stay: {line}")

    project.fails("check", tool="noop", tiers=far, placement={"work": "far"}).says(line)
    project.snakemake("check", tool="noop", tiers=far)
    (table,) = (project.results / "check").glob("*.tsv")
    found = {row["tier"]: row for row in project.table(f"check/{table.name}")}
    assert shown(found["far"], "there writable") == "false false"
    assert found["local"]["writable"] == "true"


@pytest.mark.parametrize("key", ["dataset", "results"])
def test_a_folder_that_is_named_without_a_tier_is_named_too(silent: Path, project: Project, key: str) -> None:
    ended = project.fails("participants", tool="noop", **{key: str(silent / "study")})
    ended.says(f"config key {'dataset.source' if key == 'dataset' else key}: {silent}", "does not answer within 20 s")
