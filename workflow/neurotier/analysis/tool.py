"""What every tool has, and the defaults of one that makes no masks and has nothing to prepare."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, ClassVar

if TYPE_CHECKING:  # a tool that makes no masks needs no image in memory
    import nibabel as nib

    from neurotier.analysis.images import Mask


class Tool:
    """A brain extraction tool.

    Attributes
    ----------
    makes_masks
        Whether its command writes :data:`neurotier.analysis.tools.MASK`.
    environment
        Environment variables for its command.
    cache_variable
        Environment variable for the folder of what it compiles; empty if it compiles nothing.
    version_command
        Command in the image that prints the version.
    memory_mb
        Peak memory of a participant job: a base, and MB per MB of the largest compressed image.
    """

    name: ClassVar[str]
    makes_masks: ClassVar[bool] = False
    environment: ClassVar[dict[str, str]] = {}
    cache_variable: ClassVar[str] = ""
    version_command: ClassVar[list[str]] = ["echo", "1"]

    @property
    def memory_mb(self) -> tuple[int, int]:
        return 100, 0

    def command(self, image: str, folder: str) -> list[str]:
        """The command in the image that extracts the brain of a file into a folder."""
        return ["true"]

    def version(self) -> str:
        """The tool's version; :class:`ToolError` if it is not installed."""
        return "1"

    def expected_s(self, size_mb: float) -> float:
        """How long an image of this size takes one core, s, roughly: participants that are quick share a job."""
        raise NotImplementedError

    def warm_up(self) -> None:
        """Preparation that is done once, and not by the first participant jobs at the same time."""

    def load(self) -> None:
        """Import what :meth:`extract` uses: a job of several participants does so before they part."""

    def extract(self, head: nib.Nifti1Image | None, image: Path, folder: Path, log: Path, name: str) -> Mask | None:
        """The brain mask of a head.

        Parameters
        ----------
        head
            The loaded and checked image; ``None`` for a tool that makes no masks.
        image
            Its file on the work tier.
        folder
            Scratch folder on the work tier, for this image alone.
        log
            File that takes what the tool prints.
        name
            What to call the image in an error.

        Returns
        -------
        Mask or None
            Booleans on the head's grid; ``None`` from a tool that makes no masks.
        """
        raise NotImplementedError
