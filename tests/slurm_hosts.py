"""The hosts of the tests' Slurm cluster: namespaces in which each sees a machine of its own.

Hosts share the disk, as the nodes of a cluster share a file system, and nothing else: each has its own processes, host
name, ``/dev/shm`` and folder of scratch space; the login node has its own ``/tmp``, too. Memory of nodes is limited by
control groups, version 1 alone: of version 2 Slurm 22.05 wants systemd, which a container has none of.
"""

from __future__ import annotations

import shlex
import sys
from collections.abc import Iterable, Iterator
from pathlib import Path

from support import ROOT, system

USER = "games"
"""The account that submits and runs jobs: every Debian has it, and it has no special permissions."""

NODES = ("n1", "n2", "n3", "n4")
LOGIN = "login"

NODE_MIB = 5000
"""Memory of a node."""

SCRATCH_MIB = 400
"""Size of the tmpfs ``memory`` in the scratch space of a node."""

CONTROL_GROUPS = Path("/sys/fs/cgroup")

SPACES = ("unshare", "--mount", "--uts", "--pid", "--cgroup", "--mount-proc", "--fork", "--kill-child")

JOIN = 'for group in {groups}; do echo $$ > "$group/cgroup.procs"; done; exec "$@"'
"""Enters control groups, which are then the root of those that the host sees."""

HOST = """
set -e
hostname {name}
mount --bind {folder}/hosts /etc/hosts
{covered}
"""

NODE = """
[ ! -d {limits} ] || {{ umount {limits}; mount -t cgroup -o memory memory {limits}; }}
mkdir -p {folder}/local-{name}/memory
chmod 1777 {folder}/local-{name}
mount --bind {folder}/local-{name} {folder}/local
mount -t tmpfs -o size={scratch_mib}m,mode=1777 memory {folder}/local/memory
mount -t tmpfs -o size=2000m,mode=1777 memory /dev/shm
slurmd -D -N {name} &
wait
"""
"""What starts a node; the shell is the first process of its namespace, and reaps orphans. The login node has little of
``/dev/shm``, which nothing may need."""

LOGIN_NODE = """
mount -t tmpfs -o size=16m,mode=1777 memory /dev/shm
touch {folder}/login-is-up
sleep infinity &
wait
"""


def has_memory_limits() -> bool:
    """Whether the memory of jobs can be limited here."""
    return (CONTROL_GROUPS / "memory/memory.limit_in_bytes").exists()


def joining(groups: Iterable[Path], script: str) -> list[str]:
    """The command that starts a host in control groups."""
    join = JOIN.format(groups=" ".join(shlex.quote(str(group)) for group in groups))
    return ["sh", "-c", join, "sh", *SPACES, "sh", "-c", script]


NEEDED = [ROOT, Path(sys.prefix).resolve(), Path(sys.base_prefix).resolve()]
"""What every user must be able to read: the checkout and Python, below which the container engine may lie, too."""


def node_script(folder: Path, name: str) -> str:
    """What a node does, in a shell of its own name spaces."""
    values = {"name": name, "limits": CONTROL_GROUPS / "memory", "scratch_mib": SCRATCH_MIB}
    return host_script(folder, name) + NODE.format(folder=shlex.quote(str(folder)), **values)


def login_script(folder: Path) -> str:
    """The same of the login node."""
    return host_script(folder, LOGIN, empty=[Path("/tmp")]) + LOGIN_NODE.format(folder=shlex.quote(str(folder)))


def host_script(folder: Path, name: str, empty: Iterable[Path] = ()) -> str:
    """What all hosts begin with."""
    covered = "\n".join(covering([*NEEDED, folder], empty, folder / "kept"))
    return HOST.format(name=name, folder=shlex.quote(str(folder)), covered=covered)


def covering(needed: Iterable[Path], empty: Iterable[Path], kept: Path) -> Iterator[str]:
    """Lines of a shell: empty folders over some, with what is needed in them.

    Parameters
    ----------
    needed
        Folders that everyone must be able to read. Those that lie in a folder closed to others, such as Python in
        root's home, are mounted again in an empty one over it.
    empty
        Folders to lay an empty one over in any case.
    kept
        Where folders are mounted meanwhile.
    """
    inside: dict[Path, list[Path]] = {cover: [] for cover in empty}
    for path in needed:
        for parent in reversed(path.parents):
            if parent in inside or not parent.stat().st_mode & 0o001:
                inside.setdefault(parent, []).append(path)
                break
    for cover, paths in inside.items():
        moves = [(shlex.quote(str(kept / str(number))), shlex.quote(str(path))) for number, path in enumerate(paths)]
        for meanwhile, place in moves:
            yield f"mkdir -p {meanwhile}; mount --bind {place} {meanwhile}"
        yield f"mount -t tmpfs -o mode={'1777' if cover in empty else '755'} empty {shlex.quote(str(cover))}"
        for meanwhile, place in moves:
            yield f"mkdir -p {place}; mount --move {meanwhile} {place}"


def who_may_read(user: int | str, kept: Path) -> list[str]:
    """Words before a command of an ordinary user who can read :data:`NEEDED`, wherever that lies (:func:`covering`)."""
    script = "\n".join(["set -e", *covering(NEEDED, [], kept), 'exec "$@"'])
    become = ["setpriv", f"--reuid={user}", f"--regid={user}", "--clear-groups"]
    return ["unshare", "--mount", "sh", "-c", script, "sh", *become]


def becoming(user: int | str, home: Path) -> list[str]:
    """Words before a command of an ordinary user who has Python, though it may lie in root's home, and a home."""
    return [*who_may_read(user, home.with_name("kept")), "env", f"HOME={home}"]


def give(folder: Path) -> None:
    """Make a folder the user's, with all that is in it."""
    system("chown", "--recursive", "--no-dereference", f"{USER}:{USER}", folder)
