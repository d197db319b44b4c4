"""Container images and apps' caches in a run: where they are kept, placed once per tier, and passed to each job."""

from __future__ import annotations

import os
from contextlib import suppress
from dataclasses import replace
from pathlib import Path

from neurotier.analysis.app import app_name
from neurotier.analysis.brains import prepare_in_container, read_labels
from neurotier.analysis.tools import make_tool
from neurotier.containers.engine import find_engine
from neurotier.containers.run import Container
from neurotier.containers.store import (
    Cache,
    ContainerImage,
    PlacedImage,
    Shelf,
    Store,
    can_unpack,
    examine_cache,
    note_user,
    place_cache,
)
from neurotier.core.files import Record, note, read_json
from neurotier.core.places import Places
from neurotier.core.private import SCRATCH, make_private, remove_empty, work_folder
from neurotier.core.processes import CAMPAIGN, current_run
from neurotier.core.settings import Say, Settings
from neurotier.core.tiers import tiers_of


def shelf(settings: Settings, places: Places, say: Say, placing: bool = True) -> Shelf:
    """The folder where images and caches are kept and, if ``placing``, that on this machine's images tier where they
    are placed.

    Raises
    ------
    TierError
        If the images tier is missing, or not what it is declared to be.
    """
    tier, kept = tiers_of(settings)["images"], places.image_store
    if placing:
        tier = tier.here()
        tier.claim()
    images = tier.folder("images")
    for folder in [kept, images] if placing else [kept]:
        make_private(folder)
        note_user(folder, places.results)
    # Both starts of a campaign's run verify images under one name: otherwise the second start would read the image
    # again, and so fill the page cache that was emptied in between.
    return Shelf(kept, images, say, places.verified, os.environ.get(CAMPAIGN) or current_run())


def image_store(settings: Settings, places: Places, log: Path, say: Say, placing: bool = True) -> Store:
    """The store that keeps container images and places them on this machine's images tier.

    Parameters
    ----------
    settings, places
        Of the run.
    log
        File for what the engine prints.
    say
        Prints a line per step.
    placing
        Whether images are placed by this process: if each node of a cluster has its own images tier, only jobs place
        them.

    Raises
    ------
    ContainerError
        If there is no container engine.
    TierError
        See :func:`shelf`.
    """
    where, containers = shelf(settings, places, say, placing), settings.containers
    if containers.form == "auto":  # measured: tests/benchmarks/containers.py
        remote = settings.kind_of("images").remote
        containers = replace(containers, form="sif" if remote or not can_unpack() else "sandbox")
    return Store(**vars(where), engine=find_engine(), settings=containers, log=log.absolute(), dataset=settings.dataset)


def placed_image(settings: Settings, places: Places, log: Path) -> PlacedImage | None:
    """The container image in use and the caches that an app reads, placed again if their tier has lost them; ``None``
    if no container is used."""
    if settings.image is None:
        return None
    store = image_store(settings, places, log, lambda line: note(log, line))
    image = ContainerImage(**read_json(places.index / "image.json"))
    names = settings.app.caches if settings.is_app else ()
    known = read_json(places.index / "caches.json") if names else {}
    placed = {place_cache(store, cache): cache for cache in (Cache(**known[name]) for name in names)}
    return PlacedImage(store.engine, store.place(image), store.cache(image), image.sha256, placed)


def prepare_tool(settings: Settings, places: Places, log: Path) -> Record:
    """Check that the tool or app works, and prepare it for all participants.

    Returns
    -------
    dict
        Content of ``index/tool.json``: name, version and, in a container, the image's digest.

    Raises
    ------
    ToolError, ContainerError
        If the tool or app is missing or cannot be run.
    """
    placed = placed_image(settings, places, log)
    if placed is None:
        tool = make_tool(settings.tool)
        version = tool.version()
        tool.warm_up()
        return {"name": tool.name, "version": version}

    try:
        with work_folder(places.preparing, places.identity) as folder:
            container = Container(placed.engine, placed.path, settings.containers, folder / SCRATCH)
            if settings.is_app:
                version = read_labels(container, log)
            else:
                version = prepare_in_container(make_tool(settings.tool), container, placed.cache, log)
    finally:
        remove_empty(places.preparing)
    return {"name": app_name(settings), "version": version, "image": placed.sha256}


def obtain_caches(settings: Settings, places: Places, say: Say, placing: bool) -> Record:
    """Examine the sources of all caches and, if ``placing``, place them; returns the content of
    ``index/caches.json``."""
    caches = {name: examine_cache(name, each["source"]) for name, each in settings.app.caches.items()}
    if placing:
        placing_on = shelf(settings, places, say)
        for cache in caches.values():
            place_cache(placing_on, cache)
    return {name: cache._asdict() for name, cache in caches.items()}


def digests_used(results: Path) -> set[str]:
    """Digests of the container image and the caches that a results folder uses; empty if the folder is gone.

    Raises
    ------
    StateError
        If the file that holds them is damaged.
    """
    digests = set()
    with suppress(FileNotFoundError):
        digests.add(read_json(results / "index" / "image.json")["sha256"])
    with suppress(FileNotFoundError):
        digests |= {cache["sha256"] for cache in read_json(results / "index" / "caches.json").values()}
    return digests
