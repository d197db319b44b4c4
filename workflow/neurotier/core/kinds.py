"""Kinds of storage: everything that depends on what a tier is, in one record per kind.

To add a kind, add a record here and its name to the configuration schema.
"""

from __future__ import annotations

from typing import NamedTuple


class Kind(NamedTuple):
    """What is true of every tier of a kind.

    Attributes
    ----------
    file_systems
        Types of file system, as the kernel names them, that are always of this kind.
    mount_options
        Mount options that put any other local file system into this kind.
    in_memory
        Whether files live in memory: none can be read cold, and no page cache stands in front of them.
    takes_memory
        Whether its free space is the machine's memory: less of that may be available than the tier reports.
    write_back
        Whether the kernel writes to a device of this machine later than the program does.
    remote
        Whether waiting for it is waiting for a network.
    fio_engines
        The fio engines that can measure such a tier, best first, and whether each bypasses the page cache.
    """

    file_systems: frozenset[str] = frozenset()
    mount_options: frozenset[str] = frozenset()
    in_memory: bool = False
    takes_memory: bool = False
    write_back: bool = False
    remote: bool = False
    fio_engines: tuple[tuple[str, bool], ...] = (("psync", False),)


DEVICE_ENGINES = (("libaio", True), ("io_uring", True), ("psync", True), ("psync", False))

KINDS = {
    "tmpfs": Kind(file_systems=frozenset({"tmpfs", "ramfs"}), in_memory=True, takes_memory=True),
    "fsdax": Kind(
        mount_options=frozenset({"dax", "dax=always"}),
        in_memory=True,
        fio_engines=(("libpmem", True), ("mmap", False), ("psync", False)),
    ),
    "network": Kind(
        file_systems=frozenset(
            (
                "nfs",
                "nfs4",
                "cifs",
                "smb3",
                "smb2",
                "9p",
                "afs",
                "ceph",
                "fuse.ceph",
                "glusterfs",
                "fuse.glusterfs",
                "lustre",
                "gpfs",
                "beegfs",
                "fhgfs",
                "orangefs",
                "pvfs2",
                "panfs",
                "fuse.sshfs",
                "fuse.juicefs",
                "wekafs",
            )
        ),
        remote=True,
        fio_engines=DEVICE_ENGINES,
    ),
    "block": Kind(write_back=True, fio_engines=DEVICE_ENGINES),
}


def is_in_memory(kind: str) -> bool:
    """Whether files on tiers of a kind live in memory."""
    return KINDS[kind].in_memory
