"""User name and token of a source are in the settings, and in git's configuration of the clone, and nowhere else."""

from __future__ import annotations

import sys
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

import pytest
from configured import settings_at
from neurotier.analysis.derivatives import write_description
from neurotier.core.errors import SourceError, all_without_credentials, without_credentials
from neurotier.core.files import read_json, write_json, write_text
from neurotier.core.places import Places, dataset_name
from neurotier.core.private import private_folder
from neurotier.dataset.commands import message_of
from neurotier.dataset.source import named_source, obtain, site_facts
from neurotier.pages.report import PAGE
from neurotier.run.head import command_line
from neurotier.run.jobs import reporting, settings_without_credentials
from report_data import RUN, make_results
from support import committed, git

WORD = "planted"
SOURCE = f"https://me:{WORD}@gitlab.invalid/lab/ds.git"
SHOWN = "https://gitlab.invalid/lab/ds.git"


@pytest.mark.parametrize(
    ("given", "left"),
    [
        (SOURCE, SHOWN),
        ("HTTPS://planted@x.org", "HTTPS://x.org"),
        ("ria+https://me:pl@nted@x.org/store#~ds", "ria+https://x.org/store#~ds"),
        ("ssh://me:planted@x.org/a", "ssh://me@x.org/a"),
        (f"[('{SOURCE}', 'fatal')] mail me@x.org", f"[('{SHOWN}', 'fatal')] mail me@x.org"),
        ("https://x.org/a@b", "https://x.org/a@b"),
        ("git@x.org:a/b", "git@x.org:a/b"),
        ("///corr", "///corr"),
    ],
)
def test_addresses_lose_who_asks_and_nothing_else(given: str, left: str) -> None:
    assert without_credentials(given) == left
    assert all_without_credentials(["\n" + given]) == ["\n" + left]


def test_a_site_is_published_without_them(tmp_path: Path) -> None:
    write_text(tmp_path / ".datalad/config", '[datalad "dataset"]\n id = x\n')
    folder = committed(tmp_path)
    git(folder, "config", "remote.origin.url", f"{SOURCE}/NYU/.git")
    facts = site_facts(folder, SOURCE, "NYU")
    assert (facts["url"], site_facts(folder, SOURCE, "")["url"]) == (f"{SHOWN}/NYU", SHOWN)
    write_description(tmp_path, "NYU", facts, "bet", "6.0", {}, "Brain extraction")
    assert WORD not in (tmp_path / "dataset_description.json").read_text()


def test_a_source_that_cannot_be_cloned_is_named_without_them(tmp_path: Path) -> None:
    source, said = f"http://me:{WORD}@127.0.0.1:1/ds", list[str]()  # nobody listens there
    settings = settings_at(dataset={"get_attempts": 2, "get_backoff_s": 0.1}).dataset
    with pytest.raises(SourceError, match=r"dataset\.source 'http://127\.0\.0\.1:1/ds'") as raised:
        obtain(settings, source, private_folder(tmp_path), said.append)
    assert said
    assert WORD not in f"{said} {raised.value.args} {raised.value}"


def test_faults_and_what_datalad_says_are_logged_without_them(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    places, log = Places.from_settings(settings_at(tmp_path)), tmp_path / "log"
    with reporting(places, ["sub-01"], "get_images", log):
        raise ValueError(f"cannot parse {SOURCE}")
    written = log.read_text() + places.failure("sub-01").read_text() + capsys.readouterr().err
    assert SHOWN in written
    assert WORD not in written
    assert message_of([{"message": ("no access to %s", SOURCE)}], "") == f"no access to {SHOWN}"


def test_the_rule_and_the_clone_are_named_without_them() -> None:
    assert WORD not in named_source(SOURCE)
    assert named_source(SHOWN) == SHOWN
    assert named_source(SOURCE) != named_source(SOURCE.replace(WORD, "renewed"))
    assert WORD not in dataset_name(f"https://me:{WORD}@x.org", None)


def test_a_run_is_noted_without_them(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    settings = settings_at(tmp_path)
    settings = replace(settings, dataset=replace(settings.dataset, source=SOURCE))
    assert settings_without_credentials(settings)["dataset"] == asdict(replace(settings.dataset, source=SHOWN))
    monkeypatch.setattr(sys, "argv", ["snakemake", "--config", f"dataset={{source: {SOURCE}}}"])
    assert command_line() == ["snakemake", "--config", f"dataset={{source: {SHOWN}}}"]


def test_a_page_shows_no_token_whatever_was_noted(tmp_path: Path) -> None:
    places, settings = make_results(tmp_path, 2)
    settings = replace(settings, dataset=replace(settings.dataset, source=SOURCE))
    file = places.runs / f"{RUN}.json"
    write_json(file, read_json(file) | {"settings": settings.to_json(), "command_line": ["snakemake", SOURCE]})
    known: dict[str, Any] = {"source": SOURCE, "path": "/x", "kind": "datalad"}
    write_json(places.index / "dataset.json", known | {"sites": {"NYU": {"url": f"{SOURCE}/NYU", "version": "1"}}})
    PAGE.write(places, settings)
    page = (places.results / "report.html").read_text()
    assert page.count(SHOWN) == 6  # source, configuration, command; title, heading, methods
    assert WORD not in page
