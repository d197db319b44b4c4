"""The caches of an app in a run: looked at once, placed once per tier, and given to each job."""

from __future__ import annotations

from contextlib import suppress
from dataclasses import asdict
from pathlib import Path

from neurotier.containers.store import Cache, Shelf, look_at, place_cache
from neurotier.core.files import Record, read_json
from neurotier.core.places import Places
from neurotier.core.settings import Say, Settings
from neurotier.run.jobs import shelf


def obtain_caches(settings: Settings, places: Places, say: Say, placing: bool) -> Record:
    """Look at the sources of all caches and, if ``placing``, place them; content of ``index/caches.json``."""
    caches = {name: look_at(name, each["source"]) for name, each in settings.app.caches.items()}
    if placing:
        placing_on = Shelf(**shelf(settings, places), say=say)
        for cache in caches.values():
            place_cache(placing_on, cache)
    return {name: asdict(cache) for name, cache in caches.items()}


def placed_caches(settings: Settings, places: Places, say: Say) -> dict[Path, Cache]:
    """The caches as a job's containers see them, placed again if their tier has lost them."""
    if not settings.app.caches:
        return {}
    placing_on, known = Shelf(**shelf(settings, places), say=say), read_json(places.index / "caches.json")
    caches = [Cache(**known[name]) for name in settings.app.caches]
    return {place_cache(placing_on, cache): cache for cache in caches}


def digests_used(results: Path) -> set[str]:
    """Digests of the container image and the caches that a results folder uses; none if it is gone.

    Raises
    ------
    StateError
        If a file that says so is damaged.
    """
    digests = set[str]()
    with suppress(FileNotFoundError):
        digests.add(read_json(results / "index" / "image.json")["sha256"])
    with suppress(FileNotFoundError):
        digests |= {cache["sha256"] for cache in read_json(results / "index" / "caches.json").values()}
    return digests
