"""Faults at a system call: what a run calls is recorded once; a trial then has one of these calls fail, or kill."""

from __future__ import annotations

import random
import re
from dataclasses import dataclass
from pathlib import Path

WRITING = ("ENOSPC", "EIO", "EDQUOT")
NAMING = ("ENOSPC", "EIO", "EROFS")
ERRORS = {
    "write": WRITING,
    "pwrite64": WRITING,
    "sendfile": WRITING,
    "copy_file_range": WRITING,
    "ftruncate": ("EIO",),
    "read": ("EIO",),
    "pread64": ("EIO",),
    "fsync": WRITING,
    "fdatasync": WRITING,
    "syncfs": ("EIO",),
    "openat": ("EIO",),
    "rename": NAMING,
    "renameat": NAMING,
    "renameat2": NAMING,
    "unlink": ("EIO", "EROFS"),
    "unlinkat": ("EIO", "EROFS"),
    "rmdir": ("EIO", "EROFS"),
    "mkdir": NAMING,
    "mkdirat": NAMING,
    "getdents64": ("EIO",),
}
"""Errors that real file systems give, by system call."""

WORKING_FOLDER = re.compile("AT_FDCWD<[^>]*>")
CALL = re.compile(r"^(\d+) +(\w+)\((.*)")


@dataclass(frozen=True)
class Call:
    """One system call on the trial's own files: the ``nth`` of its name in its process."""

    name: str
    nth: int
    creates: bool
    shown: str


def recording(log: Path) -> list[str]:
    """Words that record what a command calls, to be put before it."""
    return [*tracing(log), "--seccomp-bpf", "-y", "-s", "0", "-e", f"trace={','.join(ERRORS)}", "--"]


def tracing(log: Path) -> list[str]:
    return ["strace", "-f", "-qq", "-o", str(log)]


def injecting(log: Path, call: Call, fault: str) -> list[str]:
    """Words that have a call fail (``error=EIO``) or kill its caller (``signal=SIGKILL``), put before a command.

    With ``--seccomp-bpf``, signals are not sent (strace 6.1).
    """
    return [*tracing(log), "-e", f"trace={call.name}", "-e", f"inject={call.name}:{fault}", "--"]


def calls_of(log: Path, folder: Path) -> list[Call]:
    """The calls of a recording that concern files in a folder."""
    counts: dict[tuple[str, str], int] = {}
    calls = []
    for line in log.read_text(errors="replace").splitlines():
        found = CALL.match(line)
        if found is None:
            continue
        process, name, rest = found.groups()
        rest = WORKING_FOLDER.sub("AT_FDCWD", rest)
        counts[process, name] = nth = counts.get((process, name), 0) + 1
        if f"{folder}/" in rest and " ENOENT " not in rest:
            calls.append(Call(name, nth, "O_CREAT" in rest, rest[:150].replace(str(folder), "")))
    return calls


def draw_call(calls: list[Call], chance: random.Random) -> Call:
    """A call: first its name, so that rare ones (fsync, rename) come as often as reads and opens."""
    name = chance.choice(sorted({call.name for call in calls}))
    return chance.choice([call for call in calls if call.name == name])


def draw_error(call: Call, chance: random.Random) -> str:
    """How a call fails: once, or from then on, as when a disk stays full."""
    errors = NAMING if call.creates else ERRORS[call.name]
    return f"error={chance.choice(errors)}:when={call.nth}{chance.choice(['', '', '+'])}"


def has_hit(log: Path) -> bool:
    """Whether an injected fault happened."""
    text = log.read_text(errors="replace") if log.exists() else ""
    return any(word in text for word in ("(INJECTED)", "killed by SIG", "--- SIGTERM", "--- SIGINT"))
