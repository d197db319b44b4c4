"""What is placed is read once before it is used, and not where that would be measured or would warm the page cache."""

from __future__ import annotations

import os
from dataclasses import asdict, replace
from pathlib import Path

import pytest
from neurotier.core.files import write_json
from neurotier.core.places import Places
from neurotier.core.processes import CAMPAIGN, RUN
from neurotier.core.settings import ContainerSettings, Settings, ToolSettings
from neurotier.run.jobs import image_store, load_settings, placed_image
from pool_jobs import prepared_results


@pytest.fixture
def settings(tiny_image: Path, tmp_path: Path) -> Settings:
    """Settings of results whose tool is in an image, which has been obtained."""
    on_host = load_settings(prepared_results(tmp_path, ["01"]))
    containers = ContainerSettings("sif", network=False, environment={}, binds=[], build_arguments={})
    tool = ToolSettings("noop", str(tiny_image), {})
    made = replace(on_host, containers=containers, tool=tool, in_containers=True)
    places = Places.from_settings(made)
    image = image_store(made, places, tmp_path / "log", print).obtain(str(tiny_image), "tool.noop.image", placing=False)
    write_json(places.index / "image.json", {key: value for key, value in asdict(image).items() if key != "form"})
    return made


def reads(settings: Settings, places: Places) -> bool:
    """Whether a job that is about to use the placed image reads it first: told by its access time."""
    (placed,) = Path(settings.tiers["disk"].path).glob("neurotier-*/images/*.sif")
    os.utime(placed, (0, placed.stat().st_mtime))
    placed_image(settings, places, places.results / "log")
    return placed.stat().st_atime > 0


def test_the_two_starts_of_a_campaigns_run_verify_once(settings: Settings, monkeypatch: pytest.MonkeyPatch) -> None:
    """Between them the page cache is emptied, and what is read then is not cold any more."""
    places = Places.from_settings(settings)
    monkeypatch.setenv(CAMPAIGN, "outer")
    monkeypatch.setenv(RUN, "ready")
    placed_image(settings, places, places.results / "log")
    monkeypatch.setenv(RUN, "analysis")
    assert not reads(settings, places)
    monkeypatch.delenv(CAMPAIGN)
    assert reads(settings, places), "a run of its own verifies for itself"
