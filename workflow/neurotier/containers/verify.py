"""Shelves: what is placed on a tier is there whole or not at all, and compared with its digest once per run and host.

An image that was altered on its tier, by a fault or by somebody, would run under the digest of the original. Markers of
what a run has compared are kept in the results, not next to the image.
"""

from __future__ import annotations

import errno
import hashlib
import os
import socket
import stat
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from neurotier.core.errors import StateError, TierError
from neurotier.core.files import exclusive, made_whole, read_json, remove_whatever, write_json
from neurotier.core.foreign import FILE
from neurotier.core.places import short_hash


def sha256(file: Path) -> str:
    """Digest of a file's content."""
    with file.open("rb") as opened:
        return hashlib.file_digest(opened, "sha256").hexdigest()


def placed_sha256(placed: Path, permissions: bool = True) -> str:
    """Digest of a placed image in either form; for anything but a file or a folder a text that no digest equals.

    That of a folder is made of path, type, permissions, link text and content of everything below it, in order of path.
    Without ``permissions``, as for caches, neither they nor empty folders count.
    """
    mode = placed.lstat().st_mode
    if not stat.S_ISDIR(mode):
        return sha256(placed) if stat.S_ISREG(mode) else "neither a file nor a folder"
    whole = hashlib.sha256()
    for root, names, files, descriptor in os.fwalk(placed, follow_symlinks=False):
        names.sort()
        for name in sorted([*names, *files]):
            facts = os.lstat(name, dir_fd=descriptor)
            kind, content = stat.S_IFMT(facts.st_mode), str(facts.st_rdev)
            if kind == stat.S_IFLNK:
                content = os.readlink(name, dir_fd=descriptor)
            elif kind == stat.S_IFREG:
                try:
                    with os.fdopen(os.open(name, FILE, dir_fd=descriptor), "rb") as file:
                        content = hashlib.file_digest(file, "sha256").hexdigest()
                except PermissionError:  # closed to this user, and so to the container
                    content = "closed"
            if permissions or kind != stat.S_IFDIR:
                line = (
                    f"{os.path.relpath(root, placed)}/{name}\0{facts.st_mode if permissions else kind:o}\0{content}\0"
                )
                whole.update(line.encode(errors="surrogateescape"))
    return whole.hexdigest()


@dataclass(frozen=True)
class Shelf:
    """Where images or caches are placed.

    Attributes
    ----------
    kept
        Folder of the store, on the results tier.
    images
        Folder on the images tier.
    say
        Takes one line per step, for the user.
    verified
        Folder of the markers, in the results; without one, what is placed is compared each time.
    run
        The run that compares.
    """

    kept: Path
    images: Path
    say: Callable[[str], None]
    verified: Path | None = None
    run: str = ""

    def place_once(
        self, placed: Path, is_right: Callable[[], bool], put: Callable[[Path], None], note_use: Callable[[], None]
    ) -> Path:
        """Have something in its place, compared once per run and host; its path.

        Parameters
        ----------
        placed
            Its path on its tier.
        is_right
            Whether what lies there is what it should be.
        put
            Puts it at the path that it is given.
        note_use
            Notes that it is used now: who prunes the store goes by that.

        Raises
        ------
        TierError
            If the tier has no room.
        """
        facts = {"run": self.run, "host": socket.gethostname(), "path": str(placed)}
        marker = self.verified and self.verified / f"{placed.name}-{short_hash(facts['host'] + facts['path'])}.json"
        with exclusive(placed):
            with suppress(FileNotFoundError, StateError):
                if marker and placed.exists() and read_json(marker) == facts:
                    return placed
            note_use()
            is_there = os.path.lexists(placed)
            if not is_there or not is_right():
                if is_there:
                    self.say(f"{placed} was altered since it was placed (its digest has changed): placing it again")
                    remove_whatever(placed)  # first: the tier may have no room for both
                try:
                    with made_whole(placed) as partial:
                        put(partial)
                except OSError as error:
                    if error.errno in (errno.ENOSPC, errno.EDQUOT):
                        raise TierError(f"has no room for {placed.name}", where=str(placed.parent)) from None
                    raise
            if marker:
                write_json(marker, facts)
        return placed
