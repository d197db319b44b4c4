"""What every tool has, and the defaults of one that makes no masks and has nothing to prepare."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any, ClassVar

from neurotier.analysis.inflating import SLAB_BYTES, opened_content
from neurotier.analysis.memory import LEAST_BYTES
from neurotier.core.errors import InputError

WORK_FACTOR = 3.0
"""Work space per byte of compressed input: the copy, the brain (at most as large), the mask, and files of the tool."""

Pair = tuple[Any, Any]
"""An image as nibabel has it, and its mask as booleans; a tool that makes no masks has neither, and loads no library
that could tell what they are."""


class Tool:
    """A brain extraction tool.

    Attributes
    ----------
    cache_variable
        Environment variable for the folder of what it compiles; empty if it compiles nothing.
    """

    name: str
    cache_variable: ClassVar[str] = ""

    @property
    def environment(self) -> dict[str, str]:
        """Environment variables for its command."""
        return {}

    @property
    def version_command(self) -> Sequence[str]:
        """Command in the image that prints the version; empty if the image's labels have it."""
        return ["echo", "1"]

    @property
    def memory_mb(self) -> tuple[int, int]:
        """Peak memory of a participant job: a base, and MB per MB of the largest compressed image."""
        return 100, 0

    @property
    def threads(self) -> int:
        """Cores that a participant takes."""
        return 1

    def work_bytes(self, images: int, input_bytes: int) -> int:
        """Room on the work tier for so many images of so many bytes, bytes."""
        return int(WORK_FACTOR * input_bytes)

    def work_files(self, images: int) -> int | None:
        """Files and folders that are made for them on the work tier; ``None`` if nobody knows."""
        return None

    def content_key(self) -> str:
        """What the tool does that its options do not say; empty if they say all."""
        return ""

    def command(self, image: str, folder: str) -> list[str]:
        """The command in the image that extracts the brain of a file into a folder."""
        return ["true"]

    def read_mask(self, folder: Path, below: str, head: Any, name: str) -> Any:
        """The mask of a head that the command has left ``below`` a trusted folder; ``None`` if it makes none."""
        return None

    def version(self) -> str:
        """The tool's version; :class:`ToolError` if it is not installed."""
        return "1"

    def warm_up(self) -> None:
        """Preparation that is done once, and not by the first participant jobs at the same time."""

    def load(self) -> None:
        """Import what :meth:`extract` uses: a pool does so before its first child."""

    def checked_head(self, image: Path, name: str) -> Any:
        """A head that can contain a brain, checked before the tool is started; errors name it by ``name``.

        A tool that makes no masks reads the file once, or the first :data:`LEAST_BYTES` of it.

        Raises
        ------
        InputError
            If the file is damaged; see also :func:`neurotier.analysis.images.load_head`.
        """
        with opened_content(image.parent, image.name, name, InputError) as content:
            for _ in range(LEAST_BYTES // SLAB_BYTES):
                if not content.read(SLAB_BYTES):
                    break

    def extract(self, head: Any, image: Path, folder: Path, log: Path, name: str) -> Any:
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
