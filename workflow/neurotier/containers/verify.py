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
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from neurotier.core.errors import StateError
from neurotier.core.files import exclusive, read_json, remove_whatever, write_json
from neurotier.core.foreign import FILE
from neurotier.core.places import short_hash

NOTED_EVERY_S = 3600.0
"""How often a run notes that it still uses an image: who prunes the store counts days."""


def sha256(file: Path) -> str:
    """Digest of a file's content."""
    with file.open("rb") as opened:
        return hashlib.file_digest(opened, "sha256").hexdigest()


def tree_sha256(folder: Path) -> str:
    """Digest of everything below a folder: path, type, permissions, link text and content, in order of path."""
    whole = hashlib.sha256()
    for root, names, files, descriptor in os.fwalk(folder, follow_symlinks=False):
        names.sort()
        for name in sorted([*names, *files]):
            facts = os.lstat(name, dir_fd=descriptor)
            content = str(facts.st_rdev)
            if stat.S_ISLNK(facts.st_mode):
                content = os.readlink(name, dir_fd=descriptor)
            elif stat.S_ISREG(facts.st_mode):
                content = content_sha256(name, descriptor)
            path = f"{os.path.relpath(root, folder)}/{name}"
            whole.update(f"{path}\0{facts.st_mode:o}\0{content}\0".encode(errors="surrogateescape"))
    return whole.hexdigest()


def content_sha256(name: str, folder: int) -> str:
    """Digest of a file in an open folder, or ``closed`` for one that this user, and so the container, cannot read."""
    try:
        with os.fdopen(os.open(name, FILE, dir_fd=folder), "rb") as file:
            return hashlib.file_digest(file, "sha256").hexdigest()
    except PermissionError:
        return "closed"


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

    def place_once(
        self,
        is_right: Callable[[], bool],
        put: Callable[[], None],
        note_use: Callable[[], None],
        say: Callable[[str], None],
    ) -> Path:
        """Have it in its place, verified once per run; its path.

        Parameters
        ----------
        is_right
            Whether what lies there is what it should be.
        put
            Puts it there.
        note_use
            Notes that it is used now: who prunes the store goes by that.
        say
            Takes a line for the user, if what lies there was altered.
        """
        is_verified = self.is_set()
        if not is_verified or self.is_due():
            note_use()
        if is_verified:
            return self.placed
        with exclusive(self.placed):
            if self.is_set():
                return self.placed
            is_there = os.path.lexists(self.placed)
            if not is_there or not is_right():
                if is_there:
                    say(f"{self.placed} was altered since it was placed (its digest has changed): placing it again")
                    remove_whatever(self.placed)
                put()
            self.set()
        return self.placed
