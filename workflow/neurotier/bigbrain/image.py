"""The BigBrain image as the published experiment cut it: its blocks, by resolution."""

from __future__ import annotations

GRIDS = {40: (769, 603, 694), 20: (770, 604, 695)}
"""Voxels of a block by resolution (um); blocks are named by the multiples of them where they begin."""

BLOCKS = {40: 125, 20: 1000}
"""Blocks of the whole image by resolution (um)."""

BLOCK_BYTES = {40: 643_625_668, 20: 646_461_552}
"""Size of a block's file by resolution (um)."""
