"""Synthetic blocks that look like histology to a storage tier: smooth tissue with fine texture on a white slide.

Grey levels are those of an 8-bit scan stretched to 16 bits, as BigBrain's sections were scanned; the slide is white,
65535, so its voxels wrap around at the first increment. gzip makes 2.0 to 2.7 times less of a block (a test holds
that), where zeros would shrink to nothing on a tier that compresses, and noise not at all. How well the real BigBrain
compresses was not measured here.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

WHITE = 255
NODES = 8
"""Random values along each axis, between which tissue is interpolated."""

TISSUE_FRACTION = 0.65
TEXTURE = 0x1F
DARKEST, RANGE = 60, 120
STRETCH = 257
"""What makes 16 bits of 8."""


def histology(shape: tuple[int, int, int], seed: int, number: int, planes: int) -> Iterator[np.ndarray]:
    """The voxels of a block (uint16, first axis fastest), some planes of the last axis at a time.

    Parameters
    ----------
    shape
        Voxels along each axis.
    seed, number
        Of the image, and of the block in it: the same ones give the same voxels.
    planes
        How many planes are made at once; the voxels do not depend on it.
    """
    random = np.random.default_rng([seed, number])
    lattices = random.random((2, NODES, NODES, NODES), dtype=np.float32)
    border = np.quantile(lattices[0], 1 - TISSUE_FRACTION)
    along_x, along_y, along_z = (weights(size) for size in shape)
    for begin in range(0, shape[2], planes):
        made = np.empty((min(planes, shape[2] - begin), shape[1], shape[0]), np.uint16)
        for offset, plane in enumerate(made):
            kind, brightness = (
                # not as a product of matrices: BLAS would start threads for so little, which then wait for cores
                np.einsum("xi,yi->yx", along_x, np.einsum("yj,ijk,k->yi", along_y, lattice, along_z[begin + offset]))
                for lattice in lattices
            )
            grey = (DARKEST + RANGE * brightness).astype(np.uint8)
            grey += np.frombuffer(random.bytes(plane.size), np.uint8).reshape(plane.shape) & TEXTURE
            grey[kind <= border] = WHITE
            np.multiply(grey, STRETCH, out=plane, dtype=np.uint16)
        yield made.T


def weights(size: int) -> np.ndarray:
    """How much each node counts at each voxel of an axis (linear interpolation)."""
    at = np.linspace(0, NODES - 1, size, dtype=np.float32)
    near: np.ndarray = np.maximum(0, 1 - np.abs(at[:, None] - np.arange(NODES, dtype=np.float32)))
    return near
