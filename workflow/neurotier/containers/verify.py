"""Digests of placed images, as a file or an unpacked tree, and markers of those that a run has verified.

An image that was altered on its tier, by a fault or by somebody, would run under the digest of the original. So each
run reads the image that it is about to run, once per host and place. The markers are kept in the results, not next to
the image.
"""

from __future__ import annotations

import hashlib
import os
import socket
import stat
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path

from neurotier.core.errors import StateError
from neurotier.core.files import read_json, write_json
from neurotier.core.foreign import FILE
from neurotier.core.places import short_hash

THREADS = min(4, len(os.sched_getaffinity(0)))
"""Measured on two cores: 1.7 GB in 36,000 files take 1.7 s with one thread, 1.0 s with two."""

PART_BYTES = 1 << 18

NOTED_EVERY_S = 3600.0
"""How often a run notes that it still uses an image: who prunes the store counts days."""

Entry = tuple[str, int, int]
"""Path below a folder, mode, and device number."""


def sha256(file: Path) -> str:
    """Digest of a file's content."""
    with file.open("rb") as opened:
        return hashlib.file_digest(opened, "sha256").hexdigest()


def tree_sha256(folder: Path) -> str:
    """Digest of everything below a folder: path, type, permissions, link text and content, in order of path."""
    whole = hashlib.sha256()
    with ThreadPoolExecutor(THREADS) as pool:
        for lines in pool.map(lambda entries: [line_of(folder, entry) for entry in entries], entries_in(folder)):
            for line in lines:
                whole.update(line)
    return whole.hexdigest()


def entries_in(folder: Path) -> Iterator[list[Entry]]:
    """Everything below a folder, a list per folder; links are not followed."""
    for root, names, files, descriptor in os.fwalk(folder, follow_symlinks=False):
        names.sort()
        here = os.path.relpath(root, folder)
        entries = []
        for name in sorted([*names, *files]):
            facts = os.lstat(name, dir_fd=descriptor)
            entries.append((f"{here}/{name}", facts.st_mode, facts.st_rdev))
        yield entries


def line_of(folder: Path, entry: Entry) -> bytes:
    """The line of one entry, from which the digest of a tree is made."""
    path, mode, device = entry
    content = str(device)
    if stat.S_ISLNK(mode):
        content = os.readlink(f"{folder}/{path}")
    elif stat.S_ISREG(mode):
        content = content_sha256(f"{folder}/{path}")
    return f"{path}\0{mode:o}\0{content}\0".encode(errors="surrogateescape")


def content_sha256(path: str) -> str:
    """Digest of a file, or the word ``closed`` for one that this user, and so the container, cannot read."""
    digest = hashlib.sha256()
    try:
        descriptor = os.open(path, FILE)
    except PermissionError:
        return "closed"
    try:
        while part := os.read(descriptor, PART_BYTES):
            digest.update(part)
    finally:
        os.close(descriptor)
    return digest.hexdigest()


def placed_sha256(placed: Path) -> str:
    """Digest of a placed image in either form; for anything but a file or a folder a text that no digest equals."""
    mode = placed.lstat().st_mode
    if stat.S_ISDIR(mode):
        return tree_sha256(placed)
    return sha256(placed) if stat.S_ISREG(mode) else "neither a file nor a folder"


@dataclass(frozen=True)
class Marker:
    """Marks that a run has verified a placed image.

    Attributes
    ----------
    folder
        Folder of the markers, in the results; with ``None`` there are no markers.
    run
        The run.
    placed
        The image on its tier.
    """

    folder: Path | None
    run: str
    placed: Path

    @property
    def facts(self) -> dict[str, str]:
        """Content of the marker."""
        return {"run": self.run, "host": socket.gethostname(), "path": str(self.placed)}

    @property
    def file(self) -> Path:
        """Its file, one per host and place."""
        assert self.folder is not None  # noqa: S101  # for the type checker: callers have checked
        return self.folder / f"{self.placed.name}-{short_hash(socket.gethostname() + str(self.placed))}.json"

    def is_set(self) -> bool:
        """Whether this run has verified the image, and it is still there."""
        if self.folder is None or not self.placed.exists():
            return False
        try:
            return bool(read_json(self.file) == self.facts)
        except (FileNotFoundError, StateError):
            return False

    def is_due(self) -> bool:
        """Whether the use of the image was last noted long ago; then this process is the one to note it."""
        try:
            if time.time() - self.file.stat().st_mtime < NOTED_EVERY_S:
                return False
            os.utime(self.file)
        except OSError:  # the next job tries again
            return False
        return True

    def set(self) -> None:
        """Note that the image has been verified."""
        if self.folder is not None:
            write_json(self.file, self.facts)
