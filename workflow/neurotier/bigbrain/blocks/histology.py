"""Synthetic blocks that look like histology to a storage tier: tissue with fine texture beside a white slide.

Grey levels are those of an 8-bit scan stretched to 16 bits, as BigBrain's sections were scanned; the slide is white,
65535, so its voxels wrap around at the first increment. gzip makes 2.0 to 2.7 times less of a block (a test holds
that), where zeros would shrink to nothing on a tier that compresses, and noise of 16 bits not at all. How well the real
BigBrain compresses was not measured here.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

WHITE, DARKEST = 65535, 60
SLIDE_FRACTION = 0.35
TEXTURE = 0x7F
"""Which bits of the grey levels differ from voxel to voxel."""

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
    for begin in range(0, shape[2], planes):
        made = np.empty((min(planes, shape[2] - begin), shape[1], shape[0]), np.uint16)
        for plane in made:
            noise = np.frombuffer(random.bytes(plane.size), np.uint8).reshape(plane.shape)
            np.multiply(DARKEST + (noise & TEXTURE), STRETCH, out=plane, dtype=np.uint16)
        made[:, :, : round(SLIDE_FRACTION * shape[0])] = WHITE
        yield made.T
