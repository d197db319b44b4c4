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
    command = ("results/index/image.json", "--sdm", "apptainer")
    snakemake = project.start(*command, start_new_session=True, tool=tool)
    logs = project.results / "logs"
    wait_for(lambda: any("Running post scriptlet" in log.read_text() for log in logs.rglob("*.log")), snakemake)
    os.killpg(snakemake.pid, number)
    snakemake.ended()
    (store,) = project.folder.glob("neurotier-*/image-store")
    assert not list(store.glob("tool-*.sif"))
    if number == signal.SIGKILL:
        (left,) = store.glob(".tool-*.partial")
        (left / "old").write_text("of the first build")
    project.succeeds(*command)
    assert len(list(store.glob("tool-*.sif"))) == 1
    assert not list(project.folder.glob("neurotier-*/image*/*.partial"))
