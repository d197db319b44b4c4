"""Another user of the machine tries to join what runs, and nothing that runs can be reached from other machines."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import psutil
import pytest
from conftest import missing
from support import NOBODY, PATIENCE_S, STAND_INS, Project, listening, processes_in, wait_for

STAGED = {
    "tiers": ["local"],
    "engines": ["ray", "adios2-sst"],
    "steps": 100_000,  # more than there is time for; the order of engines comes from the seed
    "sets": {"one": {"writers": [1], "readers": [1], "servers": [1], "bytes": "64 KiB"}},
}

JOIN = """
import os, sys, ray
from ray._private.node import Node
from ray._private.parameter import RayParams
address, folder = sys.argv[1:]
there = {"gcs_address": address, "redis_address": address, "node_ip_address": "127.0.0.1", "temp_dir": folder}
own = {"num_cpus": 0, "num_gpus": 0, "object_store_memory": 80 << 20, "min_worker_port": 0, "max_worker_port": 0}
node = Node(RayParams(**there, **own, include_log_monitor=False), head=False)
ray.init(address=address, _node_ip_address="127.0.0.1", _temp_dir=folder, log_to_driver=False)
task = ray.remote(lambda: os.getuid()).options(num_cpus=0, resources={"server-0": 1})
print("ran as", ray.get(task.remote(), timeout=30))
"""
"""Joins as a node, for its own entrance, and has a server of the run's owner run a task."""


@pytest.fixture
def attacker() -> Iterator[Path]:
    """A folder of the other user's, with a short path."""
    if os.getuid() != 0:
        missing("becoming another user needs root")
    with tempfile.TemporaryDirectory(dir="/tmp") as name:
        os.chown(name, NOBODY, NOBODY)
        yield Path(name)


def join(port: int, folder: Path) -> str:
    """What the other user sees, who may read Python and its packages wherever those are; and so the whole machine."""
    become = ["setpriv", f"--reuid={NOBODY}", f"--regid={NOBODY}", "--clear-groups"]
    become += ["--inh-caps=+dac_read_search", "--ambient-caps=+dac_read_search"]
    own = {"HOME": str(folder), "PATH": os.environ["PATH"], "RAY_ENABLE_WINDOWS_OR_OSX_CLUSTER": "0"}
    own |= {"RAY_NUM_REDIS_GET_RETRIES": "1", "RAY_USAGE_STATS_ENABLED": "0", "RAY_AUTH_MODE": "disabled"}
    command = [*become, sys.executable, "-c", JOIN, f"127.0.0.1:{port}", str(folder)]
    done = subprocess.run(command, cwd=folder, env=own, capture_output=True, text=True, timeout=PATIENCE_S)
    return done.stdout + done.stderr


def test_nobody_else_joins_what_staging_starts(project: Project, attacker: Path, staging_engines: None) -> None:
    """Ray runs what it is sent only for who has the token; SST, which asks for none, is in a network of its own."""
    snakemake = project.start("staging", staging=STAGED)
    try:
        wait_for(lambda: any(project.folder.glob("neurotier-*/**/writer-0.bp.sst")), snakemake)
        assert listening(project.folder) == set()
        newest = max(processes_in(project.folder, "staging.program"), key=psutil.Process.create_time)
        newest.kill()  # the next engine's turn

        wait_for(lambda: processes_in(project.folder, "ray::Reader"), snakemake)
        (program,) = processes_in(project.folder, "staging.program")
        (store,) = processes_in(project.folder, "gcs_server")
        program.suspend()  # so that no processor is busy meanwhile
        assert listening(project.folder) == {"127.0.0.1"}
        token = Path(store.environ()["RAY_AUTH_TOKEN_PATH"])
        assert token.stat().st_mode & 0o077 == 0
        assert not processes_in(project.folder, token.read_text())
        (port,) = (connection.laddr.port for connection in store.net_connections("inet") if not connection.raddr)
        said = join(port, attacker)
        assert "ran as" not in said
        assert "InvalidAuthToken" in said
    finally:
        snakemake.send_signal(signal.SIGTERM)
        snakemake.wait(PATIENCE_S)
    assert processes_in(project.folder) == []


@pytest.mark.parametrize(
    ("target", "section", "who", "instead"),
    [
        ("staging", STAGED | {"engines": ["adios2-sst"]}, "engine adios2-sst", "another engine"),
        ("ior", {"tiers": ["local"], "engine": "ior"}, "mpirun", "ior.engine: fio"),
    ],
)
def test_what_cannot_be_closed_is_not_started(
    project: Project, staging_engines: None, target: str, section: dict[str, Any], who: str, instead: str
) -> None:
    """Where nobody may have a network of his own, what needs one is refused in a line."""
    denied = 'echo 0 > /proc/sys/user/max_net_namespaces; exec "$@"'
    confined = Project(project.folder, lambda: ["unshare", "--user", "--map-root-user", "sh", "-c", denied, "sh"])
    ended = confined.fails(target, path=STAND_INS / "mpi", **{target: section})
    (line,) = ended.lines(f"target {target}: {who} listens on all addresses and obeys any user, and this system gives")
    assert line.endswith(f"; have user namespaces allowed, or take {instead}")
