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
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

from neurotier.core.errors import StateError
from neurotier.core.files import exclusive, read_json, remove_whatever, write_json
from neurotier.core.foreign import FILE
from neurotier.core.places import short_hash


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
                try:
                    with os.fdopen(os.open(name, FILE, dir_fd=descriptor), "rb") as file:
                        content = hashlib.file_digest(file, "sha256").hexdigest()
                except PermissionError:  # closed to this user, and so to the container
                    content = "closed"
            path = f"{os.path.relpath(root, folder)}/{name}"
            whole.update(f"{path}\0{facts.st_mode:o}\0{content}\0".encode(errors="surrogateescape"))
    return whole.hexdigest()


def placed_sha256(placed: Path) -> str:
    """Digest of a placed image in either form; for anything but a file or a folder a text that no digest equals."""
    mode = placed.lstat().st_mode
    if stat.S_ISDIR(mode):
        return tree_sha256(placed)
    return sha256(placed) if stat.S_ISREG(mode) else "neither a file nor a folder"


def place_once(
    placed: Path,
    markers: Path | None,
    run: str,
    is_right: Callable[[], bool],
    put: Callable[[], None],
    note_use: Callable[[], None],
    say: Callable[[str], None],
) -> Path:
    """Have an image or a cache in its place, verified once per run and host; its path.

    Parameters
    ----------
    placed
        Its path on its tier.
    markers
        Folder of the markers, in the results; with ``None`` there are no markers.
    run
        The run.
    is_right
        Whether what lies there is what it should be.
    put
        Puts it there.
    note_use
        Notes that it is used now: who prunes the store goes by that.
    say
        Takes a line for the user, if what lies there was altered.
    """
    facts = {"run": run, "host": socket.gethostname(), "path": str(placed)}
    marker = markers and markers / f"{placed.name}-{short_hash(facts['host'] + facts['path'])}.json"

    def is_verified() -> bool:
        with suppress(FileNotFoundError, StateError):
            return bool(marker and placed.exists() and read_json(marker) == facts)
        return False

    if is_verified():
        return placed
    note_use()
    with exclusive(placed):
        if is_verified():
            return placed
        is_there = os.path.lexists(placed)
        if not is_there or not is_right():
            if is_there:
                say(f"{placed} was altered since it was placed (its digest has changed): placing it again")
                remove_whatever(placed)
            put()
        if marker:
            write_json(marker, facts)
    return placed
