"""What a user asks beside a run: of a results folder, its jobs on a cluster and the container images in its store; and
for a profile of the cluster."""

from __future__ import annotations

from pathlib import Path

from neurotier.containers.prune import DAY_S, remove_unused, stored_images
from neurotier.core.errors import SettingsError
from neurotier.core.files import read_json
from neurotier.core.places import Places
from neurotier.core.quantities import size, utc
from neurotier.run.caches import digests
from neurotier.run.jobs import load_settings
from neurotier.run.start import acquire
from neurotier.run.submitted import end_left, list_jobs


def show_cluster_jobs(results: Path, end_them: bool) -> int:
    """Print the cluster jobs of runs that have not ended, and end them if asked; the exit code of the process.

    Raises
    ------
    BusyError
        If they are to be ended, and their run lives.
    """
    places = Places.from_settings(load_settings(results))
    if end_them:
        acquire(places)
        end_left(places, "", lambda line: print(line, flush=True))
    for line in list_jobs(places):
        print(line)
    return 0


def show_site() -> int:
    """Print a draft of a profile for this cluster; the exit code of the process.

    Raises
    ------
    SourceError
        If there is no Slurm here.
    """
    from neurotier.run.site import draft

    print(draft(), end="")
    return 0


def show_images(results: Path, unused_days: float | None) -> int:
    """Print the container images in the store, or remove those that were not used for so long; the exit code.

    That of these results stays in any case.
    """
    places = Places.from_settings(load_settings(results))
    stored = list(stored_images(places.image_store, places.images))
    if unused_days is None:
        for image in stored:
            print(f"{image.name}\t{size(image.size_bytes)}\tused {utc(image.used_s)}\tsha256:{image.sha256[:12]}")
        return 0
    if not unused_days * DAY_S >= 0:
        raise SettingsError("is no number of days", where=f"--remove-unused {unused_days}", fix="give 30, for example")
    own = places.index / "image.json"
    in_use = {read_json(own)["sha256"]} if own.exists() else set()
    in_use |= digests(places.index / "caches.json")
    for image in remove_unused(stored, unused_days, in_use):
        print(f"removed {image.name} ({size(image.size_bytes)}, used {utc(image.used_s)})")
    return 0
