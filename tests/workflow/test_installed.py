"""The installed package works without a checkout, and a run of it is watched: while it goes on, killed, and done.

So does a checkout by conda-forge's Python, which has no functions for system calls newer than its old C library.
"""

from __future__ import annotations

import importlib.metadata
import json
import os
import re
import shutil
import signal
import stat
import subprocess
import sys
import time
import tomllib
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from conftest import missing
from packaging.requirements import Requirement
from support import ENVIRONMENT, PATIENCE_S, ROOT, Project, git, sleeping, system


@pytest.fixture(scope="module")
def installed(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder into which pip has put the package, from a wheel of what git knows, as an index would hold it.

    It lies in a repository of something else.
    """
    folder = tmp_path_factory.mktemp("installed")
    git(folder, "init", "--quiet")
    git(folder, "commit", "--quiet", "--allow-empty", "--message", "a study")
    source, wheels, target = folder / "source", folder / "wheels", folder / "packages"
    source.mkdir()
    for name in git(ROOT, "ls-files", "--cached", "--others", "--exclude-standard").splitlines():
        if (ROOT / name).is_file():
            (source / name).parent.mkdir(parents=True, exist_ok=True)
            (source / name).write_bytes((ROOT / name).read_bytes())
    pip = [sys.executable, "-m", "pip", "-q", "--disable-pip-version-check"]
    system(*pip, "wheel", "--no-deps", "--no-build-isolation", "-w", wheels, source)
    (wheel,) = wheels.iterdir()
    system(*pip, "install", "--no-deps", "--target", target, wheel)
    return target


def environment(installed: Path) -> dict[str, str]:
    return {**ENVIRONMENT, "PYTHONPATH": str(installed)}


def neurotier(installed: Path, folder: Path, *words: str) -> tuple[int, str]:
    done = subprocess.run(
        [sys.executable, "-m", "neurotier", *words],
        cwd=folder,
        env=environment(installed),
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        timeout=PATIENCE_S,
    )
    return done.returncode, done.stdout


def watched(installed: Path, folder: Path, wanted: str) -> str:
    """The first line of a look at the results that has a text."""
    deadline, said = time.monotonic() + PATIENCE_S, ""
    while wanted not in said and time.monotonic() < deadline:
        time.sleep(1)  # a look takes CPU time, too
        _, said = neurotier(installed, folder, "watch", "results", "--once")
    return said


def test_a_run_without_a_checkout_is_watched_to_its_end(installed: Path, demo_source: Path, tmp_path: Path) -> None:
    folder = tmp_path / "lab"
    assert neurotier(installed, tmp_path, "init", "lab")[0] == 0
    assert (folder / "workflow").resolve().is_relative_to(installed)
    project = Project(folder)
    chosen = {"source": demo_source, "participants": ["0099001", "0099102"]}
    project.configure(dataset=chosen, tool=sleeping(300))
    command = project.command("participants", "--workflow-profile", "profiles/local")
    quiet: dict[str, Any] = {"stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL}
    running = subprocess.Popen(command, cwd=folder, env=environment(installed), **quiet)
    said = watched(installed, folder, "0 of 2 done, 2 running")
    assert "0 failed, 0 waiting" in said
    os.kill(running.pid, signal.SIGKILL)
    running.wait()
    code, said = neurotier(installed, folder, "watch", "results")
    assert (code, "start the same command to continue" in said, " 0 running" in said) == (1, True, True)
    project.configure(dataset=chosen, tool="noop")  # nobody is done who would be done again
    subprocess.run(command, cwd=folder, env=environment(installed), check=True, **quiet)
    code, said = neurotier(installed, folder, "watch", "results")
    assert (code, "2 of 2 done" in said) == (0, True)
    facts = next(iter(project.results.glob("state/runs/*.json"))).read_text()
    assert str(ROOT) not in facts
    assert "commit" not in json.loads(facts)["versions"], "that of the study"


def test_another_python_does_not_find_what_is_installed_with_the_package(installed: Path, tmp_path: Path) -> None:
    """It would import modules that were compiled for this one."""
    (tmp_path / "Snakefile").write_text(
        f"""
tiers = {{"here": {{"path": ".", "kind": "block"}}}}

module theirs:
    snakefile: "{installed}/neurotier/checkout/workflow/Snakefile"
    config: {{"tiers": tiers, "placement": dict.fromkeys(["work", "images", "results"], "here")}}

use rule * from theirs as theirs_*

rule own:
    default_target: True
    shell:
        "echo found $PYTHONPATH."
"""
    )
    start = (
        f"import sys; sys.path.insert(0, {str(installed)!r}); from snakemake.cli import main; main(['--cores', '1'])"
    )
    environment = {name: value for name, value in ENVIRONMENT.items() if name != "PYTHONPATH"}
    ended = subprocess.run([sys.executable, "-c", start], cwd=tmp_path, env=environment, capture_output=True, text=True)
    assert ended.stdout == "found .\n", ended.stderr


def test_a_folder_that_was_laid_out_is_renewed_and_keeps_what_is_its_own(installed: Path, tmp_path: Path) -> None:
    assert neurotier(installed, tmp_path, "init", "lab")[0] == 0
    own = tmp_path / "lab/config/config.yaml"
    own.write_text("# mine\n")
    (tmp_path / "lab/workflow").unlink()
    (tmp_path / "lab/workflow").symlink_to(tmp_path / "gone")
    for _ in range(2):
        assert neurotier(installed, tmp_path, "init", "lab")[0] == 0
        assert own.read_text() == "# mine\n"
        assert (tmp_path / "lab/workflow/Snakefile").is_file()
    for definition in (tmp_path / "lab/containers").glob("*.def"):
        needed = re.findall(r"^    (\S+\.\w+) /opt/", definition.read_text(), re.MULTILINE)
        assert [name for name in needed if not definition.parent.joinpath(name).exists()] == []


def test_what_is_laid_out_from_an_installation_that_nobody_may_write_to_is_ones_own(
    installed: Path, tmp_path: Path
) -> None:
    central = tmp_path / "central"
    shutil.copytree(installed, central, symlinks=True)
    system("chmod", "-R", "a-w", central)
    try:
        assert neurotier(central, tmp_path, "init", "lab")[0] == 0
        copies = [
            copy for name in ("config", "profiles", "containers") for copy in (tmp_path / "lab").glob(f"{name}/**/*")
        ]
        assert not [copy for copy in copies if not copy.stat().st_mode & stat.S_IWUSR]
    finally:
        system("chmod", "-R", "u+w", central)


def test_what_cannot_be_laid_out_is_said_in_one_line(installed: Path, tmp_path: Path) -> None:
    """Nothing is laid out over a checkout."""
    (tmp_path / "workflow").mkdir()
    (tmp_path / "file").touch()
    for folder, ended_with, part in ((".", 78, "is there already, and is not a link"), ("file/lab", 73, "")):
        code, said = neurotier(installed, tmp_path, "init", folder)
        assert (code, len(said.splitlines())) == (ended_with, 1)
        assert part in said
    assert sorted(path.name for path in tmp_path.iterdir()) == ["file", "workflow"]


def test_a_full_disk_is_named_and_the_same_command_goes_on(
    installed: Path, tmp_path: Path, mount_tmpfs: Callable[..., Path]
) -> None:
    small = mount_tmpfs(tmp_path / "small", "size=200k")
    code, said = neurotier(installed, tmp_path, "init", "small/lab")
    assert (code, len(said.splitlines())) == (73, 1)
    assert "No space left on device" in said
    system("mount", "-o", "remount,size=20m", small)
    assert neurotier(installed, tmp_path, "init", "small/lab")[0] == 0
    assert sorted(path.name for path in (small / "lab").iterdir()) == ["config", "containers", "profiles", "workflow"]


def required(requirement: Requirement, extra: str = "") -> Iterator[Requirement]:
    """What a package requires, itself or for an extra of it."""
    for each in map(Requirement, importlib.metadata.requires(requirement.name) or []):
        if not each.marker or any(each.marker.evaluate({"extra": name}) for name in [extra, *requirement.extras]):
            yield each


def test_what_snakemakes_own_report_needs_comes_with_the_package() -> None:
    """The developers' tools bring it, too, so that a run in a checkout cannot show that it is missing."""
    waiting = [*map(Requirement, tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["dependencies"])]
    found = {}
    while waiting:
        each = waiting.pop()
        if str(each) not in found:
            found[str(each)] = each.name
            waiting += required(each)
    assert {each.name for each in required(Requirement("snakemake"), "reports")} - {*found.values()} == set()


OLD_PYTHON = """
import os
for name in ("copy_file_range", "getrandom", "memfd_create", "pidfd_open"):
    delattr(os, name)
"""


def test_python_for_an_old_c_library_is_enough(project: Project) -> None:
    project.heads("01")
    (project.folder / "sitecustomize.py").write_text(OLD_PYTHON)
    command = project.command("all", "probe", tool="bet", probe={"time_s": 3, "tiers": ["tmpfs"]})
    environment = project.environment() | {"PYTHONPATH": str(project.folder)}
    done = subprocess.run(command, cwd=project.folder, env=environment, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr


def test_a_user_without_a_name_needs_none(tmp_path: Path) -> None:
    """As in a container that somebody starts with a number of theirs."""
    nameless = ["unshare", "--user", "--map-user=54321", "env", "--unset=USER", "--unset=LOGNAME", "HOME=/nonexistent"]
    nameless.append(f"XDG_CACHE_HOME={tmp_path}")
    if subprocess.run([*nameless, "true"], capture_output=True).returncode:
        missing("user namespaces are not allowed here")
    project = Project.at(tmp_path / "project", lambda: nameless)
    project.heads("01")
    project.succeeds("participants", tool="bet")
