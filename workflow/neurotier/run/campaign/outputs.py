"""Outputs of a campaign's runs: the same on every tier, or the run is invalid."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from pathlib import Path

UNTOLD = {".snakemake_timestamp"}
"""Files that Snakemake leaves in folders, with a time in them."""


def checksums(folder: Path) -> dict[str, str]:
    """SHA-256 of every file below a folder, by its path there; nothing if there is no such folder."""
    found = {}
    for path in sorted(folder.rglob("*")):
        if path.is_file() and path.name not in UNTOLD:
            with path.open("rb") as file:
                found[path.relative_to(folder).as_posix()] = hashlib.file_digest(file, "sha256").hexdigest()
    return found


def difference(outputs: Mapping[str, str], first: Mapping[str, str], of: str) -> str:
    """How outputs differ from those of the first run, for people; empty if they do not.

    >>> difference({"a": "1", "b": "2"}, {"a": "1", "b": "3"}, "tmpfs")
    'outputs differ from those of tmpfs: 1 of 2 files, first b'
    """
    apart = sorted(name for name in {*outputs, *first} if outputs.get(name) != first.get(name))
    total = len({*outputs, *first})
    return f"outputs differ from those of {of}: {len(apart)} of {total} files, first {apart[0]}" if apart else ""
