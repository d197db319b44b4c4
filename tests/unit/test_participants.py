"""The participants that the index selects."""

from __future__ import annotations

from pathlib import Path

import pytest
from neurotier.core.errors import InputError, StateError
from neurotier.core.places import Places
from neurotier.core.tables import read_table, write_table
from neurotier.run.jobs import load_settings
from neurotier.run.participants import images_of, selected_by
from pool_jobs import prepared_results


@pytest.fixture
def places(tmp_path: Path) -> Places:
    return Places.from_settings(load_settings(prepared_results(tmp_path, ["01", "02"], others=3)))


def test_the_index_is_read_once_per_version(places: Places) -> None:
    table = places.index / "images.tsv"
    selected = selected_by(table)
    assert len(selected) == 5
    assert selected_by(table) is selected
    write_table(table, "images", read_table(table, "images")[:3])
    assert len(selected_by(table)) == 3


def test_half_a_line_is_damage(places: Places) -> None:
    table = places.index / "images.tsv"
    table.write_bytes(table.read_bytes()[:-30])
    with pytest.raises(StateError, match=r"images\.tsv"):
        selected_by(table)


def test_who_is_not_selected_is_refused(places: Places) -> None:
    with pytest.raises(InputError, match="no such participant is selected"):
        images_of(places, "sub-99")
