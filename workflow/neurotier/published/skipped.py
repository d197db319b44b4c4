"""Files of a checkout that were not read, and why: a damaged file never stops the replay of the others."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import NamedTuple

DAMAGED, UNNAMED = "damaged", "name tells no condition"
"""Kinds of skipped files."""

FIX = "fetch the file again from the public repository, or give the path of a folder without it"


class Skipped(NamedTuple):
    """A file that was not read."""

    path: Path
    kind: str
    reason: str


@contextmanager
def skipping(path: Path, skipped: list[Skipped]) -> Iterator[None]:
    """Read a file in this context; on an ``OSError`` or ``ValueError``, add it to ``skipped`` with the reason."""
    try:
        yield
    except (ValueError, OSError) as error:
        reason = "is not text" if isinstance(error, UnicodeDecodeError) else str(error)
        skipped.append(Skipped(path, DAMAGED, getattr(error, "strerror", None) or reason))
