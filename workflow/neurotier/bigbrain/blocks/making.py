"""Blocks on a tier, and their manifest."""

from __future__ import annotations

import hashlib
from pathlib import Path

from neurotier.bigbrain.blocks.nifti import NewBlock
from neurotier.bigbrain.blocks.sources import Source
from neurotier.bigbrain.engines.increment import shape_text
from neurotier.bigbrain.tasks import Block
from neurotier.core.files import remove_whatever


def make_blocks(source: Source, folder: Path, tier: str) -> list[Block]:
    """Write all blocks of a source to a folder, one at a time and piece by piece; none of them needs to fit in memory.

    Parameters
    ----------
    source
        Where they come from.
    folder
        Where they go; what else lies there is removed.
    tier
        Its tier's name.

    Raises
    ------
    InputError
        If the source is not what it should be.
    TierError
        If the tier is full.
    """
    names = source.names()
    folder.mkdir(parents=True, exist_ok=True)
    for other in set(folder.iterdir()) - {folder / f"{name}.nii" for name in names}:
        remove_whatever(other)
    made = []
    for number, name in enumerate(names, start=1):
        file, (layout, header, pieces) = folder / f"{name}.nii", source.block(name)
        checksum, shape = hashlib.sha256(header), shape_text(layout.shape)
        with NewBlock(file, layout.file_bytes, tier) as new:
            new.write(header)
            for piece in pieces:
                checksum.update(piece)
                new.write(piece)
            new.finish()
        made.append(Block(name, str(file), shape, layout.dtype.str, layout.file_bytes, checksum.hexdigest()))
        print(f"Block {number} of {len(names)}: {name}, {shape}, {layout.file_bytes} bytes.")
    return made
