"""Unreachable sites: the run fails and names them, and the next run tries them again."""

from __future__ import annotations

from neurotier.core.errors import SourceError, StateError
from neurotier.core.files import read_json
from neurotier.core.places import Places
from neurotier.dataset.source import Dataset


def require_sites(dataset: Dataset) -> None:
    """Raise unless every selected site is installed.

    Raises
    ------
    SourceError
        With the sites that are not, and why.
    """
    if dataset.unreachable:
        named = "; ".join(f"{path!r}: {reason}" for path, reason in dataset.unreachable.items())
        raise SourceError(
            f"{len(dataset.unreachable)} of the sub-datasets asked for cannot be reached: {named}",
            where=f"dataset.source {dataset.source!r}",
            fix="start the same command again to clone and analyse what is missing",
        )


def unreachable_sites(places: Places) -> dict[str, str]:
    """Sub-datasets that could not be installed at the last cloning, with the reason; none if that is not known."""
    try:
        data = read_json(places.index / "dataset.json")
        return dict(data.get("unreachable", {}))
    except (FileNotFoundError, StateError):
        return {}


def forget_unreachable(places: Places) -> None:
    """Have unreachable sites tried again, by removing the record of the clone, which Snakemake then makes again.

    The clone itself is kept and completed. To be called at the start of a run, before Snakemake decides what to do, and
    while no other run works on the results.
    """
    if unreachable_sites(places):
        (places.index / "dataset.json").unlink(missing_ok=True)
