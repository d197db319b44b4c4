"""A build or pull of a container image that was stopped: the same command removes what it left, and goes on."""

from __future__ import annotations

import os
import signal
from pathlib import Path

import pytest
from conftest import nightly
from container_images import Engine, tiny_root
from support import Project, wait_for


@pytest.mark.parametrize("number", [signal.SIGKILL, *nightly(signal.SIGINT, signal.SIGTERM)])
def test_a_build_that_is_stopped_is_done_again_by_the_same_command(
    project: Project, engine: Engine, tmp_path: Path, number: signal.Signals
) -> None:
    """Stopped as a batch system or a terminal does it, which is all processes at once."""
    definition = tmp_path / "tool.def"
    definition.write_text(f"Bootstrap: localimage\nFrom: {tiny_root(tmp_path)}\n\n%post\n    sleep 4\n")
    project.heads("00")
    tool = {"name": "bet", "bet": {"image": definition}}
    given = [*project.configure(tool=tool), "--sdm", "apptainer"]
    snakemake = project.start("results/index/image.json", *given, start_new_session=True)
    logs = project.results / "logs"
    wait_for(
        lambda: any("Running post scriptlet" in log.read_text() for log in logs.rglob("*.log")),
        snakemake,
    )
    os.killpg(snakemake.pid, number)
    snakemake.ended()
    store = project.folder
    assert not list(store.glob("neurotier-*/image-store/tool-*.sif"))
    if number == signal.SIGKILL:
        (left,) = store.glob("neurotier-*/image-store/.tool-*.partial")
        (left / "old").write_text("of the first build")
    project.succeeds("results/index/image.json", *given)
    assert len(list(store.glob("neurotier-*/image-store/tool-*.sif"))) == 1
    for folder in store.glob("neurotier-*/image*"):
        assert [path.name for path in folder.iterdir() if path.name.endswith(".partial")] == []
