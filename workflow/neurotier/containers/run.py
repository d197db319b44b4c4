"""A command in a container that sees only what it is given, with the start of the container timed apart from its work.

A few lines of shell run in the container before the command. They report that the container has started, wait for
permission to go on, and then watch the pipe through which it came. If the job at the other end dies, even by SIGKILL,
they kill the command, and the container with it; the engine alone would leave it running. Since a command can kill
processes that it sees, there is a second guard that it does not see: a fork of the job (:func:`guarded`).

Pipes, environment and script are in a folder that the command can read but not write.
"""

from __future__ import annotations

import functools
import json
import os
import re
import shlex
import signal
import stat
import subprocess
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from io import FileIO
from multiprocessing.connection import wait
from pathlib import Path
from typing import NamedTuple

from neurotier.containers.engine import MISSING, clean_environment, explain, read_from
from neurotier.core.errors import ContainerError, ToolError
from neurotier.core.files import absolute_path
from neurotier.core.foreign import kind_of
from neurotier.core.processes import RUN, THREADS, fork_process, kill_all_marked, signals_blocked
from neurotier.core.settings import ContainerSettings
from neurotier.meter.lap import lap_of
from neurotier.meter.residency import resident_share
from neurotier.meter.tree import die_with_parent, shell_code
from neurotier.meter.usage import Usage

WORK = "/work"
"""The work folder as the tool sees it, on every tier; it contains the tool's temporary files and its home."""

STATE = "/.neurotier"
"""Folder in the container with pipes, environment and script, read-only."""

MARK = "NEUROTIER_CONTAINER"
"""Environment variable that marks the processes of one container."""

SCRIPT = f"{STATE}/script"
"""The script in the container."""

SHIM = f"""(sleep 30 && kill -KILL $$) >/dev/null 2>&1 &
guard=$!
exec 9<{STATE}/go
kill $guard 2>/dev/null
echo >{STATE}/said
read -r _ <&9 || exit 125
(read -r _ <&9 || kill -KILL $$) >/dev/null 2>&1 &
. {STATE}/environment
[ -x "$(command -v "$1" 2>/dev/null)" ] || echo missing >{STATE}/said
exec "$@" 9<&-
"""
"""What runs first in a container. Opening a pipe for reading blocks until a process has it open for writing: that is
immediate while the job is alive, and never happens if it has been killed meanwhile; hence the time limit of 30 s."""

ALWAYS_PASSED = re.compile(r"TERM$|(https?|no|all|ftp)_proxy$", re.IGNORECASE)
"""Variables that engines pass on in spite of ``--cleanenv``; a proxy's address may contain a password."""

CALLS = ["mount", "fsopen", "fspick", "open_tree", "move_mount", "mount_setattr", "keyctl", "add_key", "request_key"]
"""System calls refused to a container that root starts. In a user namespace of its own it could mount its job's control
group and write there; and keyrings are not confined to containers, so that it could use root's."""

PIPE_BYTES = 1 << 16
"""Capacity of a pipe."""

PATIENCE_S = 600.0
"""How long a container may take to start; from images on slow tiers it has taken minutes."""

TURN_S = 0.1
"""How often to check whether a container that is starting has ended instead."""


class Bind(NamedTuple):
    """A file or folder of the host, and its path in the container."""

    host: Path
    inside: str
    writable: bool = False

    def word(self) -> str:
        """The bind as an argument of the engine.

        >>> Bind(Path("/data"), "/in").word()
        '/data:/in:ro'
        """
        if any(c in f"{self.host}{self.inside}" for c in ":,"):
            raise ContainerError(
                "a path with a colon or a comma cannot be bound",
                self.host,
                "choose a path without them",
            )
        return f"{self.host}:{self.inside}:{'rw' if self.writable else 'ro'}"


class Container(NamedTuple):
    """How to run commands in one image.

    Attributes
    ----------
    engine
        Path of the container engine.
    image
        The image on its tier.
    settings
        Section ``containers`` of the configuration.
    scratch
        The only writable folder besides writable binds; on the work tier.
    binds
        Other files and folders that the command sees.
    """

    engine: str
    image: Path
    settings: ContainerSettings
    scratch: Path
    binds: Sequence[Bind] = ()

    def command_line(self, command: list[str], state: Path, token: str) -> list[str]:
        """The engine's command line.

        Parameters
        ----------
        command
            Words; the first is a program of the image.
        state
            Folder with pipes, environment and script.
        token
            Marks the processes of this container. They are also marked with the run, so that the next run finds them
            after a crash.
        """
        binds = [*self.binds, *further_binds(self.settings.binds), Bind(self.scratch, WORK, writable=True)]
        binds += [Bind(self.scratch / "tmp", place, writable=True) for place in ("/tmp", "/var/tmp")]  # noqa: S108
        options, kept_from = isolation_options(state)
        binds += [Bind(state, STATE), *kept_from]
        marks = {MARK: token} | {name: os.environ[name] for name in [RUN] if name in os.environ}
        network = [] if self.settings.network else ["--net", "--network", "none"]
        return [
            self.engine,
            "--quiet",
            "exec",
            "--containall",
            "--cleanenv",
            "--no-home",
            *network,
            *(word for name, value in marks.items() for word in ("--env", f"{name}={value}")),
            *(word for bind in binds for word in ("--bind", bind.word())),
            *options,
            "--pwd",
            WORK,
            str(self.image),
            "/bin/sh",
            "-c",
            SHIM,
            "sh",
            *command,
        ]

    @contextmanager
    def prepared(self, script: str) -> Iterator[tuple[Path, FileIO, FileIO]]:
        """Make home and temporary folder in the work folder, and a folder of pipes, environment and script for the run.

        The pipes are opened for reading and writing, which does not block.

        Raises
        ------
        ContainerError
            If an earlier container replaced one of them by a link, which the engine would follow, or by a file.
        """
        self.scratch.mkdir(parents=True, exist_ok=True)
        for folder in (self.scratch / "tmp", self.scratch / "home"):
            with suppress(FileExistsError):
                folder.mkdir()
            mode = folder.lstat().st_mode
            if not stat.S_ISDIR(mode):
                raise ContainerError(f"is {kind_of(mode)} that a container has left, not a folder", folder)
        threads = {name: os.environ[name] for name in THREADS if name in os.environ}
        variables = {"HOME": f"{WORK}/home", "TMPDIR": f"{WORK}/tmp", **threads, **self.settings.environment}  # noqa: S108
        lines = [f"export {name}={shlex.quote(value)}\n" for name, value in variables.items()]
        with tempfile.TemporaryDirectory(prefix=f".{self.scratch.name}-", dir=self.scratch.parent) as made:
            state = Path(made)
            (state / "nothing").mkdir()
            refused = {"names": CALLS, "action": "SCMP_ACT_ERRNO"}
            (state / "calls").write_text(json.dumps({"defaultAction": "SCMP_ACT_ALLOW", "syscalls": [refused]}))
            (state / "environment").write_text("".join(lines))
            (state / "script").write_text(script)
            for pipe in ("said", "go"):
                os.mkfifo(state / pipe)
            with FileIO(state / "said", "r+") as said, FileIO(state / "go", "r+") as go:
                os.set_blocking(said.fileno(), False)
                yield state, said, go

    def run(
        self,
        command: list[str],
        log: Path,
        held: Callable[[], None] = lambda: None,
        program: str = "",
        script: str = "",
    ) -> tuple[int, Usage]:
        """Run a command to its end.

        Parameters
        ----------
        command
            Words; the first is a program of the image.
        log
            File for both output streams.
        held
            Called when the container has started, before the command starts.
        program
            What to call the command in an error.
        script
            Content of :data:`SCRIPT`.

        Returns
        -------
        tuple
            Exit code as a shell gives it, and the cost of starting the container.

        Raises
        ------
        ContainerError
            If the container does not start.
        ToolError
            If the image does not have the command, or cannot execute it.
        """
        image = [self.image] if self.image.is_file() else []  # an unpacked image has too many files to check
        resident_before = resident_share(image)
        token = os.urandom(8).hex()
        with self.prepared(script) as (state, said, go), log.open("ab") as file:
            environment, begin = clean_environment(), file.tell()
            start_s, began_s = time.time(), time.monotonic()
            process = subprocess.Popen(
                self.command_line(command, state, token),
                cwd=self.scratch,
                env={name: value for name, value in environment.items() if not ALWAYS_PASSED.match(name)},
                stdin=subprocess.DEVNULL,
                stdout=file,
                stderr=file,
                preexec_fn=die_with_parent,
                start_new_session=True,  # otherwise it could put commands into the terminal (TIOCSTI)
            )
            with guarded(token, process):
                if not wait_for(said, process):
                    problem = f"the container had not started after {PATIENCE_S:.0f} s"
                    if not os.access(self.image, os.R_OK):
                        problem = "the image is missing or not readable"
                    elif process.poll() is not None:
                        raise explain(read_from(log, begin), self.image)
                    raise ContainerError(problem, self.image)
                said.read(PIPE_BYTES)
                lap = lap_of(process.pid, start_s, began_s)
                lap.input_bytes = self.image.stat().st_size if image else None
                lap.input_resident_before, lap.input_resident_after = resident_before, resident_share(image)
                held()
                go.write(b"go\n")
                code = shell_code(process.wait())
            # the container may have written anything here
            if b"missing" in (said.read(PIPE_BYTES) or b"") and code in MISSING:
                problem, fix = MISSING[code]
                raise ToolError(problem.format(program or command[0]), self.image.name, fix)
        return code, lap


@contextmanager
def guarded(token: str, engine: subprocess.Popen[bytes]) -> Iterator[None]:
    """End a container, whose processes have ``token`` as their :data:`MARK`, if this context is left by an exception.

    If this process dies meanwhile, for any reason, a fork of it ends the container: the guard, which the container
    cannot see. It is a fork, since another Python would take longer to start than the container.
    """
    with signals_blocked():  # the guard inherits this, since it must outlive the job, which these signals are meant for
        guard = fork_process(functools.partial(stand_guard, token, os.getpid()))
    try:
        yield
    except BaseException:
        engine.kill()
        engine.wait()
        kill_all_marked(MARK, [token])
        raise
    finally:
        with suppress(ProcessLookupError, ChildProcessError):  # already reaped with other children
            os.kill(guard, signal.SIGKILL)
            os.waitpid(guard, 0)


def stand_guard(token: str, job: int) -> int:
    """Wait until the parent of this process, the job, has died, which the kernel signals; then kill the container."""
    os.setsid()  # otherwise the terminal's signals to a group could end it first
    os.closerange(0, os.sysconf("SC_OPEN_MAX"))  # otherwise the pool would wait for the pipe from the job to close
    while os.getppid() == job:
        signal.sigwait([signal.SIGTERM])
    kill_all_marked(MARK, [token])
    return 0


def further_binds(words: list[str]) -> list[Bind]:
    """Binds that the configuration adds, read-only with or without ``:ro``, the engines' own suffix, at the end.

    >>> [bind.word() for bind in further_binds(["/etc", "/etc:/mnt", "/etc:/mnt:ro"])]
    ['/etc:/etc:ro', '/etc:/mnt:ro', '/etc:/mnt:ro']

    Raises
    ------
    ContainerError
        If one does not exist.
    """
    binds = []
    for word in words:
        host, _, inside = word.removesuffix(":ro").partition(":")
        path = absolute_path(host)
        if not path.exists():
            raise ContainerError("does not exist", f"config key containers.binds: {host}", "correct the path")
        binds.append(Bind(path, inside or str(path)))
    return binds


def isolation_options(state: Path) -> tuple[list[str], list[Bind]]:
    """Options of the engine, and binds, that keep a container away from the machine itself.

    Process 1 is the engine's own, and its environment has paths of the host. For most other files in ``/proc`` and
    ``/sys`` the kernel checks for user 0, not for a capability: a container started by root could write them. Such a
    container gets only files that everybody may read and nobody may write, and :data:`CALLS` are refused to it.

    Parameters
    ----------
    state
        The run's folder, with an empty one in it.
    """
    nothing, null = state / "nothing", Path(os.devnull)
    binds, options = [Bind(null, "/proc/1/environ"), Bind(nothing, "/proc/1/task")], []
    if os.geteuid() == 0:
        options = ["--no-mount", "sys", "--security", f"seccomp:{state / 'calls'}"]
        # /sys/devices/system describes processors. Binding all of /sys would include the control groups mounted below
        # it, writable; likewise /proc/sys the binary formats, whose programs the host would then start.
        binds += [Bind(Path(place), place) for place in ("/sys/devices/system", "/proc/sys")]
        binds += [Bind(nothing, place) for place in ["/proc/sys/fs/binfmt_misc"] if os.path.exists(place)]
        with os.scandir("/proc") as entries:
            for entry in entries:
                if entry.is_dir(follow_symlinks=False) and not entry.name.isdecimal() and entry.name != "sys":
                    binds.append(Bind(nothing, entry.path))
                elif entry.is_file(follow_symlinks=False) and stat.S_IMODE(entry.stat().st_mode) != 0o444:
                    binds.append(Bind(null, entry.path))
    return options, binds


def wait_for(said: FileIO, process: subprocess.Popen[bytes]) -> bool:
    """Wait until the container reports its start; ``False`` if it ended instead, or :data:`PATIENCE_S` have passed."""
    deadline_s = time.monotonic() + PATIENCE_S
    while process.poll() is None and time.monotonic() < deadline_s:  # in turns: kernels before 5.3 have no pidfd_open
        if wait([said.fileno()], TURN_S):
            return True
    return False
