"""Places: nothing of two participants, or of two configurations, lies at the same path."""

from __future__ import annotations

import socket
from pathlib import Path

from neurotier.core.places import Places, dataset_name
from neurotier.core.settings import DemoSettings

PLACES = Places(Path("/r"), Path("/d"), Path("/w"), Path("/i"), Path("/s"))


def test_participants_of_sites_alike_work_apart() -> None:
    names = ["A/B/sub-01", "A_B/sub-01", "A/sub-01", "sub-01"]
    assert len({PLACES.work_of(name) for name in names}) == len(names)
    assert all(PLACES.work_of(name).parent == PLACES.work for name in names)


def test_names_of_clones_are_safe() -> None:
    name = dataset_name("ria+http://host/a store/$(id)#~alias@v1", None)
    assert name.startswith("id-")
    assert set(name) <= set("abcdefghijklmnopqrstuvwxyz0123456789_-")


def test_other_demo_settings_are_another_dataset() -> None:
    settings = [DemoSettings(None, 2.0, seed) for seed in (1, 2)]
    assert PLACES.demo(settings[0]) != PLACES.demo(settings[1])


def test_places_below_the_working_folder_are_shown_relative() -> None:
    shown = PLACES.shortened(Path("/r"))
    assert (shown.results, shown.datasets) == (Path(), Path("/d"))


def test_measurements_are_kept_by_class_of_nodes() -> None:
    here = PLACES.probed("disk")
    assert here == Path("/r/probe", socket.gethostname(), "disk.tsv")  # where those of earlier versions are
    assert PLACES.probed("disk", "thin") == Path("/r/probe/thin/disk.tsv")
