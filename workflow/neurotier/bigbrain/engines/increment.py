"""Increment one block: load its header, read its voxels, add one to each, write all, and time each of these phases.

When streaming, a block passes through a buffer of a few MiB that stays in the processor's cache, so a worker needs the
same memory for a block of any size. The phases alternate, and the time of each is a sum over its pieces. The published
pairing maps the file with NiBabel, as the paper's program did: nothing is read before the voxels are used, so reading
is part of ``increment``, and a worker holds the block twice (mapped and incremented).
"""

from __future__ import annotations

import math
import os
import signal
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np

from neurotier.bigbrain.blocks.nifti import (
    HEADER_BYTES,
    Layout,
    bytes_of,
    finish,
    new_block,
    read_layout,
    require_size,
    shape_text,
)
from neurotier.bigbrain.tasks import DELAY, HEADER, INCREMENT, PUBLISHED, READ, START_UP, WRITE, Block, Task
from neurotier.core.errors import InputError
from neurotier.core.files import Record
from neurotier.meter.tree import status

PIECE_BYTES = 2 << 20
"""Bytes that are read, incremented and written at once; larger pieces do not stay in the processor's cache."""

EPOCH_S = time.time() - time.monotonic()
"""Turns times of the monotonic clock, which cannot be set during a run, into s since 1970."""


class Stopwatch:
    """The phases of one iteration of one block: each from its first piece's start to its last piece's end, with the
    sum of its pieces' durations."""

    def __init__(self) -> None:
        self.phases: dict[str, Record] = {}

    @contextmanager
    def timing(self, name: str, moved_bytes: int = 0) -> Iterator[None]:
        """Time a piece of a phase."""
        begin_s = time.monotonic()
        try:
            yield
        finally:
            self.add(name, begin_s + EPOCH_S, time.monotonic() + EPOCH_S, moved_bytes)

    def add(self, name: str, start_s: float, end_s: float, moved_bytes: int = 0) -> None:
        """Add a piece to a phase."""
        none = {"phase": name, "start_s": start_s, "end_s": end_s, "duration_s": 0.0, "pieces": 0, "bytes": 0}
        phase = self.phases.setdefault(name, none)
        phase["end_s"] = end_s
        phase["duration_s"] += end_s - start_s
        phase["pieces"] += 1
        phase["bytes"] += moved_bytes


def increment(
    task: Task, block: Block, iteration: int, process_start_s: float | None = None, given: bytes | None = None
) -> Record:
    """Do one iteration of one block.

    Parameters
    ----------
    task, block
        The run, and one of its blocks.
    iteration
        The iteration, from 1; it reads what the previous one wrote.
    process_start_s
        When this process was started, s since 1970, if this is its first iteration; its start is then a phase, too.
    given
        The content of the file to read, if the engine has read it already.

    Returns
    -------
    dict
        The record of the iteration, with its phases and the number of voxels that wrapped around.

    Raises
    ------
    InputError
        If the file to read is missing, truncated, or of another type.
    TierError
        If the tier is full.
    """
    watch = Stopwatch()
    if task.pairing == PUBLISHED and given is None:
        import nibabel  # noqa: F401  # imported now, so that this counts as start-up and not as another phase
    if process_start_s is not None:
        watch.add(START_UP, process_start_s, time.monotonic() + EPOCH_S)
    source, final = task.file(block, iteration - 1), task.file(block, iteration)
    is_whole = task.pairing == PUBLISHED or given is not None
    with new_block(final, block.bytes, task.tier) as new:
        if is_whole:
            wrapped = increment_whole(block, source, new, watch, given)
        else:
            wrapped = increment_streaming(block, source, new, watch)
        with watch.timing(WRITE):
            finish(new, final, block.bytes, task.fsync)
    if task.delay_s:
        with watch.timing(DELAY):
            time.sleep(task.delay_s)
    return {
        "attempt": os.environ.get("NEUROTIER_RUN", ""),
        "block": block.block,
        "iteration": iteration,
        "suspended": signal.SIGCONT in signal.sigpending(),  # not known with Spark
        "wrapped_voxels": wrapped,
        # ``getrusage`` would include that of the process from which this one was forked
        "max_rss_bytes": 1024 * status("/proc/self")[b"VmHWM"],
        "phases": list(watch.phases.values()),
    }


def increment_streaming(block: Block, source: Path, new: BinaryIO, watch: Stopwatch) -> int:
    """Increment a block piece by piece; return how many voxels wrapped around."""
    with watch.timing(HEADER):
        file, header, layout = open_block(block, source)
    with file:
        with watch.timing(WRITE, len(header)):
            new.write(header)
        count = math.prod(layout.shape)
        buffer = np.empty(min(count, PIECE_BYTES // layout.dtype.itemsize), layout.dtype)
        wrapped = 0
        for begin in range(0, count, len(buffer)):
            piece = buffer[: count - begin]
            with watch.timing(READ, piece.nbytes):
                read_into(piece, file, block, source)
            with watch.timing(INCREMENT, piece.nbytes):
                np.add(piece, 1, out=piece)
                wrapped += len(piece) - int(np.count_nonzero(piece))
            with watch.timing(WRITE, piece.nbytes):
                new.write(bytes_of(piece))
    return wrapped


def increment_whole(block: Block, source: Path, new: BinaryIO, watch: Stopwatch, given: bytes | None) -> int:
    """Increment a block in memory, or mapped as in the published program; return how many voxels wrapped around."""
    with watch.timing(HEADER):
        if given is None:
            import nibabel

            file, header, layout = open_block(block, source)
            file.close()
            image = nibabel.load(source)
        else:
            layout = layout_of(block, source, given[:HEADER_BYTES], len(given))
            header = given[: layout.offset_bytes]
    data_bytes = block.bytes - layout.offset_bytes
    with watch.timing(INCREMENT, data_bytes):
        if given is None:
            voxels = np.asanyarray(image.dataobj)
        else:
            voxels = np.frombuffer(given, layout.dtype, offset=layout.offset_bytes)
        result = (voxels + layout.dtype.type(1)).astype(layout.dtype, copy=False)
        wrapped = result.size - np.count_nonzero(result)
    with watch.timing(WRITE, len(header) + data_bytes):
        new.write(header)
        new.write(bytes_of(result.ravel(order="K")))
    return int(wrapped)


def open_block(block: Block, source: Path) -> tuple[Any, bytes, Layout]:
    """Open a block; return the file at its first voxel, the bytes before that, and its layout.

    Raises
    ------
    InputError
        If the block does not match its manifest; with what was expected and found.
    """
    try:
        file = source.open("rb", buffering=0)
    except FileNotFoundError:
        raise problem_of(block, source, f"is not there: expected {block.bytes} bytes, found no file") from None
    try:
        header = file.read(HEADER_BYTES)
        layout = layout_of(block, source, header, os.fstat(file.fileno()).st_size)
        return file, header + file.read(layout.offset_bytes - len(header)), layout
    except InputError:
        file.close()
        raise


def layout_of(block: Block, source: Path, header: bytes, size_bytes: int) -> Layout:
    """The layout of a block; raises :class:`InputError` if it does not match its manifest."""
    try:
        layout = read_layout(header)
        wanted, shape = np.dtype(block.dtype), shape_text(layout.shape)
        if layout.dtype != wanted:
            raise ValueError(f"is of another type: expected {wanted.name}, found {layout.dtype.name}")
        if shape != block.shape:
            raise ValueError(f"is of another shape: expected {block.shape}, found {shape}")
        require_size(block.bytes, size_bytes)
    except ValueError as error:
        raise problem_of(block, source, str(error)) from None
    return layout


def problem_of(block: Block, source: Path, text: str) -> InputError:
    """The error for a problem with a block's file."""
    return InputError(text, f"block {block.block} ({source})", "make the blocks again with --forcerun make_blocks")


def read_into(piece: np.ndarray, file: Any, block: Block, source: Path) -> None:
    """Fill a piece with the next voxels of a file."""
    rest = bytes_of(piece)
    while rest:
        count = file.readinto(rest)
        if not count:
            found = f"expected {block.bytes} bytes, found {file.tell()}"
            raise problem_of(block, source, f"ends while it is read: {found}")
        rest = rest[count:]
