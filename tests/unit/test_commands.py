"""What users ask beside a run: pages."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from neurotier.__main__ import CANNOT_READ, main
from neurotier.core.errors import SettingsError
from neurotier.core.files import write_text
from neurotier.run.commands import open_page, set_up_folder


@pytest.fixture
def results(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Results with two pages, the report being the older one."""
    monkeypatch.delenv("DISPLAY", raising=False)
    monkeypatch.delenv("WAYLAND_DISPLAY", raising=False)
    for age_s, name in enumerate(("comparison", "report")):
        (tmp_path / f"{name}.html").write_text(name)
        os.utime(tmp_path / f"{name}.html", (1e9 - age_s, 1e9 - age_s))
    return tmp_path


def test_the_latest_page_is_shown_or_the_one_asked_for(results: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (results / "planted.html").symlink_to("/etc/passwd")
    os.mkfifo(results / "pipe.html")
    assert open_page(results, "") == 0
    assert open_page(results, "report") == 0
    assert capsys.readouterr().out.split() == [str(results / "comparison.html"), str(results / "report.html")]


@pytest.mark.parametrize(
    ("folder", "name", "said"),
    [
        ("", "nope", "it has comparison, report"),
        ("", "../report", "it has comparison"),
        ("empty", "", "has no page"),
        ("gone", "", "is not a folder"),
    ],
)
def test_a_page_that_is_not_there_is_said(results: Path, folder: str, name: str, said: str) -> None:
    (results / "empty").mkdir()
    with pytest.raises(SettingsError, match=said):
        open_page(results / folder, name)


def test_a_folder_is_not_replaced_by_a_description(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    write_text(kept := tmp_path / "folder/kept", "")
    record = tmp_path / "record.json"
    main(["meter", "-q", "--tier", f"work={tmp_path}", "--record", str(record), "--", "true"])
    assert main(["describe", str(record), "--output", str(kept.parent)]) == CANNOT_READ
    assert f"{kept.parent}: Is a directory" in capsys.readouterr().err
    assert kept.exists()
    for written in (kept, tmp_path / "new" / "description.yaml"):
        assert main(["describe", str(record), "--output", str(written)]) == 0
        assert written.read_text()


def test_nothing_is_laid_out_in_a_dataset(tmp_path: Path) -> None:
    (tmp_path / "dataset_description.json").touch()
    with pytest.raises(SettingsError, match="is a BIDS dataset, which is only read"):
        set_up_folder(tmp_path)
    assert len(list(tmp_path.iterdir())) == 1
