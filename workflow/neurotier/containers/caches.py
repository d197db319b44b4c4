"""Caches: folders that apps read, such as TemplateFlow's, placed on the images tier and read-only in containers.

A cache is known by the digest of its contents. It is copied once to a tier, whole or not at all, and processes that
need it wait for the one that copies it, as with images. Once per run and host it is compared with its digest. The
source is no place of ours: links in it that lead out, pipes and devices are refused.
"""

from __future__ import annotations

from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from neurotier.containers.verify import Shelf, placed_sha256
from neurotier.core.errors import SourceError
from neurotier.core.files import write_json
from neurotier.core.foreign import blaming, checked_entries, copy_tree
from neurotier.core.places import short_hash

FORM = "folder"
"""Ending of a placed cache, as ``sif`` and ``sandbox`` are those of images."""


@dataclass(frozen=True)
class Cache:
    """A cache that has been looked at.

    Attributes
    ----------
    name
        Its name in the configuration.
    source
        The folder it is copied from.
    sha256
        Digest of its contents, by path and content of its files and links.
    files, size_bytes
        Their number, and how much they hold.
    """

    name: str
    source: str
    sha256: str
    files: int
    size_bytes: int


@dataclass(frozen=True)
class PlacedCache:
    """A cache as containers see it: its copy, the place inside, the variable that names that place, its digest."""

    name: str
    path: Path
    inside: str
    variable: str | None
    sha256: str


def look_at(name: str, source: str) -> Cache:
    """Read a folder that is to be a cache.

    Raises
    ------
    SourceError
        If it is not there, or empty.
    InputError
        If it holds anything but files and links that stay in it.
    """
    folder, where = Path(source).expanduser().absolute(), f"config key app.caches.{name}.source: {source}"
    if not folder.is_dir():
        raise SourceError("there is no such folder", where=where, fix="correct the path")
    with blaming(name):
        entries = list(checked_entries(folder.resolve()))
    if not entries:
        raise SourceError("holds no file", where=where, fix="name the folder that does")
    size_bytes = sum(entry.size_bytes for entry in entries if entry.is_file)
    return Cache(name, str(folder), placed_sha256(folder.resolve(), permissions=False), len(entries), size_bytes)


class CacheStore(Shelf):
    """Where caches are placed, and noted in the image store."""

    def place(self, cache: Cache) -> Path:
        """The cache on its tier: copied there unless it is there already, and compared once per run.

        Raises
        ------
        SourceError, InputError
            If the source is gone, or is not what was looked at any more.
        TierError
            If the tier has no room.
        """

        target = self.images / f"{cache.name}-{cache.sha256[:12]}.{FORM}"

        def holds(folder: Path) -> bool:
            return placed_sha256(folder, permissions=False) == cache.sha256

        def put(partial: Path) -> None:
            self.say(f"placing {cache.name} ({cache.files} files, {cache.size_bytes} bytes) on the images tier")
            source, where = Path(cache.source), f"app.caches.{cache.name}: {cache.source}"
            if not source.is_dir():
                raise SourceError("is not there any more", where=where, fix="have it there, and start again")
            with blaming(cache.name):
                copy_tree(source.resolve(), partial, write_back=True)
            if not holds(partial):
                fix = "start with --forcerun place_caches"
                raise SourceError("has changed since it was looked at", where=where, fix=fix)

        def note_use() -> None:
            facts = {"sha256": cache.sha256, "size_bytes": cache.size_bytes, "source": cache.source}
            with suppress(OSError):  # the results tier may be full, and the cache be there all the same
                write_json(self.kept / f"{cache.name}-{short_hash(cache.source + cache.sha256)}.json", facts)

        return self.place_once(target, lambda: holds(target), put, note_use)
