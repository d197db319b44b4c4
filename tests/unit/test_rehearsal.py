"""Rehearsals: what is described is done, what was measured is described, and nonsense is refused in one line."""

from __future__ import annotations

import hashlib
import json
import multiprocessing
import os
import re
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path
from typing import Any

import pytest
from neurotier.analysis.rehearsal.description import Description, describe, parse, read_description
from neurotier.analysis.rehearsal.replay import replay
from neurotier.analysis.tools import Rehearsal
from neurotier.core.errors import InputError, SettingsError
from neurotier.core.places import file_of
from neurotier.meter.function import measure_function
from neurotier.meter.usage import Usage
from pool_jobs import analysed, prepared_results, rehearsal_of

SMALL = Description(
    files=((300, 1000), (2, 3_000_000), (40, 0)),
    folders=7,
    removed_files=100,
    read_bytes=30_000_000,
    read_files=500,
    written_bytes=20_000_000,
    cpu_s=0.6,
    threads=2,
    memory_bytes=150_000_000,
    results=((3, 500),),
)


def measured_replay(folder: Path) -> Usage:
    return measure_function(lambda: replay(SMALL, folder / "image", folder / "scratch", folder / "out" / "x"))[1]


def held(folder: Path) -> tuple[int, int]:
    files = [path for path in folder.rglob("*") if path.is_file()]
    return len(files), sum(path.stat().st_size for path in files)


def test_what_is_described_is_done(tmp_path: Path) -> None:
    for name in ("scratch", "out"):
        (tmp_path / name).mkdir()
    (tmp_path / "image").write_bytes(os.urandom(5000))
    # a fresh interpreter: this one holds what earlier tests left, in memory and in bytes read
    with ProcessPoolExecutor(1, multiprocessing.get_context("spawn")) as pool:
        usage = pool.submit(measured_replay, tmp_path).result()
    files, total = held(tmp_path / "scratch")
    assert files == SMALL.made_files - SMALL.removed_files
    assert 0 < total <= SMALL.made_bytes
    assert held(tmp_path / "out") == (3, 1500)
    (content,) = {file.read_bytes() for file in tmp_path.glob("out/x/*")}
    assert content == hashlib.shake_128(b"rehearsal").digest(500), "the same bytes on every tier"
    assert len(os.listdir(tmp_path / "scratch")) == 7
    assert usage.logical_read_bytes == pytest.approx(SMALL.read_bytes, rel=0.01)
    assert usage.logical_written_bytes == pytest.approx(SMALL.written_bytes, rel=0.01)
    assert SMALL.cpu_s <= usage.cpu_s < 3 * SMALL.cpu_s, "the work itself takes next to nothing"
    assert usage.max_rss_bytes == pytest.approx(SMALL.memory_bytes, rel=0.1)


def test_those_that_come_with_neurotier_can_be_read_and_scaled() -> None:
    for name in ("fmriprep", "noop", "tar-20000"):
        whole = read_description(name, 1.0)
        tiny = whole.scaled(1e-9)
        assert tiny.removed_files <= tiny.made_files
        assert (tiny.threads, tiny.memory_bytes) == (whole.threads, whole.memory_bytes)
    assert read_description("fmriprep", 1.0).made_files == 1_794_910, "as counted in fmriprep's issue 623"
    assert read_description("tar-20000", 1.0).scaled(0.5).made_files == pytest.approx(10_000, abs=10)


def test_room_is_known_beforehand(tmp_path: Path) -> None:
    def tool(scale: float, **figures: Any) -> Rehearsal:
        file = tmp_path / f"{len(os.listdir(tmp_path))}.yaml"
        file.write_text(rehearsal_of(**figures))
        return Rehearsal(str(file), scale)

    whole = tool(2.0, files=[[1000, 1]], folders=10, results=[[2, 5000]], memory_bytes=300_000_000, threads=3)
    assert whole.work_bytes(2, 0) == 2000 * 4096 + 20 * 4096 + 2 * 4 * 8192
    assert whole.work_files(images=2) == 2000 + 20 + 2 * 4
    assert (whole.memory_mb, whole.threads) == ((400, 0), 3)
    removed = tool(3.0, files=[[1000, 1]], removed_files=1000)
    assert removed.work_files(images=1) == 100 + 1, "of 3,000 files, made and removed in 30 portions, one is there"
    assert removed.content_key() != Rehearsal("noop", 3.0).content_key()
    few, mixed = [[50, 1 << 30]], [[1000, 1], [3, 100 << 30]]
    assert tool(1.0, files=few, removed_files=50).work_bytes(1, 0) == 50 << 30, "all are made before any is removed"
    assert tool(1.0, files=mixed, removed_files=500, cpu_s=10).work_bytes(1, 0) >= 300 << 30, "the largest may be left"


NONSENSE = {
    "a list": ("[1, 2]", "is not of type 'object'"),
    "no YAML": ("{", "is not YAML"),
    "two documents": (rehearsal_of() + "---\n" + rehearsal_of(), "is not YAML"),
    "a class": ("!!python/object/apply:os.system ['touch hit']", "is not YAML"),
    "a bomb": ("a: &a [x, x]\nb: &b [*a, *a]\nc: [*b, *b]", "references"),
    "deep": ("[" * 5000 + "]" * 5000, "is not YAML"),
    "less deep": ("[" * 200 + "]" * 200, "(top level)"),
    "half": (rehearsal_of().replace("cpu_s", "cpu_seconds"), "unknown key"),
    "not a number": (rehearsal_of(cpu_s=float("nan")), "not a number of seconds"),
    "endless": (rehearsal_of(cpu_s=float("inf")), "maximum"),
    "digits": (rehearsal_of(read_bytes=7).replace("value: 7", f"value: {'9' * 5000}"), "is not YAML"),
    "no thread": (rehearsal_of(threads=0), "minimum"),
    "more removed than made": (rehearsal_of(removed_files=1), "more than the 0 files"),
}


@pytest.mark.parametrize(("text", "said"), NONSENSE.values(), ids=NONSENSE)
def test_nonsense_is_refused_in_one_line(text: str, said: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    with pytest.raises(SettingsError, match=rf"\A.*{re.escape(said)}.*\Z") as caught:
        parse(text, "the file")
    assert len(str(caught.value)) < 500
    assert not (tmp_path / "hit").exists()


@pytest.mark.parametrize(
    ("content", "said"),
    [
        ("", "has no line"),
        ("nonsense", "is not JSON"),
        ("[" * 100_000, "is not JSON"),
        ("[1]", "is not a record"),
        ('{"phases": []}', "has no phase 'compute'"),
        ('{"phases": [{"phase": "compute", "traffic": []}]}', "how many files"),
        ('{"phase": "tar", "tiers": []}', "--tier NAME=FOLDER"),
        ('{"phase": "tar", "tiers": [{"traffic_source": "growth", "written_files": 3}]}', "how many files"),
        ('{"phase": "tar", "tiers": [{"traffic_source": "growth", "made_files": "3"}]}', "is not a record"),
    ],
)
def test_what_is_no_record_is_refused_in_one_line(content: str, said: str, tmp_path: Path) -> None:
    file = tmp_path / "record"
    file.write_text(content)
    with pytest.raises(InputError, match=rf"\A.*{re.escape(said)}.*\Z"):
        describe(file, None)


def test_results_are_published_and_what_is_wrong_fails_the_job_in_one_line(tmp_path: Path) -> None:
    file = tmp_path / "own.yaml"
    file.write_text(rehearsal_of(files=[[10, 10]], results=[[3, 1000]], written_bytes=3100))
    results = prepared_results(
        tmp_path / "job", ["01"], tool={"name": "rehearsal", "rehearsal": {"profile": str(file)}}
    )
    assert analysed(results, "01").returncode == 0
    record_file = file_of(results / "profile" / "records", "sub-01")
    record = json.loads(record_file.read_text())
    assert {size for size, _ in record["derivatives"].values()} == {1000}
    again = parse(describe(record_file, "compute"), "again")
    assert (again.made_files, again.results) == (10, ((3, 1000),))
    assert again.made_bytes == 100
    assert 3100 <= again.written_bytes < 4000, "and a log of its own"
    (compute,) = [phase for phase in record["phases"] if phase["phase"] == "compute"]
    assert 0 < again.cpu_s < compute["cpu_s"], "less what removing takes"
    assert [(flow["made_files"], flow["left_files"]) for flow in compute["traffic"]] == [(13, 13)]
    file.write_text("{")
    record_file.unlink()
    failed = analysed(results, "01")
    assert failed.returncode == SettingsError.exit_code
    assert failed.stderr.count("\n") == 1
    assert "own.yaml" in failed.stderr
    assert not record_file.exists()
