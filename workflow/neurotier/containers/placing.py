"""Placing: what is copied to the images tier has its name when it is whole, or is not there."""

from __future__ import annotations

import errno
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from neurotier.core.errors import TierError
from neurotier.core.files import flush_file_system, partial_of, remove_whatever, rename_durably


@contextmanager
def placing(target: Path, what: str) -> Iterator[Path]:
    """The hidden path to copy to, which is flushed and gets its name when the copy is whole.

    Parameters
    ----------
    target
        Where it is placed.
    what
        What to call it in an error.

    Raises
    ------
    TierError
        If the tier has no room.
    """
    partial = partial_of(target)
    remove_whatever(partial)  # of a process that was killed
    try:
        yield partial
        flush_file_system(partial)
        rename_durably(partial, target)
    except OSError as error:
        remove_whatever(partial)
        if error.errno not in (errno.ENOSPC, errno.EDQUOT):
            raise
        raise TierError(f"has no room for {what}", where=str(target.parent)) from None
    except BaseException:
        remove_whatever(partial)
        raise
