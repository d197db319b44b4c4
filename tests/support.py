"""Makers and runners for the tests; fixtures that use them are in ``conftest.py``."""

from __future__ import annotations

import functools
import hashlib
import itertools
import json
import os
import pwd
import re
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any, ParamSpec, TypeVar

import fasteners
import nibabel as nib
import numpy as np
import psutil
from neurotier.core.places import file_of

T = TypeVar("T")
P = ParamSpec("P")

ROOT = Path(__file__).resolve().parent.parent
DEBIAN_HEAD = Path("/usr/share/mricron/templates/ch2.nii.gz")
SHARED = ROOT.parent / "shared"
"""Data next to the checkout, where available."""

STAND_INS = ROOT / "tests/stand_ins"
ENVIRONMENT = {**os.environ, "PATH": f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"}

JOB_ENVIRONMENT = {**ENVIRONMENT, "PYTHONPATH": str(ROOT / "workflow")}
"""The environment of a job, which finds the library from any folder."""

SNAKEMAKE = [sys.executable, "-m", "snakemake"]

IDENTITY = {f"GIT_{role}_{what}": "t@t" for role in ("AUTHOR", "COMMITTER") for what in ("NAME", "EMAIL")}
"""Who commits, for DataLad's own commands: a new user's git knows nobody."""

NOBODY = 65534
"""The number of a user who owns nothing."""

UNPRIVILEGED = ["setpriv", "--bounding-set=-all", "--inh-caps=-all"] if os.geteuid() == 0 else []
"""Words that begin a command which root runs with an ordinary user's rights."""

SHOWN_TRACE = re.compile(r'Traceback|File ".*/workflow/neurotier/')
"""A trace of Python's, or what Snakemake shows of one."""

PATIENCE_S = 180.0
"""How long a test waits for what should take a second, s: other tests run at the same time."""


@dataclass(frozen=True)
class Ended:
    """A finished command."""

    code: int
    output: str

    def lines(self, part: str) -> list[str]:
        """Lines of the output that contain a text."""
        return [line for line in self.output.splitlines() if part in line]

    @property
    def analysed(self) -> list[str]:
        """Participants for whom a job was begun, or would be, in order of name."""
        lines = [*self.lines("Analysing "), *self.lines(" be analysed: ")]
        return sorted({name for line in lines for name in re.findall(r"[\w/]*sub-\w+", line)})

    def succeeded(self) -> Ended:
        """Itself, whose exit code must be 0."""
        assert self.code == 0, self.output
        return self

    def failed(self) -> Ended:
        """Itself, whose exit code must not be 0, and which must say why in its own words."""
        assert self.code != 0, self.output
        assert not SHOWN_TRACE.search(self.output), self.output
        return self

    def says(self, *parts: str) -> None:
        """Each of some texts must be in a line of the output."""
        unsaid = [part for part in parts if not self.lines(part)]
        assert not unsaid, f"{unsaid} is not said in:\n{self.output}"


class Started(subprocess.Popen[bytes]):
    """A command that runs; its output goes to a file."""

    said: Path

    def ended(self, within_s: float = 3 * PATIENCE_S) -> Ended:
        """Wait for its end."""
        return Ended(self.wait(within_s), self.said.read_text())


@dataclass(frozen=True)
class Project:
    """A working folder with the workflow, its configuration and profiles, as in a clone.

    Attributes
    ----------
    before
        Gives words to begin each command with, which may have another user run it on another host.
    results_name
        What the results folder is called.
    tools
        A folder that comes first on PATH, before the stand-ins.
    """

    folder: Path
    before: Callable[[], Sequence[str]] = tuple
    results_name: str = "results"
    tools: Path | None = None

    @classmethod
    def at(cls, folder: Path, before: Callable[[], Sequence[str]] = tuple, tools: Path | None = None) -> Project:
        folder.mkdir(parents=True, exist_ok=True)
        for name in ("workflow", "config", "profiles", "containers"):
            (folder / name).symlink_to(ROOT / name)
        return cls(folder, before, tools=tools)

    @property
    def results(self) -> Path:
        return self.folder / self.results_name

    @property
    def own(self) -> Path:
        """The configuration that :meth:`configure` writes."""
        return self.folder / "own.yaml"

    @property
    def derivatives(self) -> Path:
        return self.results / "derivatives"

    def command(self, *arguments: str, cores: int = 2, **sections: Any) -> list[str]:
        """A command line with the configuration that was written last, or another of such sections.

        Without cores, ``--cores`` is left out.
        """
        if sections:
            self.configure(**sections)
        given = ["--cores", str(cores)] if cores else []
        own = ["--configfile", str(self.own)] if self.own.exists() and "--configfile" not in arguments else []
        return [*self.before(), *SNAKEMAKE, *given, *arguments, *own]

    def snakemake(self, *arguments: str, cores: int = 2, path: Path | None = None, **sections: Any) -> Ended:
        """Run snakemake as a user would; ``path`` comes first on PATH."""
        return self.ended(self.command(*arguments, cores=cores, **sections), path)

    def succeeds(self, *arguments: str, **how: Any) -> Ended:
        """Run snakemake, which must succeed."""
        return self.snakemake(*arguments, **how).succeeded()

    def fails(self, *arguments: str, **how: Any) -> Ended:
        """Run snakemake, which must fail."""
        return self.snakemake(*arguments, **how).failed()

    def start(
        self,
        *arguments: str,
        cores: int = 2,
        path: Path | None = None,
        start_new_session: bool = False,
        **sections: Any,
    ) -> Started:
        """Start snakemake in the background.

        The end of its children is ignored, as by what is started by a program that ignores that of its own; words
        before the command have to hear of its end.
        """
        with tempfile.NamedTemporaryFile(prefix="said-", dir=self.folder, delete=False) as file:
            started = Started(
                self.command(*arguments, cores=cores, **sections),
                cwd=self.folder,
                env=self.environment(path),
                stdin=subprocess.DEVNULL,
                stdout=file,
                stderr=subprocess.STDOUT,
                start_new_session=start_new_session,
                preexec_fn=None if self.before() else partial(signal.signal, signal.SIGCHLD, signal.SIG_IGN),
            )
        started.said = Path(file.name)
        return started

    def run(self, *arguments: str, path: Path | None = None) -> Ended:
        """Run Python in the working folder."""
        return self.ended([*self.before(), sys.executable, *arguments], path)

    def neurotier(self, *arguments: str) -> Ended:
        """Run a command of neurotier."""
        return self.run("-m", "neurotier", *arguments)

    def environment(self, path: Path | None = None) -> dict[str, str]:
        """The environment of commands; ``path`` comes first on PATH."""
        folders = [str(folder) for folder in (path, self.tools, STAND_INS) if folder is not None]
        return ENVIRONMENT | {"PATH": os.pathsep.join([*folders, ENVIRONMENT["PATH"]])}

    def ended(self, command: Sequence[str], path: Path | None = None) -> Ended:
        """Run a command in the working folder."""
        environment = self.environment(path)
        if command[: len(SNAKEMAKE)] == SNAKEMAKE:
            return started_from_ready(command[len(SNAKEMAKE) :], self.folder, environment)
        done = subprocess.run(
            command,
            cwd=self.folder,
            env=environment,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
        )
        return Ended(done.returncode, done.stdout)

    def heads(self, *labels: str, **images: np.ndarray | bytes) -> Path:
        """A plain dataset, ``bids``, of participants with a small head each, or with an image of one's own."""
        contents = {label: small_head(number) for number, label in enumerate(labels)} | images
        return plain_dataset(self.folder / "bids", {t1w(label): content for label, content in contents.items()})

    def configure(self, **sections: Any) -> None:
        """Write the configuration of all commands from now on, laid over ``config/config.yaml``.

        Its dataset is ``bids`` where that is; a dataset may be given by its source alone, a tool by its name, a tier by
        its folder, which is there, and paths as such.

        Other tests run beside it, so that runs are not held to be disturbed unless asked for.
        """
        if (self.folder / "bids").is_dir():
            sections.setdefault("dataset", "bids")
        for name, key in (("dataset", "source"), ("tool", "name")):
            if isinstance(given := sections.get(name), str | Path):
                sections[name] = {key: given}
        for name, tier in sections.get("tiers", {}).items():
            if isinstance(tier, Path):
                sections["tiers"] = {**sections["tiers"], name: {"path": tier, "kind": kind_of(tier)}}
        sections.setdefault("validity", {"others_cpu_share": 1})
        self.own.write_text(json.dumps(sections, default=str))

    def table(self, path: str, **where: str) -> list[dict[str, str]]:
        """Rows of a table below the results folder, or those of them that have such values."""
        head, *rows = (self.results / path).read_text().splitlines()
        found = [dict(zip(head.split("\t"), row.split("\t"), strict=True)) for row in rows]
        return [row for row in found if all(row[name] == value for name, value in where.items())]

    @property
    def only_run(self) -> dict[str, str]:
        """The row of the one run of these results."""
        (row,) = self.table("profile/runs.tsv")
        return row

    def columns(self, names: str, path: str, **where: str) -> list[str]:
        """Columns of a table, row by row."""
        return [" ".join(row[name] for name in names.split()) for row in self.table(path, **where)]

    def failure(self, participant: str) -> dict[str, Any]:
        """Why a participant failed, as noted by its job."""
        found: dict[str, Any] = read_json(file_of(self.results / "state/failures", participant))
        return found

    def records(self) -> list[Path]:
        """The records of all finished participants."""
        return sorted((self.results / "profile/records").rglob("*.json"))

    def conditions(self) -> dict[Path, dict[str, Any]]:
        """What is there of a campaign, by file."""
        files = sorted((self.results / "campaign/runs").glob("*/[0-9]*/condition.json"))
        return {file: read_json(file) for file in files}

    def page(self, name: str) -> str:
        """A page of the results."""
        return (self.results / f"{name}.html").read_text()

    def record(self, participant: str) -> dict[str, Any]:
        """What the job of a finished participant noted."""
        found: dict[str, Any] = read_json(file_of(self.results / "profile/records", participant))
        return found

    def log(self, participant: str) -> Path:
        """The output of a participant's job and its tool."""
        return file_of(self.results / "logs/analyze_participant", participant, ".log")

    def leftovers(self) -> list[Path]:
        """Everything on work tiers, and every hidden half result."""
        work = list(self.folder.glob("neurotier-*/work/**/*"))
        return work + list((self.results / "derivatives").glob("**/.*.partial"))


HASH_SEEDS = itertools.cycle(("0", "1"))
"""So that whatever depends on the order of sets differs between starts."""


@functools.cache
def ready_snakemake(hash_seed: str) -> tuple[subprocess.Popen[bytes], socket.socket]:
    """A process of this worker that has imported Snakemake, and what it hears by; it ends with the worker."""
    ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    with theirs:
        command = [sys.executable, str(ROOT / "tests/ready_snakemake.py")]
        return subprocess.Popen(command, env={**ENVIRONMENT, "PYTHONHASHSEED": hash_seed}, stdin=theirs.fileno()), ours


def started_from_ready(arguments: Sequence[str], folder: Path, environment: dict[str, str]) -> Ended:
    """Run Snakemake in a process that need not import it again; waits for all that can still say something."""
    hash_seed = next(HASH_SEEDS)
    process, ready = ready_snakemake(hash_seed)
    if process.poll() is not None:  # somebody killed it: that is not to fail all later tests of this worker
        ready_snakemake.cache_clear()
        _, ready = ready_snakemake(hash_seed)
    asked = {"arguments": arguments, "folder": str(folder), "environment": environment}
    reading, writing = os.pipe()
    with open(reading, errors="replace") as said:
        socket.send_fds(ready, [json.dumps(asked).encode()], [writing])
        os.close(writing)
        output = said.read()
    code = ready.recv(100)
    assert code, f"the process that has imported Snakemake has ended: {output}"
    return Ended(int(code), output)


def system(*command: str | Path, **how: Any) -> str:
    """What a command of the system prints, which must succeed."""
    try:
        return str(subprocess.run(command, check=True, capture_output=True, text=True, **how).stdout)
    except subprocess.CalledProcessError as error:
        error.add_note(error.stdout + error.stderr)
        raise


def datalad(folder: Path, *words: str | Path, **variables: str) -> None:
    """Run DataLad in a folder, as somebody who commits and has the stand-ins for tools."""
    own = {"PATH": f"{STAND_INS}{os.pathsep}{ENVIRONMENT['PATH']}", **IDENTITY, **variables}
    system("datalad", *words, cwd=folder, env=JOB_ENVIRONMENT | own)


def read_json(file: Path) -> Any:
    """The content of a JSON file."""
    return json.loads(file.read_text())


def remove_tree(folder: Path) -> None:
    """Remove a folder even if git-annex has write-protected its content."""
    system("chmod", "--recursive", "u+w", str(folder))
    shutil.rmtree(folder)


def private_folder(tier: Path) -> Path:
    """The folder of this user on a tier."""
    return tier / f"neurotier-{pwd.getpwuid(os.getuid()).pw_name}"


def kind_of(folder: Path) -> str:
    """The kind of storage that a tier in a folder of this machine declares."""
    found = subprocess.run(["stat", "--file-system", "--format=%T", folder], capture_output=True, text=True)
    return "tmpfs" if found.stdout == "tmpfs\n" else "block"


def git(folder: Path, *arguments: str) -> str:
    """Run git (or git-annex) with an identity, which a bare machine lacks; returns its output."""
    return system("git", "-c", "user.name=t", "-c", "user.email=t@t", *arguments, cwd=folder, env=ENVIRONMENT).strip()


def committed(folder: Path, annexed: bool = False) -> Path:
    """Make a folder a repository whose one commit has all that is in it, as contents of git-annex if so; the folder."""
    git(folder, "init")
    if annexed:
        git(folder, "annex", "init", "source")
        git(folder, "annex", "add", ".")
    git(folder, "add", ".")
    git(folder, "commit", "-m", "all")
    return folder


def make_demo(folder: Path) -> Path:
    """The demonstration dataset as the workflow makes and names it, with coarse voxels, which are quick to process.

    There is a space in the path at which it is made.
    """
    project = Project.at(folder / "who makes it")
    project.succeeds("make_demo_dataset", demo={"voxel_size_mm": 4.0, "seed": 7})
    (made,) = (path for path in project.folder.glob("neurotier-*/datasets/*") if path.is_dir())
    return made.rename(folder / made.name)


def once(folder: Path, make: Callable[[Path], Path]) -> Path:
    """Have something made once for all processes that ask for it; the others wait for the one that makes it.

    Parameters
    ----------
    folder
        Where it is made; its name tells it from other things. One that could not be made is made anew in another.
    make
        Makes it in a new folder, and returns its path.
    """
    made = folder.with_suffix(".made")
    with fasteners.InterProcessLock(folder.with_suffix(".lock")):
        if not made.exists():
            made.write_text(str(make(Path(tempfile.mkdtemp(prefix=f"{folder.name}-", dir=folder.parent)))))
        return Path(made.read_text())


def link_images(image: Path, project: Project) -> None:
    """Give a project the store in which an image lies; names there tell what was built, so that it is not again."""
    store = project.folder / image.parents[1].name / image.parent.name
    store.mkdir(parents=True, exist_ok=True)
    for file in image.parent.iterdir():
        if file.is_file() and not (store / file.name).exists():
            os.link(file, store / file.name)


def lives(process: psutil.Process) -> bool:
    """Whether a process has not ended; one whose parent has not heard of its end has."""
    try:
        return bool(process.status() != psutil.STATUS_ZOMBIE)
    except psutil.Error:
        return False


def words_of(process: psutil.Process) -> list[str]:
    """A process's command line; empty if it is gone."""
    try:
        return process.cmdline()
    except psutil.Error:
        return []


def processes_in(folder: Path, part: str = "") -> list[psutil.Process]:
    """Those that work below a folder or were given a path there, and have a part in their command line; some of Ray's
    have no environment to be known by."""
    found = []
    for process in psutil.process_iter():
        with suppress(psutil.Error, OSError):
            line = " ".join(process.cmdline())
            is_there = str(folder) in line or Path(process.cwd()).is_relative_to(folder)
            if is_there and part in line and process.pid != os.getpid():
                found.append(process)
    return found


BUSY = """
import glob, sys, time
while True:
    end_s = time.monotonic() + 0.1
    if not glob.glob(sys.argv[1]):
        time.sleep(0.1)
    while time.monotonic() < end_s:
        pass
"""


@contextmanager
def busy_loops(count: int, pattern: str = "/") -> Iterator[None]:
    """So many processes that are busy while there is something that matches a pattern."""
    loops = [subprocess.Popen([sys.executable, "-c", BUSY, pattern]) for _ in range(count)]
    try:
        yield
    finally:
        for loop in loops:
            loop.kill()
            loop.wait()


def bids_errors(dataset: Path) -> list[dict[str, Any]]:
    """What the validator of BIDS finds wrong with a dataset."""
    program = str(Path(sys.executable).with_name("bids-validator-deno"))
    done = subprocess.run([program, "--json", str(dataset)], env=ENVIRONMENT, capture_output=True, text=True)
    return [issue for issue in json.loads(done.stdout)["issues"]["issues"] if issue["severity"] == "error"]


def listening(folder: Path) -> set[str]:
    """Addresses of this network on which processes that work below a folder listen."""
    pids = {process.pid for process in processes_in(folder)}
    sockets = [one for one in psutil.net_connections("inet") if one.pid in pids and not one.raddr]
    return {str(next(iter(one.laddr))).removeprefix("::ffff:") for one in sockets}


def script(file: Path, text: str) -> Path:
    """A shell program; its folder is made."""
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(f"#!/bin/sh\n{text}\n")
    file.chmod(0o755)
    return file


def slow_project(folder: Path) -> Project:
    """A project whose bet lasts, and takes next to no CPU time."""
    script(folder / "bin/bet", f'sleep 3\nexec {STAND_INS}/bet "$@"')
    return Project.at(folder / "project", tools=folder / "bin")


def sleeping(seconds: float) -> dict[str, Any]:
    """A tool that does nothing for so long, s."""
    return {"name": "noop", "noop": {"sleep_s": seconds}}


def by_an_ordinary_user(code: str, folder: Path) -> str:
    """What Python prints without the rights of root, given a folder; it can import what this process can."""
    command = [*UNPRIVILEGED, sys.executable, "-c", code, str(folder)]
    environment = {**ENVIRONMENT, "PYTHONPATH": os.pathsep.join([str(ROOT / "tests/unit"), *sys.path])}
    return subprocess.run(command, env=environment, stdout=subprocess.PIPE, text=True, check=True).stdout


def quiet(line: str) -> None:
    """Progress that no test reads."""


def save_image(path: Path, data: np.ndarray) -> Path:
    """A NIfTI of 4 mm voxels."""
    path.parent.mkdir(parents=True, exist_ok=True)
    nib.save(nib.Nifti1Image(data, np.diag([4.0, 4.0, 4.0, 1.0])), path)
    return path


def small_head(seed: int = 0) -> np.ndarray:
    """A ball in air, enough of a head for tools that need no anatomy; int16, 20 x 20 x 20."""
    axis = np.arange(20) - 9.5
    distance = np.sqrt(sum(part**2 for part in np.meshgrid(axis, axis, axis, indexing="ij")))
    noise = np.random.default_rng(seed).integers(0, 20, (20, 20, 20))
    return np.where(distance < 7, 500, 0).astype(np.int16) + noise.astype(np.int16)


def plain_dataset(folder: Path, images: Mapping[str, np.ndarray | bytes]) -> Path:
    """A plain BIDS folder with the given T1w files (path to voxels, or to raw bytes)."""
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "dataset_description.json").write_text(json.dumps({"Name": "test", "BIDSVersion": "1.10.0"}))
    for name, content in images.items():
        if isinstance(content, bytes):
            (folder / name).parent.mkdir(parents=True, exist_ok=True)
            (folder / name).write_bytes(content)
        else:
            save_image(folder / name, content)
    return folder


def numbered(count: int) -> list[str]:
    """Labels of so many participants: ``00``, ``01`` and so on."""
    return [f"{number:02d}" for number in range(count)]


def t1w(label: str) -> str:
    """Path of the T1w image of a participant without sessions."""
    return f"sub-{label}/anat/sub-{label}_T1w.nii.gz"


def tried_again(test: Callable[P, None]) -> Callable[P, None]:
    """Let a test of a short load pass if one of three tries does: if a virtual machine is paused meanwhile, the load is
    unknowable, which is no fault of the code under test."""

    @functools.wraps(test)
    def tries(*arguments: P.args, **named: P.kwargs) -> None:
        for _ in range(2):
            with suppress(AssertionError):
                return test(*arguments, **named)
        return test(*arguments, **named)

    return tries


def wait_for(
    find: Callable[[], T | None],
    still: subprocess.Popen[Any] | Callable[[], object] = lambda: True,
    within_s: float = 3 * PATIENCE_S,
) -> T:
    """What is found at last; fails once ``still`` has ended or gives nothing, or after ``within_s``."""
    goes_on = while_running(still) if isinstance(still, subprocess.Popen) else still
    deadline = time.monotonic() + within_s
    while not (found := find()):
        assert time.monotonic() < deadline, "what was waited for did not come"
        assert goes_on(), "it ended before what was waited for"
        time.sleep(0.05)
    return found


def while_running(process: subprocess.Popen[Any]) -> Callable[[], bool]:
    """A function that returns whether a process is still running."""
    return lambda: process.poll() is None


def sha256(file: Path) -> str:
    return hashlib.sha256(file.read_bytes()).hexdigest()


def checksums(derivatives: Path) -> dict[str, str]:
    """SHA-256 of every file below a folder, but for Snakemake's own time stamps."""
    return {
        str(path.relative_to(derivatives)): sha256(path)
        for path in sorted(derivatives.rglob("*"))
        if path.is_file() and path.name != ".snakemake_timestamp"
    }
