"""Foreign gzip files, inflated in parts and never further than asked for: 1 MB can inflate to 1 GB of zeros."""

from __future__ import annotations

import zlib
from typing import BinaryIO

EXPANSION = 1032
"""Largest ratio of deflate: 258 bytes from 2 bits (RFC 1951)."""

CHUNK_BYTES = 64 << 10
SLAB_BYTES = 256 << 10
"""Inflated data in memory at once; larger buffers are slower, as the C library gets each from the kernel anew."""

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


class Inflated:
    """The content of a gzip file of one or many members, read sequentially.

    Anything after the last member is ignored, as by gzip. The checksum of each member is verified at its end.

    Parameters
    ----------
    file
        The open file, at its beginning.
    """

    def __init__(self, file: BinaryIO) -> None:
        self.file = file
        self.member = zlib.decompressobj(GZIP)
        self.members = 1
        self.inflated_bytes = 0
        self.pending = b""

    def read(self, count: int, /) -> bytes:
        """The next bytes; fewer only at the end.

        Raises
        ------
        DamagedError
            If the file ends within a member, or is not gzip.
        """
        parts = []
        while count > 0 and (part := self.some(count)):
            parts.append(part)
            count -= len(part)
        return b"".join(parts)

    def some(self, most: int) -> bytes:
        """Some of the next bytes; none at the end."""
        while True:
            if self.member.eof and not self.begin_member():
                return b""
            chunk = self.pending or self.file.read(CHUNK_BYTES)
            try:
                part = self.member.decompress(chunk, most)
            except zlib.error as error:
                raise truncated(f"gzip: {error}") from None
            self.pending = self.member.unused_data if self.member.eof else self.member.unconsumed_tail
            self.inflated_bytes += len(part)
            if part:
                return part
            if not (chunk or self.member.eof):
                raise truncated("its compressed data end early")

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
