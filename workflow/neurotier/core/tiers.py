"""Tiers: storage places, the kind of storage they really are, and how much room they have.

A tier is declared with a kind, which is compared with what the kernel says about the path: otherwise a run "on tmpfs"
whose folder is on a disk would go unnoticed. Each role has a folder of its own below a tier's path,
``<path>/neurotier-<user>/<role>``, so that several users can share one mount (:mod:`neurotier.core.private`).

The path of a tier that each node of a cluster has for itself (``node: true``) is kept as text until a participant job
resolves it on its node: variables such as ``$SLURM_TMPDIR`` are not defined where the workflow is started.
"""

from __future__ import annotations

import math
import os
import re
import shutil
import socket
import subprocess
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import Any, NamedTuple

import psutil

from neurotier.core.configuration import NOT_IN_PATHS, SHARED_ROLES, expand
from neurotier.core.control_groups import memory
from neurotier.core.errors import SettingsError, TierError
from neurotier.core.files import FULL, Facts, Record, absolute_path
from neurotier.core.kinds import KINDS
from neurotier.core.private import check_private, make_private, private_folder, refuse_planted, user_name
from neurotier.core.settings import Settings, TierSettings

ANSWERS_WITHIN_S = 20.0
"""Longest that a file system may take to look up a path, s: one that is only mounted on access takes a few seconds."""


class Mount(NamedTuple):
    """The mounted file system that a path is on."""

    source: str
    mount_point: str
    fs_type: str
    options: str

    @property
    def kind(self) -> str:
        """The kind of tier that this file system is: a local disk (``block``) if it is of no other kind.

        >>> Mount("", "/", "ext4", "rw,dax=always").kind, Mount("", "/", "ext4", "rw").kind
        ('fsdax', 'block')
        """
        for name, kind in KINDS.items():
            if self.fs_type in kind.file_systems:
                return name
        given = {*self.options.split(",")}
        return next((name for name, kind in KINDS.items() if kind.mount_options & given), "block")


class Tier(NamedTuple):
    """A declared storage place on this node or, if ``node``, on the node of each job; written to or only read."""

    name: str
    path: Path
    kind: str
    capacity_bytes: int | None
    node: bool = False
    read_only: bool = False

    @classmethod
    def from_settings(cls, settings: TierSettings) -> Tier:
        """Expand and check one entry of ``tiers``, without touching the disk. A node's tier keeps its path as written.

        Raises
        ------
        SettingsError
            If a variable is undefined, the capacity is not a size, or the path has characters special to Snakemake.
        """
        where = f"config key tiers.{settings.name}"
        text = settings.path if settings.node else expand(settings.path, f"{where}.path")
        if re.search(NOT_IN_PATHS, text):
            raise SettingsError("a path must not contain braces, <names> or line breaks", f"{where}.path")
        capacity = settings.capacity
        capacity_bytes = None if capacity is None else parse_size(capacity, f"{where}.capacity")
        path = Path(text) if settings.node else Path(text).absolute()
        return cls(settings.name, path, settings.kind, capacity_bytes, settings.node, settings.read_only)

    def here(self) -> Tier:
        """This tier as it is on the current node; its folder is made if missing.

        Only the part of the path from the first variable on is made, since it names a folder of the batch job
        (``/local/$USER/$SLURM_JOB_ID``). The part before it, or the value of a variable at the very start, must exist:
        on a node without the mount, files would otherwise end up on another disk.

        Raises
        ------
        SettingsError
            If a variable is not defined on this node.
        TierError
            If the folder does not exist and cannot be made.
        """
        if not self.node:
            return self
        where = f"tier {self.name!r} on {socket.gethostname()}"
        parts = self.path.parts
        fixed = next((count for count, part in enumerate(parts) if "$" in part), len(parts))
        base = Path(expand(str(Path(*parts[: fixed or 1])), where))
        path = Path(expand(str(self.path), where)).absolute()
        if not base.is_dir():
            raise TierError(f"{base} is not an existing folder", where, f"correct tiers.{self.name}.path")
        tier = self._replace(path=path, node=False)
        tier.refuse_planted()
        try:
            path.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise TierError(f"{path} cannot be made: {error.strerror}", where) from None
        return tier

    def folder(self, role: str) -> Path:
        """The folder of a role below this tier's path."""
        return private_folder(self.path) / role

    def is_read_only(self) -> bool:
        """Whether it is mounted read-only; after a device failure, ext4 says so only in its mount options."""
        return bool(os.statvfs(self.path).f_flag & os.ST_RDONLY) or "emergency_ro" in self.mount().options

    def mount(self) -> Mount:
        """The file system that this tier's path is on."""
        return find_mount(self.path)

    def free_bytes(self) -> int:
        """Free bytes, or the declared capacity if that is less, however much neurotier already stores there."""
        free = shutil.disk_usage(self.path).free
        return free if self.capacity_bytes is None else min(free, self.capacity_bytes)

    def free_files(self) -> float:
        """Files that can still be made, by free inodes; infinite where the file system has no limit (btrfs)."""
        facts = os.statvfs(self.path)
        return facts.f_favail if facts.f_files else math.inf

    def usable_bytes(self) -> int:
        """Bytes that files may take now: on a tier in memory, no more than the memory that is available to the machine
        and to this process's control groups."""
        free = self.free_bytes()
        if not KINDS[self.kind].takes_memory:
            return free
        return min(free, psutil.virtual_memory().available, *(left_bytes for _, left_bytes in memory()))

    def facts(self) -> Record:
        """What a run records about a tier: declared and real properties, of a node's tier only the declared ones."""
        mount = Mount("", "", "", "") if self.node else self.mount()
        return {
            "name": self.name,
            "path": str(self.path),
            "kind": self.kind,
            "fs_type": mount.fs_type,
            "mount_point": mount.mount_point,
            "mount_options": mount.options,
            "capacity_bytes": self.capacity_bytes,
            "free_bytes": None if self.node else self.free_bytes(),
        }

    def claim(self) -> None:
        """Check the tier (:meth:`check`) and make ``neurotier-<user>`` there, closed to others."""
        self.check()
        if not self.node and not self.read_only:
            make_private(private_folder(self.path))

    def check(self) -> None:
        """Raise :class:`TierError` unless the path exists, is of the declared kind and, if need be, writable.

        If ``neurotier-<user>`` exists, it must be ours (:mod:`neurotier.core.private`); nothing is changed.
        A tier of the nodes is checked by the jobs there.
        """
        if self.node:
            return
        where = f"tier {self.name!r}"
        if not os.path.isdir(self.path):
            raise TierError(
                f"its path {self.path} is not an existing folder, or may not be entered",
                where,
                f"mount it, or correct tiers.{self.name}.path",
            )
        self.refuse_planted()  # while it was missing, anybody could have made it
        mount = self.mount()
        if mount.kind != self.kind:
            raise TierError(
                f"declared as {self.kind!r}, but {self.path} is on {mount.fs_type} ({mount.kind!r}), "
                f"mounted at {mount.mount_point}",
                where,
                f"correct tiers.{self.name}.kind or .path",
            )
        if self.read_only:
            return
        with suppress(FileNotFoundError):
            check_private(private_folder(self.path), where)
        folder = next(p for p in (private_folder(self.path), self.path) if p.is_dir())
        if self.is_read_only():
            raise TierError(f"{folder} is mounted read-only", where)
        if not os.access(folder, os.W_OK | os.X_OK):
            raise TierError(f"{folder} is not writable for user {user_name()}", where)

    def require_answer(self) -> None:
        """Raise :class:`TierError` if the path does not answer. Tiers of the nodes are skipped."""
        if not self.node:
            require_answer(self.path, f"tier {self.name!r}")

    def refuse_planted(self) -> None:
        """Raise :class:`TierError` if other users can change where its path leads (:mod:`neurotier.core.private`)."""
        if not self.node:
            refuse_planted(self.path, f"tier {self.name!r}", f"correct tiers.{self.name}.path")


def parse_size(size: str | int, where: str) -> int:
    """Bytes in a size such as ``64 GiB``, or in a plain number of bytes.

    Done by hand because every job reads the capacities of its tiers, and humanfriendly takes 0.03 s of CPU to import
    (and reads '5 potatoes' as 5 PB).

    >>> parse_size("1.5 kB", "x"), parse_size("64 GiB", "x"), parse_size("10", "x")
    (1500, 68719476736, 10)

    Raises
    ------
    SettingsError
        If it is not a size, at the key ``where``.
    """
    if isinstance(size, int):
        return size
    found = re.fullmatch(r"(\d+\.?\d*|\.\d+) *(?:([KMGTP])(i?))?B?", size, re.IGNORECASE)
    if found is None:
        raise SettingsError(f"{size!r} is not a size", where, "write for example 64 GiB")
    number, prefix, binary = found.groups()
    power = "KMGTP".index(prefix.upper()) + 1 if prefix else 0
    return int(float(number) * (1024 if binary else 1000) ** power)


def find_mount(path: Path) -> Mount:
    """The mounted file system that a path is on: the longest mount point above it, the last mounted if equal.

    In a chroot the root may not be a mount point; then only the type of the file system is known, from ``stat``.
    """
    real = Path(os.path.realpath(path))
    mounts = [Mount(*each[:4]) for each in psutil.disk_partitions(all=True)]
    above = [mount for mount in reversed(mounts) if real.is_relative_to(mount.mount_point)]
    if above:
        return max(above, key=lambda mount: len(mount.mount_point))
    command = ["stat", "--file-system", "--format=%T", "--", str(real)]
    return Mount("", "/", subprocess.run(command, capture_output=True, text=True).stdout.strip(), "")


def says_full(text: str) -> bool:
    """Whether a program's message says that it ran out of room.

    >>> says_full("cp: error writing 'x': Disk quota exceeded"), says_full("Permission denied")
    (True, False)
    """
    return any(os.strerror(number) in text for number in FULL)


def require_answer(path: Path, where: str) -> None:
    """Raise :class:`TierError` if looking up a path, existing or not, takes longer than :data:`ANSWERS_WITHIN_S`.

    A network file system whose server is gone blocks any process that looks at it, even on Ctrl-C; so another process
    looks, which may hang for ever.
    """
    nothing = subprocess.DEVNULL
    looking = subprocess.Popen(["stat", "--", path], stdin=nothing, stdout=nothing, stderr=nothing)
    try:
        looking.wait(ANSWERS_WITHIN_S)
    except subprocess.TimeoutExpired:
        looking.kill()  # it is not waited for, since it may never end
        raise TierError(
            f"{path} does not answer within {ANSWERS_WITHIN_S:g} s",
            where,
            "see whether its server is there and mount it again, or place nothing there",
        ) from None


def with_tiers_for_folders(config: Facts) -> Facts:
    """A configuration with a tier added, of the kind found there, for each folder that it names without one.

    ``results``, if it is an absolute path, becomes a folder on a tier ``results``. A dataset for which ``placement``
    names no tier is placed with the results, or if it is a plain folder on another file system, on a tier ``dataset``.

    Raises
    ------
    SettingsError
        If the parent of the results folder does not exist, or a tier named ``results`` is already declared.
    TierError
        If either file system does not answer.
    """
    tiers, placement, dataset = (config.get(name) or {} for name in ("tiers", "placement", "dataset"))
    if not all(isinstance(section, Mapping) for section in (tiers, placement, dataset)):
        return config  # the check of the configuration reports it
    tiers, placement, results = dict(tiers), dict(placement), config.get("results")
    folder = Path(os.path.expanduser(str(results)))
    if folder.is_absolute():
        if "results" in tiers:
            raise SettingsError(
                f"{results!r} is an absolute path, which makes a tier named 'results', and there is one of that name",
                "config key results",
                "rename that tier, or name a folder on it",
            )
        require_answer(folder.parent, "config key results")
        if not folder.parent.is_dir():
            raise SettingsError(
                f"{folder.parent} is not an existing folder",
                "config key results",
                "make it, or correct the path",
            )
        tiers["results"], placement["results"], results = tier_of(folder.parent), "results", folder.name
    if "dataset" not in placement and "results" in placement:
        source, kept = absolute_path(str(dataset.get("source"))), placement["results"]
        placement["dataset"] = kept
        require_answer(source, "config key dataset.source")
        is_placed = "dataset" in tiers or not source.is_dir() or not is_plain_folder(source)
        if not is_placed and is_outside_tier(source, tiers, kept):
            tiers["dataset"], placement["dataset"] = tier_of(source, read_only=True), "dataset"
    return {**config, "results": results, "tiers": tiers, "placement": placement}


def tier_of(folder: Path, read_only: bool = False) -> Record:
    """The entry of ``tiers`` for a folder."""
    return {"path": str(folder), "kind": find_mount(folder).kind, "read_only": read_only}


def is_on_other_file_system(folder: Path, other: Path) -> bool:
    """Whether two folders are on different file systems; subvolumes of one file system differ only in device number."""
    return folder.stat().st_dev != other.stat().st_dev and find_mount(folder) != find_mount(other)


def is_outside_tier(folder: Path, tiers: Facts, name: Any) -> bool:
    """Whether a folder is on another file system than an entry of ``tiers``; false if that is invalid or missing."""
    try:
        path = absolute_path(expand(tiers[name]["path"], ""))
        require_answer(path, f"tier {name!r}")
        return is_on_other_file_system(folder, path)
    except (TypeError, KeyError, OSError, SettingsError):  # the check of the configuration reports it
        return False


def is_plain_folder(path: Path) -> bool:
    """Whether a local folder is not a git repository, bare or with a work tree."""
    return not (path / ".git").exists() and not ((path / "HEAD").exists() and (path / "objects").exists())


def is_per_node(settings: Settings, name: str) -> bool:
    """Whether each node has this tier for itself, if jobs run on other nodes: it may be missing or different here.

    That is so if it is declared so, or if it is memory or a disk and holds nothing that all jobs share.
    """
    shared = {settings.placement[role] for role in SHARED_ROLES}
    tier = settings.tiers[name]
    return tier.node or (not KINDS[tier.kind].remote and name not in shared)


def tier_named(settings: Settings, name: str) -> Tier:
    """The tier that a configuration declares under a name."""
    return Tier.from_settings(settings.tiers[name])


def tiers_of(settings: Settings, in_job: bool = False, on_cluster: bool = False) -> dict[str, Tier]:
    """The tier that holds each role.

    Parameters
    ----------
    settings
        The configuration.
    in_job
        Whether to resolve and check the work tier on this node: the check where the workflow was started says nothing
        about it.
    on_cluster
        Whether jobs run on other nodes: then tiers that each node has for itself are not looked at here.

    Returns
    -------
    dict
        Role (``dataset``, ``work``, ``images``, ``results``) to tier.

    Raises
    ------
    TierError
        If the work tier of this node is not as declared.
    """
    tiers = {role: tier_named(settings, name) for role, name in settings.placement.items()}
    if in_job:
        tiers["work"] = tiers["work"].here()
        tiers["work"].claim()
    for role in ("work", "images") if on_cluster else ():  # these may be on each node's own tier
        if is_per_node(settings, settings.placement[role]):
            tiers[role] = tiers[role]._replace(node=True)
    return tiers


def with_absolute_paths(settings: Settings, on_cluster: bool) -> Settings:
    """The settings with tier paths made absolute, so that they mean the same in every working folder and environment.

    Paths stay as written if they cannot be expanded here and, for jobs on a cluster (``on_cluster``), if each node has
    that tier for itself.
    """
    tiers = dict(settings.tiers)
    for name, tier in settings.tiers.items():
        with suppress(SettingsError):
            if not (on_cluster and is_per_node(settings, name)):
                tiers[name] = replace(tier, path=str(Tier.from_settings(tier).path))
    return replace(settings, tiers=tiers)
