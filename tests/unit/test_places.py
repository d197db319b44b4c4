"""Places: nothing of two participants, or of two configurations, lies at the same path."""

from __future__ import annotations

from pathlib import Path

from neurotier.core.places import Places, dataset_name

PLACES = Places(Path("/r"), Path("/d"), Path("/w"), Path("/i"), Path("/s"))


def test_participants_of_sites_alike_work_apart() -> None:
    names = ["A/B/sub-01", "A_B/sub-01", "A/sub-01", "sub-01"]
    assert len({PLACES.work_of(name) for name in names}) == len(names)
    assert all(PLACES.work_of(name).parent == PLACES.work for name in names)


def test_names_of_clones_are_safe() -> None:
    name = dataset_name("ria+http://host/a store/$(id)#~alias@v1", None)
    assert name.startswith("id-")
    assert set(name) <= set("abcdefghijklmnopqrstuvwxyz0123456789_-")
