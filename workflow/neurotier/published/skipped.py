"""What of a checkout was not read, and why: a damaged file never stops the replay of the others."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from neurotier.core.errors import InputError

DAMAGED, UNNAMED = "damaged", "name tells no condition"
"""Kinds of what is skipped."""


@dataclass(frozen=True)
class Skipped:
    """A file that was not read."""

    path: Path
    kind: str
    reason: str

    @classmethod
    def damaged(cls, path: Path, error: InputError | OSError) -> Skipped:
        """A file that cannot be read, or is not what it should be."""
        return cls(path, DAMAGED, error.what if isinstance(error, InputError) else error.strerror or "cannot be read")
