"""Foreign image files, compressed or not, read in parts and never further than asked for.

1 MB of gzip can inflate to 1 GB of zeros, and hold a million empty members.
"""

from __future__ import annotations

import os
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import BinaryIO

from neurotier.core.errors import InputError, NeurotierError, TierError
from neurotier.core.foreign import open_file

EXPANSION = 1032
"""Largest ratio of deflate: 258 bytes from 2 bits (RFC 1951)."""

CHUNK_BYTES = 64 << 10
SLAB_BYTES = 256 << 10
"""Inflated data in memory at once; larger buffers are slower, as the C library gets each from the kernel again."""

MAGIC = b"\x1f\x8b"
GZIP = 16 + zlib.MAX_WBITS
FREE_MEMBERS, MEMBER_BYTES = 1000, 4096
"""A gzip file may have this many members, and one more per so many inflated bytes; those of bgzip hold 64 kB."""


class DamagedError(Exception):
    """Why a file cannot be used as an image.

    Parameters
    ----------
    what
        What is wrong, as the rest of a sentence whose subject is the file.
    fix
        What to do about it.
    """

    def __init__(self, what: str, fix: str = "fetch it again or report it upstream") -> None:
        self.what, self.fix = what, fix
        super().__init__(what, fix)


def truncated(reason: str) -> DamagedError:
    """The error for a file that is incomplete or not an image."""
    return DamagedError(f"is truncated or no NIfTI ({reason})")


@contextmanager
def opened_content(folder: Path, below: str, name: str, blame: type[NeurotierError], subject: str) -> Iterator[Content]:
    """Open an image file below a trusted folder, and turn what is wrong with it into an error that names it.

    Parameters
    ----------
    folder, below
        The folder, and the file's path below it.
    name
        What to call the file in an error.
    blame
        Class of the error.
    subject
        What to call the file at the beginning of a message.

    Raises
    ------
    FileNotFoundError
        If there is nothing of this name.
    NeurotierError
        Of the class ``blame``, if it is damaged or not a file; :class:`TierError` if the tier fails to read it.
    """
    try:
        with open_file(folder, below, name, blame) as file:
            yield Content(file, below.lower().endswith(".gz"))
    except DamagedError as error:
        raise blame(f"{subject} {error.what}", where=name, fix=error.fix if blame is InputError else "") from None
    except FileNotFoundError:
        raise
    except OSError as error:
        raise TierError(f"cannot be read: {error.strerror}", where=name) from None


class Content:
    """The content of a file, read sequentially; if it is compressed, that of all members of the gzip file.

    Anything after the last member is ignored, as by gzip. The checksum of each member is verified at its end.

    Parameters
    ----------
    file
        The open file, at its beginning.
    is_compressed
        Whether to inflate it.
    """

    def __init__(self, file: BinaryIO, is_compressed: bool) -> None:
        self.file, self.is_compressed = file, is_compressed
        self.file_bytes = os.fstat(file.fileno()).st_size
        self.member = zlib.decompressobj(GZIP)
        self.members = 1
        self.inflated_bytes = 0
        self.pending = b""

    def read(self, count: int) -> bytes:
        """The next bytes; fewer only at the end.

        Raises
        ------
        DamagedError
            If the file ends within a member, or is not gzip.
        """
        if not self.is_compressed:
            return self.file.read(count)
        whole = b""
        while len(whole) < count and (not self.member.eof or self.begin_member()):
            compressed = self.pending or self.file.read(CHUNK_BYTES)
            try:
                part = self.member.decompress(compressed, count - len(whole))
            except zlib.error as error:
                raise truncated(f"gzip: {error}") from None
            if not (part or compressed or self.member.eof):
                raise truncated("its compressed data end early")
            self.pending = self.member.unused_data if self.member.eof else self.member.unconsumed_tail
            self.inflated_bytes += len(part)
            whole += part
        return whole

    def begin_member(self) -> bool:
        """Begin the next member, after any padding zeros; whether there is one."""
        if len(self.pending.lstrip(b"\0")) < len(MAGIC):
            self.pending += self.file.read(CHUNK_BYTES)
        self.pending = self.pending.lstrip(b"\0")
        if not self.pending.startswith(MAGIC):
            self.pending = b""
            self.file.seek(0, 2)
            return False
        self.members += 1
        if self.members > FREE_MEMBERS + self.inflated_bytes // MEMBER_BYTES:
            raise DamagedError(f"is cut into more than {self.members - 1} pieces, most of them empty")
        self.member = zlib.decompressobj(GZIP)
        return True
