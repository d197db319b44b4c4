"""Foreign image files, compressed or not, read in parts and never beyond what was requested.

1 MB of gzip can inflate to 1 GB of zeros, or hold a million empty members. Nor may an image take more memory than a job
has.
"""

from __future__ import annotations

import gzip
import os
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, BinaryIO

import psutil

from neurotier.core.control_groups import memory
from neurotier.core.errors import InputError, NeurotierError, TierError
from neurotier.core.foreign import ForeignError, open_file

SLAB_BYTES = 256 << 10
"""Inflated data in memory at once; larger buffers are slower, since the C library gets each from the kernel again."""

UNEXPLAINED_BYTES = 4 << 20
"""Most that is read of a compressed file beyond what its inflated data explain: empty members and padding."""

NO_MEMBER = "Not a gzipped file"
"""Start of gzip's message if no member begins here."""

LEAST_BYTES = 4 << 30
"""Memory that always counts as available, so that a head of 512 x 512 x 512 voxels is never called bad input: a job may
get more memory after it was killed, and other jobs will free theirs."""


def memory_for_images() -> int:
    """Memory of this job, bytes: what is available here, or what its control groups allow, if that is less."""
    return max(LEAST_BYTES, min([psutil.virtual_memory().available, *(limit_bytes for limit_bytes, _ in memory())]))


def truncated(reason: str) -> ForeignError:
    """The error for a file that is incomplete or not an image."""
    return ForeignError(f"is truncated or not NIfTI ({reason})")


@contextmanager
def opened_content(folder: Path, below: str, name: str, blame: type[NeurotierError]) -> Iterator[Content]:
    """Open an image file below a trusted folder, and turn its faults into an error that names it.

    Parameters
    ----------
    folder, below
        The folder, and the file's path below it.
    name
        What to call the file in an error. Its name in the dataset shows whether it is compressed: the content may be
        stored under another name.
    blame
        Class of the error.

    Raises
    ------
    FileNotFoundError
        If there is nothing of this name.
    NeurotierError
        Of the class ``blame``, if it is damaged or not a file; :class:`TierError` if the tier fails to read it.
    """
    try:
        with open_file(folder, below) as file:
            yield Content(file, any(one.lower().endswith(".gz") for one in (below, name)))
    except ForeignError as error:
        fix = "fetch it again or report it upstream" if blame is InputError else ""
        raise blame(f"the image file {error.what}", name, error.fix or fix) from None
    except FileNotFoundError:
        raise
    except OSError as error:
        raise TierError(f"cannot be read: {error.strerror}", name) from None


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
        self.is_compressed = is_compressed
        if os.fstat(file.fileno()).st_size == 0:
            raise ForeignError("is empty (0 bytes)")
        rationed: Any = Rationed(file, self)
        self.file: Any = gzip.GzipFile(fileobj=rationed) if is_compressed else file
        self.read_bytes = 0

    def read(self, count: int) -> bytes:
        """The next bytes; fewer only at the end.

        Raises
        ------
        ForeignError
            If the file ends within a member, is not gzip, or holds next to nothing but empty members.
        """
        whole = b""
        try:
            while len(whole) < count and (part := self.file.read1(count - len(whole))):
                whole += part
                self.read_bytes += len(part)
        except (EOFError, zlib.error, gzip.BadGzipFile) as error:
            if not (self.read_bytes and str(error).startswith(NO_MEMBER)):
                raise truncated(f"gzip: {error}") from None
        return whole


@dataclass
class Rationed:
    """A compressed file that is only read as far as the inflated data explain."""

    file: BinaryIO
    content: Content

    def read(self, count: int) -> bytes:
        if self.file.tell() > UNEXPLAINED_BYTES + 2 * self.content.read_bytes:
            raise ForeignError("is padded or cut into pieces, most of them empty")
        return self.file.read(count)
