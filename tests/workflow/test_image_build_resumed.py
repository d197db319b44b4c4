"""A build or pull of a container image that was stopped: the same command removes what it left, and goes on."""

from __future__ import annotations

import os
import signal
import subprocess
from pathlib import Path

import pytest
from conftest import nightly
from container_images import Engine, tiny_root
from support import ENVIRONMENT, Project, wait_for, while_running


@pytest.mark.parametrize("number", [signal.SIGKILL, *nightly(signal.SIGINT, signal.SIGTERM)])
def test_a_build_that_is_stopped_is_done_again_by_the_same_command(
    project: Project, engine: Engine, tmp_path: Path, number: signal.Signals
) -> None:
    """Stopped as a batch system or a terminal does it, which is all processes at once."""
    definition = tmp_path / "tool.def"
    definition.write_text(f"Bootstrap: localimage\nFrom: {tiny_root(tmp_path)}\n\n%post\n    sleep 4\n")
    project.heads("00")
    tool = {"name": "bet", "bet": {"image": str(definition)}}
    given = [*project.configure(tool=tool), "--sdm", "apptainer"]
    command = project.command("results/index/image.json", *given)
    quiet = subprocess.DEVNULL
    with subprocess.Popen(
        command, cwd=project.folder, env=ENVIRONMENT, stdin=quiet, stdout=quiet, stderr=quiet, start_new_session=True
    ) as snakemake:
        wait_for(
            lambda: any("Running post scriptlet" in log.read_text() for log in logs(project)), while_running(snakemake)
        )
        os.killpg(snakemake.pid, number)
    store = project.folder
    assert not list(store.glob("neurotier-*/image-store/tool-*.sif"))
    if number == signal.SIGKILL:
        (left,) = store.glob("neurotier-*/image-store/.tool-*.partial")
        (left / "old").write_text("of the first build")
    project.succeeds("results/index/image.json", *given)
    assert len(list(store.glob("neurotier-*/image-store/tool-*.sif"))) == 1
    for folder in store.glob("neurotier-*/image*"):
        assert [path.name for path in folder.iterdir() if path.name.endswith(".partial")] == []


def logs(project: Project) -> list[Path]:
    """Logs of the rule that obtains the image."""
    return [path for path in (project.results / "logs").glob("obtain_image*") if path.is_file()] + [
        path for path in (project.results / "logs" / "obtain_image").glob("**/*") if path.is_file()
    ]
