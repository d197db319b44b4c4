"""A command in a container that sees nothing but what it is given, and whose start is told from its work.

Before the command, a few lines of shell run inside: they say that the container has started, wait for the word to go,
and then keep an eye on the pipe that it came through. If the job that holds the other end dies, even by SIGKILL,
the command dies, and with it the container: engines leave theirs running when they are killed from outside. Since a
command can kill all that it sees, there is a second guard that it does not see (:mod:`neurotier.containers.guard`).

Nothing is read from where the command could write: pipes, environment and script lie in a folder which it may only
read.
"""

from __future__ import annotations

import contextlib
import os
import re
import secrets
import select
import shlex
import shutil
import stat
import subprocess
import tempfile
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

from neurotier.containers.engine import clean_environment, explain, explain_exit
from neurotier.containers.guard import MARK, guarded
from neurotier.core.errors import ContainerError
from neurotier.core.foreign import TEXT_BYTES, kind_of
from neurotier.meter.lap import lap_of
from neurotier.meter.residency import resident_share
from neurotier.meter.tree import die_with_parent, shell_code
from neurotier.meter.usage import Usage

if TYPE_CHECKING:
    from neurotier.core.settings import ContainerSettings

WORK = "/work"
"""Where a tool finds its work folder, whatever the tier; temporary files and its home lie below it."""

STATE = "/.neurotier"
"""Where a container finds pipes, environment and script, read-only."""

RUN = "NEUROTIER_RUN"
"""As in :mod:`neurotier.core.processes`, which is not loaded for it."""

SCRIPT = f"{STATE}/script"
"""Where it finds the script that it was given."""

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
"""What runs first in a container. The kernel opens a pipe for reading when somebody has it open for writing: at once,
if the job still lives, and never, if it has been killed meanwhile; hence the guard."""

ALWAYS_PASSED = re.compile(r"TERM$|(https?|no|all|ftp)_proxy$", re.IGNORECASE)
"""Variables that engines pass on in spite of ``--cleanenv``; an address of a proxy can hold a password."""

PIPE_BYTES = 1 << 16
"""Most that a pipe holds."""

PATIENCE_S = 600.0
"""How long a container may take to start; images on slow tiers have been seen to take minutes."""


@dataclass(frozen=True)
class Bind:
    """A file or folder of the host, and where the container sees it."""

    host: Path
    inside: str
    writable: bool = False

    def word(self) -> str:
        """As the engine's command line wants it.

        >>> Bind(Path("/data"), "/in").word()
        '/data:/in:ro'
        """
        if any(c in str(self.host) for c in ":,"):
            fix = "choose a path without them"
            raise ContainerError("a path with a colon or a comma cannot be bound", where=str(self.host), fix=fix)
        return f"{self.host}:{self.inside}:{'rw' if self.writable else 'ro'}"


@dataclass(frozen=True)
class Container:
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
        The only writable folder but for writable binds; on the work tier.
    binds
        What the command may see besides.
    """

    engine: str
    image: Path
    settings: ContainerSettings
    scratch: Path
    binds: list[Bind] = field(default_factory=list)

    def command_line(self, command: list[str], state: Path, token: str) -> list[str]:
        """The engine's command line.

        Parameters
        ----------
        command
            Words; the first is a program of the image.
        state
            Folder with pipes, environment and script.
        token
            What tells this container's processes from all others. They also have the run, by which the start after
            a crash finds them: the engine's own do not inherit the environment, but keep what they give on in theirs.
        """
        binds = [*self.binds, *further_binds(self.settings.binds), Bind(self.scratch, WORK, writable=True)]
        binds += [Bind(self.scratch / "tmp", place, writable=True) for place in ("/tmp", "/var/tmp")]  # noqa: S108
        binds += [Bind(state, STATE)]
        marks = {MARK: token} | {name: os.environ[name] for name in [RUN] if name in os.environ}
        network = [] if self.settings.network else ["--net", "--network", "none"]
        return [
            *(self.engine, "--quiet", "exec", "--containall", "--cleanenv", "--no-home", *network),
            *(word for name, value in marks.items() for word in ("--env", f"{name}={value}")),
            *(word for bind in binds for word in ("--bind", bind.word())),
            *("--pwd", WORK, str(self.image), "/bin/sh", "-c", SHIM, "sh", *command),
        ]

    @contextlib.contextmanager
    def prepared(self, script: str) -> Iterator[Path]:
        """Make the work folder's home and temporary folder; a folder with environment, script and pipes, for a while.

        Raises
        ------
        ContainerError
            If an earlier container has put something else in their place, which the engine would follow.
        """
        self.scratch.mkdir(parents=True, exist_ok=True)
        for folder in (self.scratch / "tmp", self.scratch / "home"):
            with contextlib.suppress(FileExistsError):
                folder.mkdir()
            mode = folder.lstat().st_mode
            if not stat.S_ISDIR(mode):
                raise ContainerError(f"is {kind_of(mode)} that a container has left, and no folder", where=str(folder))
        variables = {"HOME": f"{WORK}/home", "TMPDIR": f"{WORK}/tmp", **self.settings.environment}  # noqa: S108
        lines = [f"export {name}={shlex.quote(value)}\n" for name, value in variables.items()]
        state = Path(tempfile.mkdtemp(prefix=f".{self.scratch.name}-", dir=self.scratch.parent))
        try:
            (state / "environment").write_text("".join(lines))
            (state / "script").write_text(script)
            for pipe in ("said", "go"):
                os.mkfifo(state / pipe)
            yield state
        finally:
            shutil.rmtree(state)

    def run(
        self,
        command: list[str],
        log: Path,
        held: Callable[[], None] | None = None,
        program: str = "",
        script: str = "",
    ) -> tuple[int, Usage]:
        """Run a command to its end.

        Parameters
        ----------
        command
            Words; the first is a program of the image.
        log
            File that takes both output streams.
        held
            Called when the container has started, before the command does.
        program
            What to call the command in an error.
        script
            What the container finds as :data:`SCRIPT`.

        Returns
        -------
        tuple
            Exit code as a shell gives it, and what it cost to start the container.

        Raises
        ------
        ContainerError
            If the container does not start.
        ToolError
            If the image does not have the command.
        """
        image = [self.image] if self.image.is_file() else []  # an unpacked one is too many files to look at
        resident_before = resident_share(image)
        token = secrets.token_hex(8)
        begin = log.stat().st_size if log.exists() else 0
        with self.prepared(script) as state, held_open(state) as (said, go), log.open("ab") as file:
            environment = clean_environment(os.environ)
            start_s, began_s = time.time(), time.monotonic()
            process = subprocess.Popen(
                self.command_line(command, state, token),
                cwd=self.scratch,
                env={name: value for name, value in environment.items() if not ALWAYS_PASSED.match(name)},
                stdin=subprocess.DEVNULL,
                stdout=file,
                stderr=file,
                preexec_fn=die_with_parent,
            )
            with guarded(process.pid, token) as guard:
                try:
                    if not wait_for(said, process):
                        raise self.no_start(read_from(log, begin), process)
                    guard.started()
                    os.read(said, PIPE_BYTES)
                    lap = lap_of(process.pid, start_s, began_s)
                    lap.input_bytes = self.image.stat().st_size if image else None
                    lap.input_resident_before, lap.input_resident_after = resident_before, resident_share(image)
                    if held is not None:
                        held()
                    os.write(go, b"go\n")
                    code = shell_code(process.wait())
                except BaseException:
                    process.terminate()
                    with contextlib.suppress(subprocess.TimeoutExpired):
                        process.wait(timeout=5)
                    process.kill()
                    process.wait()
                    raise
            missing = b"missing" in read_pipe(said)
        error = missing and explain_exit(code, program or command[0], str(self.image.name))
        if error:
            raise error
        return code, lap

    def no_start(self, said: str, process: subprocess.Popen[bytes]) -> Exception:
        """The error for a container that did not come up."""
        code = process.poll()
        if not os.access(self.image, os.R_OK):
            return ContainerError("the image is missing or not readable", where=str(self.image))
        if code is None:
            return ContainerError(f"the container had not started after {PATIENCE_S:.0f} s", where=str(self.image))
        return explain(said, str(self.image))


def further_binds(words: list[str]) -> list[Bind]:
    """Binds that the configuration adds, read-only.

    Raises
    ------
    ContainerError
        If one does not exist.
    """
    binds = []
    for word in words:
        host, _, inside = word.partition(":")
        path = Path(host).expanduser().absolute()
        if not path.exists():
            raise ContainerError("does not exist", where=f"config key containers.binds: {host}", fix="correct the path")
        binds.append(Bind(path, inside or str(path)))
    return binds


@contextlib.contextmanager
def held_open(state: Path) -> Iterator[tuple[int, int]]:
    """Both pipes, open at this end as long as this process lives: opened both ways, which does not wait."""
    said = os.open(state / "said", os.O_RDWR | os.O_NONBLOCK)
    go = os.open(state / "go", os.O_RDWR)
    try:
        yield said, go
    finally:
        os.close(said)
        os.close(go)


def read_from(log: Path, begin: int) -> str:
    """What was added to a log since it had a size."""
    with log.open("rb") as file:
        file.seek(begin)
        return file.read(TEXT_BYTES).decode(errors="replace")


def read_pipe(pipe: int) -> bytes:
    """What a container has said since; it may say anything."""
    try:
        return os.read(pipe, PIPE_BYTES)
    except BlockingIOError:
        return b""


def wait_for(said: int, process: subprocess.Popen[bytes]) -> bool:
    """Wait until the container says that it has started; ``False`` if it ended instead, or the patience did."""
    with os.fdopen(os.pidfd_open(process.pid), "rb") as ended:
        poll = select.poll()
        poll.register(said, select.POLLIN)
        poll.register(ended, select.POLLIN)
        happened = {descriptor for descriptor, _ in poll.poll(1000 * PATIENCE_S)}
    process.poll()
    return said in happened
