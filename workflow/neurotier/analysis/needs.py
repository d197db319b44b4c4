"""What a participant needs while it is analysed: room and files on the work tier, and cores."""

from __future__ import annotations

from neurotier.analysis.staging import MARGIN_BYTES
from neurotier.analysis.tools import make_tool
from neurotier.core.settings import Settings
from neurotier.dataset.bids import Image, size_of

OWN_FILES = 20
"""Files and folders of the job itself in a work folder, besides a file and its folders for each image."""

FILES_OF_AN_IMAGE = 6
"""Site, participant, session and data type folders of the copy, the copy itself, and a scratch folder."""


def content_keys(settings: Settings) -> dict[str, str]:
    """What determines a tool's work besides its options: a rehearsal's description, or the files that a command names.

    In a container, the image determines these.
    """
    if settings.image or settings.is_app:
        return {}
    tool = make_tool(settings.tool)
    key = tool.content_key()
    return {tool.content: key} if key else {}


def work_bytes(images: list[Image], settings: Settings) -> int:
    """Upper bound of the room that a participant needs on the work tier at any time, bytes."""
    input_bytes = size_of(images)
    if settings.is_app:
        return MARGIN_BYTES + int(settings.app.work_factor * input_bytes)
    return MARGIN_BYTES + make_tool(settings.tool).work_bytes(len(images), input_bytes)


def work_files(images: list[Image], settings: Settings) -> int | None:
    """Upper bound of a participant's files and folders on the work tier at any time; ``None`` if unknown."""
    if settings.is_app:
        return settings.app.work_files
    made = make_tool(settings.tool).work_files(len(images))
    return None if made is None else OWN_FILES + FILES_OF_AN_IMAGE * len(images) + made


def threads_of(settings: Settings) -> int:
    """Cores that one participant takes."""
    return settings.app.threads if settings.is_app else make_tool(settings.tool).threads
