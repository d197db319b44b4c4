"""Check that each voxel written is the voxel read plus the number of iterations, modulo the range of its type."""

from __future__ import annotations

import hashlib
import math
from dataclasses import dataclass

import numpy as np

from neurotier.bigbrain.blocks.nifti import bytes_of
from neurotier.bigbrain.engines.increment import open_block, read_into
from neurotier.bigbrain.tasks import Block, Task
from neurotier.core.errors import InputError

PIECE_BYTES = 4 << 20


@dataclass(frozen=True)
class Checked:
    """A block after its last iteration: whether it is right, and its checksum or the reason why it has none."""

    block: str
    equal: bool
    sha256: str
    reason: str = ""


def check_block(task: Task, block: Block) -> Checked:
    """Compare a block after its last iteration with the original block, byte for byte.

    Raises
    ------
    InputError
        If either of them is missing or incomplete.
    """
    before, after = task.file(block, 0), task.file(block, task.iterations)
    read, header, layout = open_block(block, before)
    with read:
        written, new_header, _ = open_block(block, after)
        with written:
            equal, checksum = header == new_header, hashlib.sha256(new_header)
            count = math.prod(layout.shape)
            expected = np.empty(min(count, PIECE_BYTES // layout.dtype.itemsize), layout.dtype)
            actual = np.empty_like(expected)
            for begin in range(0, count, len(expected)):
                first, last = expected[: count - begin], actual[: count - begin]
                read_into(first, read, block, before)
                read_into(last, written, block, after)
                first += np.uint64(task.iterations).astype(layout.dtype)  # modulo the range of a voxel
                equal = equal and np.array_equal(first, last)
                checksum.update(bytes_of(last))
    return Checked(block.block, equal, checksum.hexdigest())


def check_task(task: Task) -> list[Checked]:
    """Check all blocks of a run; a missing or incomplete block counts as wrong, like one with wrong voxels."""
    checked = []
    for block in task.blocks:
        try:
            one = check_block(task, block)
        except InputError as error:
            one = Checked(block.block, False, "", str(error))
        checked.append(one)
        print(f"{block.block}: {'as expected' if one.equal else one.reason or 'WRONG: not input + iterations'}")
    return checked


def checksum_of(checked: list[Checked]) -> str:
    """One checksum for the whole output; it is equal for outputs with equal blocks and equal names.

    >>> checksum_of([Checked("a", True, "0" * 64)])[:8]
    '53d743f3'
    """
    return hashlib.sha256("".join(sorted(f"{one.sha256}  {one.block}\n" for one in checked)).encode()).hexdigest()
