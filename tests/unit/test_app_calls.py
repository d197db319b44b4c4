"""Calls of a BIDS App: by participant or session, again where it asks for that, and with its share of the job."""

from __future__ import annotations

import os
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from configured import settings_at
from container_images import Engine, make_tiny
from neurotier.analysis.app import call_app, merge_outputs
from neurotier.analysis.brains import Job, Share
from neurotier.containers.store import Cache, PlacedImage
from neurotier.core.errors import ToolError
from neurotier.core.places import Places
from neurotier.core.private import make_private, private_folder
from neurotier.core.settings import Settings
from neurotier.dataset.index import image_at
from neurotier.run.needs import Granted, Needs
from pool_jobs import image as image_of
from pool_jobs import write_index

APP = """echo "call $*"
case " $* " in
*\\ --fail\\ *) echo left >/out/left; echo left >/work/intermediate/left; exit 75;;
*\\ --once\\ *) [ -e /out/tried ] && exit 9; echo >/out/tried; exit 75;;
esac
ls -R /data
mkdir -p /out/sub-01
for folder in /data/sub-01/ses-*; do
    cp "$folder"/anat/* /out/sub-01
    echo "${folder##*/}" >>/out/sub-01.html
done
echo same >/out/shared.txt
[ -z "$CACHE_HOME" ] || cat "$CACHE_HOME"/template >/out/template
echo >"$CACHE_HOME/written" 2>/dev/null && echo yes >/out/written
exit 0
"""
"""A BIDS App that tells what it sees, and ends with the exit code that it is asked for."""


@pytest.fixture(scope="module")
def image(engine: Engine, tmp_path_factory: pytest.TempPathFactory) -> Path:
    return make_tiny(engine, tmp_path_factory.mktemp("app"), APP)


class Called:
    """A participant of two sessions on a work tier, and the app."""

    def __init__(self, engine: Engine, image: Path, folder: Path) -> None:
        self.placed = PlacedImage(engine.path, image, folder / "cache", 64 * "0", {})
        self.work, self.log = private_folder(folder) / "work" / "job", folder / "log"
        make_private(self.work)
        for session in ("1", "2"):
            anat = self.work / "in" / "sub-01" / f"ses-{session}" / "anat"
            anat.mkdir(parents=True)
            (anat / f"sub-01_ses-{session}_T1w.nii.gz").write_text(session)
        (self.work / "in" / "sub-01" / "sub-01_sessions.tsv").write_text("session_id\n")
        (self.work / "in" / "README").write_text("all\n")

    def call(self, **app: Any) -> list[dict[str, Any]]:
        """Call the app with such settings; the rows of its calls."""
        settings = settings_of(**app)
        names = ["sub-01_T1w.nii.gz", *(f"ses-{name}/anat/sub-01_ses-{name}_T1w.nii.gz" for name in "12")]
        files = [image for name in names if (image := image_at(f"sub-01/{name}", "", []))]
        job = Job("sub-01", "run", files, self.work, settings, "1", self.log, self.placed, share=Share(2, 3500))
        return call_app(job, self.work, self.placed).calls or []

    @property
    def made(self) -> dict[str, str]:
        """What was put out, by path."""
        files = (path for path in (self.work / "out").rglob("*") if path.is_file())
        return {path.relative_to(self.work / "out").as_posix(): path.read_text() for path in files}

    @property
    def lines(self) -> list[str]:
        return self.log.read_text().splitlines()


def settings_of(**app: Any) -> Settings:
    memory = {"path": "/dev/shm", "kind": "tmpfs"}
    return settings_at(in_containers=True, tiers={"memory": memory}, app={"image": "x.sif", "name": "tiny", **app})


@pytest.fixture
def called(engine: Engine, image: Path, tmp_path: Path) -> Called:
    return Called(engine, image, tmp_path)


def test_an_app_is_called_for_each_session_and_sees_no_other(called: Called) -> None:
    rows = called.call(level="session", session_option="--session-id", arguments=["--x={session}"])
    assert rows == [{"session": "1", "attempts": 1}, {"session": "2", "attempts": 1}]
    calls = [line for line in called.lines if line.startswith("call")]
    common = "call /data /out participant --participant-label 01"
    assert calls == [f"{common} --session-id {session} --x={session}" for session in "12"]
    seen = called.log.read_text().split("neurotier: session 2\n")
    assert ["ses-1" in part for part in seen] == [True, False]
    assert ["ses-2" in part for part in seen] == [False, True]
    assert all("sub-01_sessions.tsv" in part and "README" in part for part in seen)
    assert called.made == {
        "sub-01/sub-01_ses-1_T1w.nii.gz": "1",
        "sub-01/sub-01_ses-2_T1w.nii.gz": "2",
        "sub-01.html": "ses-1\n",
        "shared.txt": "same\n",
    }
    assert "neurotier: sessions differ in sub-01.html; the first was taken" in called.lines
    assert sorted(path.name for path in (called.work / "in" / "sub-01").iterdir()) == [
        *("ses-1", "ses-2", "sub-01_sessions.tsv")
    ], "what was staged is there again, for who meters it"
    assert not (called.work / "sessions").exists()


def test_an_exit_code_that_asks_for_it_has_the_app_tried_again_from_the_beginning(called: Called) -> None:
    with pytest.raises(
        ToolError, match=r"^tiny: the app ended with exit code 75 in the last of 3 attempts: "
    ) as raised:
        called.call(arguments=["--once"], retry_exit_codes=[75])
    assert raised.value.exit_code == ToolError.exit_code
    said = "exit code 75, which app.retry_exit_codes has"
    assert [line for line in called.lines if line.startswith("neurotier")] == [
        f"neurotier: attempt {number} of 3 ended with {said}: the next begins anew" for number in (1, 2)
    ]


@pytest.mark.parametrize(("codes", "attempts"), [([], 3), ([74], 3), ([75], 1)])
def test_other_exit_codes_are_not_tried_again(called: Called, codes: list[int], attempts: int) -> None:
    with pytest.raises(ToolError, match=r"^tiny: the app ended with exit code 75: "):
        called.call(arguments=["--fail"], retry_exit_codes=codes, attempts=attempts)
    assert len([line for line in called.lines if line.startswith("call")]) == 1


def test_an_app_reads_its_caches_and_cannot_write_to_them(called: Called, tmp_path: Path) -> None:
    (tmp_path / "template").write_text("brain\n")
    cache = Cache("flow", "elsewhere", 64 * "1", 1, 6)
    called.placed = replace(called.placed, caches={tmp_path: cache})
    called.call(caches={"flow": {"source": "elsewhere", "inside": "/flow", "variable": "CACHE_HOME"}})
    assert called.made["template"] == "brain\n"
    assert "written" not in called.made
    assert not (tmp_path / "written").exists()


@pytest.mark.parametrize(
    ("granted", "elsewhere", "share"),
    [
        (Granted(), False, Share(4, 8000)),
        (Granted(4, 8000, at_once=1), False, Share(4, 8000)),
        (Granted(2, 8000, at_once=1), False, Share(2, 8000)),
        (Granted(16, 32000, at_once=4), False, Share(4, 8000)),
        (Granted(8, 64000, at_once=1), False, Share(8, 64000)),
        (Granted(4, 32500, at_once=4), True, Share(1, 8000)),
        (Granted(1, 100, at_once=2), True, Share(1, 1)),
    ],
)
def test_what_the_app_is_told_is_what_the_job_has(granted: Granted, elsewhere: bool, share: Share) -> None:
    settings = settings_of(threads=4, memory_mb=8000)
    assert Needs(settings, Places.from_settings(settings), elsewhere).share_of(granted, 0) == share


@pytest.mark.parametrize(("slots", "at_once"), [(None, 4), (0, 1), (2, 2), (9, 4)])
def test_no_more_are_analysed_at_once_than_a_node_has_cores_for(slots: int | None, at_once: int) -> None:
    settings = settings_of(threads=4)
    settings = replace(settings, shares=replace(settings.shares, at_once=4))
    needs = Needs(settings, Places.from_settings(settings), elsewhere=True)
    assert needs.divided(slots, list("abcdef")).at_once == at_once


def test_what_lies_on_a_tier_that_is_memory_is_not_the_app_s(tmp_path: Path) -> None:
    settings = settings_of(threads=1, memory_mb=8000)
    places = replace(Places.from_settings(settings), results=tmp_path)
    settings = replace(settings, placement={**settings.placement, "work": "memory"})
    write_index(places, [image_of("01", 100_000_000), image_of("02", 1), image_of("03", 400_000_000)])
    everyone = ["sub-01", "sub-02", "sub-03"]
    share = Needs(settings, places, elsewhere=False).share_in_pool(Granted(2, 62_002, at_once=2), everyone)
    assert share == Share(1, (62_002 - 301 - 1201) // 2), "of the two largest, as was asked for"
    on_disk = replace(settings, placement={**settings.placement, "work": settings.placement["dataset"]})
    assert Needs(on_disk, places, elsewhere=False).share_in_pool(Granted(1, 8000), everyone) == Share(1, 8000)


def test_outputs_that_differ_in_kind(tmp_path: Path) -> None:
    one, two, target = (tmp_path / name for name in ("one", "two", "target"))
    one.mkdir()
    two.mkdir()
    os.mkfifo(two / "pipe")
    (one / "pipe").write_text("x")
    with pytest.raises(ToolError, match="two/pipe: is a FIFO"):
        merge_outputs([one, two], tmp_path / "refused")
    of_session = tmp_path / "ses-2" / "out"
    of_session.parent.mkdir()
    two.rename(of_session)
    with pytest.raises(ToolError, match=r"^ses-2/pipe: is a FIFO"):
        merge_outputs([one, of_session], tmp_path / "refused")
    of_session.rename(two)
    (two / "pipe").unlink()
    for folder, text in ((one, "a"), (two, "b")):
        (folder / "link").symlink_to("pipe")
        (folder / "text").write_text(text)
    (one / "kind").write_text("x")
    (two / "kind").symlink_to("text")
    assert merge_outputs([one, two], target) == ["kind", "text"]
    assert (target / "text").read_text() == "a"
