"""Conditions of the incrementation, for the user's own runs and for published ones."""

from __future__ import annotations

from dataclasses import dataclass

from neurotier.core.tables import Row

GRIDS = {40: (769, 603, 694), 20: (770, 604, 695)}
"""Voxels of a block along each axis, by resolution (um); a block is named for the voxel where it begins."""

BLOCKS = {40: 125, 20: 1000}
"""Blocks of the whole image by resolution (um)."""

BLOCK_BYTES = {40: 643_625_668, 20: 646_461_552}
"""Size of a block's file by resolution (um)."""


ORIGIN = "published"
"""Origin of the paper's measurements; the origin of the user's own runs is the name of the host."""


@dataclass(frozen=True)
class IncrementCondition:
    """The properties that repetitions have in common.

    Attributes
    ----------
    tier
        For a published condition, the device, and the mode of Optane.
    block_bytes
        Size of all blocks together.
    variant
        How a published condition differs from those in the paper's figures; otherwise empty.
    """

    origin: str
    engine: str
    tier: str
    parallelism: int
    blocks: int
    block_bytes: int
    iterations: int
    pairing: str
    variant: str = ""

    @classmethod
    def of(cls, row: Row) -> IncrementCondition:
        """The condition of a run."""
        return cls(**{name: row[name] for name in cls.__match_args__ if name in row})

    @property
    def is_published(self) -> bool:
        """Whether the paper measured it."""
        return self.origin == ORIGIN

    @property
    def resolution_um(self) -> int | None:
        """Resolution of the published image, um; ``None`` for one of the user's own conditions."""
        known = (size for size, count in BLOCKS.items() if count == self.blocks)
        return next(known, None) if self.is_published else None

    @property
    def panel(self) -> tuple[int, str, int] | None:
        """The panel of the paper's figures that a condition is in: resolution (um), engine and number of processes.

        ``None`` for variants, which are in no figure, and for the user's own conditions.
        """
        size = self.resolution_um
        return None if size is None or self.variant else (size, self.engine, self.parallelism)
