"""What a participant needs while it is analysed: room and files on the work tier, cores, memory."""

from __future__ import annotations

from collections.abc import Iterable
from contextlib import suppress

from neurotier.analysis.staging import MARGIN_BYTES
from neurotier.analysis.tools import make_tool
from neurotier.core.files import read_if_whole
from neurotier.core.places import Places
from neurotier.core.settings import Settings
from neurotier.dataset.bids import Image, size_of

OWN_FILES = 20
"""Files and folders of the job itself in a work folder, besides a file and its folders for each image."""

FILES_OF_AN_IMAGE = 6
"""Site, participant, session and data type folders of the copy, the copy itself, and a scratch folder."""

UNPACKED_FACTOR = 4.0
"""Room that an unpacked image takes per byte of its file; measured: 3.1 for the default image."""


def described(settings: Settings) -> dict[str, str]:
    """What determines a tool's work besides its options: a rehearsal's description, the files that a command names.

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


def merged_bytes(settings: Settings, places: Places, participants: Iterable[str]) -> int:
    """Memory that the group level's copy of participants' outputs takes on a work tier in memory, bytes.

    It is 0 on other tiers, and leaves out participants who are not done yet.
    """
    if not settings.kind_of("work").takes_memory:
        return 0
    outputs_bytes = 0
    for name in participants:
        with suppress(AttributeError, TypeError, ValueError):
            manifest = read_if_whole(places.record(name)).get("derivatives", {})  # earlier versions have none
            outputs_bytes += sum(int(size_bytes) for size_bytes, _ in manifest.values())
    return MARGIN_BYTES + outputs_bytes


def threads_of(settings: Settings) -> int:
    """Cores that one participant takes."""
    return settings.app.threads if settings.is_app else make_tool(settings.tool).threads


def placed_bytes(settings: Settings, places: Places) -> int:
    """Memory that the container image and an app's caches take if the images tier is in memory, bytes.

    It is 0 until they have been obtained. Whether the image is unpacked is decided where it is placed; if the user
    leaves that open, it may be.
    """
    if settings.image is None or not settings.kind_of("images").takes_memory:
        return 0
    image_bytes = int(read_if_whole(places.index / "image.json").get("size_bytes", 0))
    caches = read_if_whole(places.index / "caches.json") if settings.is_app and settings.app.caches else {}
    factor = 1.0 if settings.containers.form == "sif" else UNPACKED_FACTOR
    return int(factor * image_bytes) + sum(int(cache["size_bytes"]) for cache in caches.values())
