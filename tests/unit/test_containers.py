"""Containers: what a tool inside can see and do, how failures are reported, and that nothing outlives its job."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path

import pytest
from conftest import missing
from container_images import Engine, of_another_architecture, tiny_root
from neurotier.analysis.brains import read_labels
from neurotier.containers.engine import find_engine
from neurotier.containers.run import Bind, Container
from neurotier.core.errors import ContainerError, ToolError
from neurotier.meter.function import measure_function
from neurotier.meter.lap import subtract_lap
from neurotier.meter.usage import ACCOUNT, Usage
from slurm_hosts import who_may_read
from stores import container_of
from support import NOBODY, ROOT

ONE_RUN = """
import json, sys
from pathlib import Path
from types import SimpleNamespace
from neurotier.containers.run import Container
settings = SimpleNamespace(network=False, environment={}, binds=[])
engine, image, scratch, log, *command = sys.argv[1:]
container = Container(engine, Path(image), settings, Path(scratch))
code, start = container.run(command, Path(log))
print(json.dumps([code, start.wall_s]))
"""
"""A program that runs one command in a container."""


@pytest.fixture(params=["sif", "sandbox"])
def container(engine: Engine, tiny_image: Path, tmp_path: Path, request: pytest.FixtureRequest) -> Container:
    """The tiny image, as a file or unpacked, with one participant's data bound read-only."""
    image = tiny_image if request.param == "sif" else tiny_image.parent / "root"
    data = tmp_path / "data/sub-01"
    data.mkdir(parents=True)
    (data / "image").write_text("mine")
    return container_of(engine, image, tmp_path)._replace(binds=[Bind(data, "/input")])


def inside(container: Container, script: str) -> tuple[int, str]:
    """Exit code and output of a shell script in a container."""
    log = container.scratch.with_name("log")
    log.unlink(missing_ok=True)
    code, _ = container.run(["sh", "-c", script], log)
    return code, log.read_text()


def test_a_tool_sees_its_input_and_its_work_folder(container: Container) -> None:
    code, said = inside(
        container, "cat /input/image; pwd; echo $HOME $TMPDIR; echo made >/work/made; echo tmp >/tmp/there"
    )
    assert code == 0, said
    assert [line for line in said.splitlines() if "WARNING" not in line] == ["mine/work", "/work/home /work/tmp"]
    assert (container.scratch / "made").read_text() == "made\n"
    assert (container.scratch / "tmp/there").exists(), "temporary files lie on the work tier"


ATTEMPTS = """cat {home}/secret
cat {other}/image
cat /input/../sub-02/image
echo x >/input/image
echo x >/opt/x
echo x >/x
echo x >{results}/x
ls {root}/workflow
ls {memory}
grep -l 8639[1] /proc/[0-9]*/cmdline
ls -l /proc/self/ns/ipc | grep -F {messages}"""
"""At the user's home, the data of others, the input, the image, results, this program, and the host's memory, processes
and messages."""


def test_what_is_not_given_cannot_be_reached(
    container: Container, tmp_path: Path, memory_folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    places = {name: tmp_path / name for name in ("home", "other", "results")}
    for place in places.values():
        place.mkdir()
    (places["home"] / "secret").write_text("secret")
    (places["other"] / "image").write_text("of another")
    monkeypatch.setenv("HOME", str(places["home"]))
    (tmp_path / "bound").mkdir()
    monkeypatch.setenv("PASSWORD", "hunter2")
    monkeypatch.setenv("APPTAINER_BIND", f"{tmp_path}/bound:/bound")
    monkeypatch.setenv("APPTAINERENV_LEAK", "leak")
    monkeypatch.setenv("HTTPS_PROXY", "http://me:hunter2@proxy:3128")
    messages = os.readlink("/proc/self/ns/ipc")
    attempts = ATTEMPTS.format(**places, root=ROOT, memory=memory_folder, messages=messages).splitlines()
    script = "\n".join(f"({attempt}) && echo reached {n}" for n, attempt in enumerate([*attempts, "ls /bound"]))
    with subprocess.Popen(["sleep", "86391"]) as process:
        _, said = inside(container, f"env; sed -n 's/^ *\\(.*\\):.*/\\1/p' /proc/net/dev; {script}")
        process.kill()
    for leaked in ("reached", "secret", "hunter2", "leak"):
        assert leaked not in said.replace("/secret", "")
    assert {line for line in said.splitlines() if line in os.listdir("/sys/class/net")} == {"lo"}
    assert (container.binds[0].host / "image").read_text() == "mine"
    assert list(places["results"].iterdir()) == []


def test_what_the_configuration_gives_is_there(engine: Engine, tiny_image: Path, tmp_path: Path) -> None:
    licence = tmp_path / "licence.txt"
    licence.write_text("free for all")
    given = {"environment": {"QUOTED": "it's $HOME"}, "binds": [f"{licence}:/opt/licence.txt"]}
    container = container_of(engine, tiny_image, tmp_path, **given)
    code, said = inside(container, 'cat /opt/licence.txt; echo; echo "$QUOTED"; echo x >/opt/licence.txt')
    assert code != 0
    assert "free for all" in said
    assert "it's $HOME" in said
    with pytest.raises(ContainerError, match=r"containers\.binds"):
        inside(container_of(engine, tiny_image, tmp_path, binds=["/nowhere/licence"]), "true")


def test_an_ordinary_user_runs_an_unpacked_image(engine: Engine, tiny_image: Path) -> None:
    """As whoever calls; without FUSE and loop devices."""
    if os.geteuid() != 0:
        missing("becoming another user needs root")
    with tempfile.TemporaryDirectory(dir="/var/tmp") as name:
        folder = Path(name)
        folder.chmod(0o777)
        shutil.copytree(tiny_image.parent / "root", folder / "image", symlinks=True)
        user = who_may_read(NOBODY, folder / "kept")
        words = [engine.path, *(str(folder / name) for name in ("image", "scratch", "log"))]
        command = [*user, sys.executable, "-c", ONE_RUN, *words, "sh", "-c", "id -u; echo made >/work/made"]
        printed = subprocess.check_output(command, cwd=folder, env={**os.environ, "HOME": "/nonexistent"})
        assert json.loads(printed)[0] == 0
        assert "65534" in (folder / "log").read_text().split()
        assert (folder / "scratch/made").stat().st_uid == 65534


def without_a_shell(_: Path, image: Path) -> None:
    (tiny_root(image.parent / "made") / "bin/sh").unlink()
    (image.parent / "made/root").rename(image)


NO_IMAGE = "is not a container image, or a truncated one"


@pytest.mark.parametrize(
    ("make", "said"),
    [
        (lambda tiny, image: image.write_bytes(tiny.read_bytes()[:70_000]), NO_IMAGE),
        (lambda _, image: image.write_text("hello\n"), NO_IMAGE),
        (lambda *_: None, "the image is missing or not readable"),
        (without_a_shell, "the image has no shell"),
        (of_another_architecture, "the image is of another architecture than this machine"),
    ],
)
def test_why_an_image_cannot_start_is_said(
    engine: Engine, tiny_image: Path, tmp_path: Path, make: Callable[[Path, Path], object], said: str
) -> None:
    image = tmp_path / "image.sif"
    make(tiny_image, image)
    with pytest.raises(ContainerError, match=rf"^{image}: .*{said}.*\Z"):  # in a line
        inside(container_of(engine, image, tmp_path), "true")


def test_a_command_that_is_missing_or_not_executable_is_named(container: Container) -> None:
    log = container.scratch.with_name("log")
    with pytest.raises(ToolError, match=r"(tiny\.sif|root): the image has no command 'bet'"):
        container.run(["bet", "in", "out"], log)
    with pytest.raises(ToolError, match="'/input/image' in the image is not executable"):
        container.run(["/input/image"], log)


def test_engine(engine: Engine, tmp_path: Path, tiny_image: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Singularity is accepted where Apptainer is absent; without either: ``test_preconditions.py``."""
    (tmp_path / "bin").mkdir()
    (tmp_path / "bin/singularity").symlink_to(os.path.realpath(engine.path))
    monkeypatch.setenv("PATH", f"{tmp_path / 'bin'}:/usr/sbin:/usr/bin:/sbin:/bin")
    found = find_engine()
    assert found.endswith("bin/singularity")
    assert inside(container_of(Engine(found), tiny_image, tmp_path), "true")[0] == 0


def test_a_kernel_without_descriptors_of_processes_is_enough(
    container: Container, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As those of clusters, before Linux 5.3; a container that does not start is noticed by its end there, too."""
    monkeypatch.delattr(os, "pidfd_open")
    assert inside(container, "true")[0] == 0
    with pytest.raises(ContainerError, match="missing or not readable"):
        inside(container._replace(image=tmp_path / "gone.sif"), "true")


def test_starting_and_running_add_up(container: Container) -> None:
    """The start is taken out of the phase, and both together are what the phase was."""

    def work() -> Usage:
        burn = "i=0; while [ $i -lt 300000 ]; do i=$((i+1)); done"
        return container.run(["sh", "-c", burn], container.scratch.with_name("log"))[1]

    start, whole = measure_function(work)
    before = {name: getattr(whole, name) for name in ("wall_s", "user_s", "system_s", "minor_faults")}
    subtract_lap(start, whole)
    for name, value in before.items():
        assert getattr(start, name) + getattr(whole, name) == pytest.approx(value), name
    assert 0 < start.wall_s < before["wall_s"]
    assert start.end_s == whole.start_s
    assert whole.end_s - whole.start_s == pytest.approx(whole.wall_s, abs=1e-3), "no two phases overlap"
    assert whole.user_s > start.user_s, "the loop is the tool's"
    assert start.input_bytes == (container.image.stat().st_size if container.image.is_file() else None)
    for usage in (start, whole):
        if usage.account is not None:
            parts = sum(getattr(usage, name) or 0.0 for name in ACCOUNT)
            assert parts + (usage.residual_s or 0.0) == pytest.approx(usage.wall_s)


@pytest.mark.parametrize("name", ["tmp", "home"])
def test_a_work_folder_that_a_container_has_changed_is_not_bound_again(
    container: Container, tmp_path: Path, name: str
) -> None:
    (tmp_path / "trap").mkdir()
    inside(container, f"rm -rf /work/{name} 2>/dev/null; mv /work/{name} /work/old; ln -s {tmp_path}/trap /work/{name}")
    with pytest.raises(ContainerError, match=f"{name}: is a link that a container has left, not a folder"):
        inside(container, "echo x >/tmp/x")
    assert list((tmp_path / "trap").iterdir()) == []


@pytest.mark.parametrize(("linked", "version"), [(False, "1.2"), (True, "unknown")])
def test_labels_that_are_a_link_are_those_of_the_image(
    engine: Engine, tmp_path: Path, linked: bool, version: str
) -> None:
    """The engine's own inspection follows such a link into the user's home."""
    root = tiny_root(tmp_path)
    labels, host = root / ".singularity.d/labels.json", tmp_path / "host.json"
    labels.parent.mkdir()
    (host if linked else labels).write_text(json.dumps({"Version": "1.2"}))
    if linked:
        labels.symlink_to(host)
    assert read_labels(container_of(engine, root, tmp_path), tmp_path / "log") == version
