"""Unreachable sites: they fail the run by name, and the next start tries them again."""

from __future__ import annotations

from neurotier.core.errors import SourceError, StateError
from neurotier.core.files import read_json
from neurotier.core.places import Places
from neurotier.dataset.source import Dataset


def require_sites(dataset: Dataset) -> None:
    """Raise unless every site that was asked for is there.

    Raises
    ------
    SourceError
        With every site that is not, and why.
    """
    if dataset.unreachable:
        named = "; ".join(f"{path!r}: {reason}" for path, reason in dataset.unreachable.items())
        raise SourceError(
            f"{len(dataset.unreachable)} of the sub-datasets asked for cannot be reached: {named}",
            where=f"dataset.source {dataset.source!r}",
            fix="start the same command again to clone and analyse what is missing",
        )


def unreachable_sites(places: Places) -> dict[str, str]:
    """Sub-datasets that could not be had when the dataset was cloned last, and why; none if nothing is known."""
    try:
        data = read_json(places.index / "dataset.json")
        return dict(data.get("unreachable", {}))
    except (FileNotFoundError, StateError):
        return {}


def forget_unreachable(places: Places) -> None:
    """Have sites that could not be reached tried again: without its record, the dataset is cloned again.

    What is there of the clone is taken as it is. To be called at the start of a run, before Snakemake looks what there
    is to do, and while nobody else works on the results.
    """
    if unreachable_sites(places):
        (places.index / "dataset.json").unlink(missing_ok=True)
