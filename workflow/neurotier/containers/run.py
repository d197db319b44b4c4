"""A command in a container that sees nothing but what it is given, and whose start is told from its work.

Before the command, a few lines of shell run inside: they say that the container has started, wait for the word to go,
and then keep an eye on the pipe that it came through. If the job that holds the other end dies, even by SIGKILL,
the command dies, and with it the container: engines leave theirs running when they are killed from outside.
"""

from __future__ import annotations

import contextlib
import os
import re
import select
import shlex
import shutil
import subprocess
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

from neurotier.containers.engine import clean_environment, explain, explain_exit
from neurotier.errors import ContainerError
from neurotier.meter.lap import lap_of
from neurotier.meter.residency import resident_share
from neurotier.meter.tree import die_with_parent, shell_code
from neurotier.meter.usage import Usage

if TYPE_CHECKING:
    from neurotier.settings import ContainerSettings

WORK = "/work"
"""Where a tool finds its work folder, whatever the tier; temporary files and its home lie below it."""

STATE = ".neurotier"

SHIM = f"""(sleep 30 && kill -KILL $$) >/dev/null 2>&1 &
guard=$!
exec 9<{WORK}/{STATE}/go
kill $guard 2>/dev/null
echo >{WORK}/{STATE}/started
read -r _ <&9 || exit 125
(read -r _ <&9 || kill -KILL $$) >/dev/null 2>&1 &
. {WORK}/{STATE}/environment
[ -x "$(command -v "$1" 2>/dev/null)" ] || echo >{WORK}/{STATE}/missing
exec "$@" 9<&-
"""
"""What runs first in a container. The kernel opens a pipe for reading when somebody has it open for writing: at once,
if the job still lives, and never, if it has been killed meanwhile; hence the guard."""

ALWAYS_PASSED = re.compile(r"TERM$|(https?|no|all|ftp)_proxy$", re.IGNORECASE)
"""Variables that engines pass on in spite of ``--cleanenv``; an address of a proxy can hold a password."""

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

    def command_line(self, command: list[str]) -> list[str]:
        """The engine's command line."""
        binds = [*self.binds, *further_binds(self.settings.binds), Bind(self.scratch, WORK, writable=True)]
        binds += [Bind(self.scratch / "tmp", place, writable=True) for place in ("/tmp", "/var/tmp")]  # noqa: S108
        network = [] if self.settings.network else ["--net", "--network", "none"]
        return [
            *(self.engine, "--quiet", "exec", "--containall", "--cleanenv", "--no-home", *network),
            *(word for bind in binds for word in ("--bind", bind.word())),
            *("--pwd", WORK, str(self.image), "/bin/sh", "-c", SHIM, "sh", *command),
        ]

    def prepare(self) -> None:
        """Make what the command finds in its work folder: home, temporary folder, environment, pipes."""
        state = self.scratch / STATE
        for folder in (self.scratch / "tmp", self.scratch / "home", state):
            folder.mkdir(parents=True, exist_ok=True)
        variables = {"HOME": f"{WORK}/home", "TMPDIR": f"{WORK}/tmp", **self.settings.environment}  # noqa: S108
        lines = [f"export {name}={shlex.quote(value)}\n" for name, value in variables.items()]
        (state / "environment").write_text("".join(lines))
        for pipe in ("started", "go"):
            os.mkfifo(state / pipe)

    def run(
        self, command: list[str], log: Path, held: Callable[[], None] | None = None, program: str = ""
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
        self.prepare()
        image = [self.image] if self.image.is_file() else []  # an unpacked one is too many files to look at
        resident_before = resident_share(image)
        begin = log.stat().st_size if log.exists() else 0
        with held_open(self.scratch / STATE) as (started, go), log.open("ab") as file:
            environment = clean_environment(os.environ)
            start_s, began_s = time.time(), time.monotonic()
            process = subprocess.Popen(
                self.command_line(command),
                cwd=self.scratch,
                env={name: value for name, value in environment.items() if not ALWAYS_PASSED.match(name)},
                stdin=subprocess.DEVNULL,
                stdout=file,
                stderr=file,
                preexec_fn=die_with_parent,
            )
            try:
                if not wait_for(started, process):
                    code = process.poll()
                    said = log.read_bytes()[begin:].decode(errors="replace")
                    raise self.no_start(said, code)
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
        missing = (self.scratch / STATE / "missing").exists()
        shutil.rmtree(self.scratch / STATE)
        error = missing and explain_exit(code, program or command[0], str(self.image.name))
        if error:
            raise error
        return code, lap

    def no_start(self, said: str, code: int | None) -> Exception:
        """The error for a container that did not come up."""
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
    started = os.open(state / "started", os.O_RDWR | os.O_NONBLOCK)
    go = os.open(state / "go", os.O_RDWR)
    try:
        yield started, go
    finally:
        os.close(started)
        os.close(go)


def wait_for(started: int, process: subprocess.Popen[bytes]) -> bool:
    """Wait until the container says that it has started; ``False`` if it ended instead, or the patience did."""
    with os.fdopen(os.pidfd_open(process.pid), "rb") as ended:
        poll = select.poll()
        poll.register(started, select.POLLIN)
        poll.register(ended, select.POLLIN)
        happened = {descriptor for descriptor, _ in poll.poll(1000 * PATIENCE_S)}
    process.poll()
    return started in happened
