"""Pages in a browser, as wide as a telephone: nothing scrolls sideways, dark and light, long tables, order of rows."""

from __future__ import annotations

import html
import json
import re
import subprocess
from pathlib import Path
from typing import Any

import pytest
from conftest import need
from neurotier.core.tables import read_table, write_table
from report_data import make_results, read_report

LOOK = """
const page = window.frames[0].document, root = page.documentElement;
const columns = (name) => [...page.querySelectorAll("table")].flatMap((table) => {
  const place = [...table.tHead.rows[0].cells].findIndex((cell) => cell.textContent === name);
  return place < 0 ? [] : [() => [...table.tBodies[0].rows].map((row) => row.cells[place].textContent)];
});
const click = (name) => [...page.querySelectorAll("th button")].find((head) => head.textContent === name).click();
const box = page.querySelector("input[type=search]");
const shown = () => [...box.nextElementSibling.querySelectorAll("tbody tr")].filter((row) => !row.hidden).length;
"""
"""What there is to look with, for the expressions that are evaluated."""


def chromium(folder: Path, *options: str) -> str:
    """What the browser prints."""
    usual = ("--headless", "--no-sandbox", "--disable-gpu", f"--user-data-dir={folder / 'browser'}")
    command = [need("chromium", "Debian's chromium"), *usual, *options]
    return subprocess.run(command, capture_output=True, text=True, check=True, timeout=120).stdout


def seen(page: Path, folder: Path, look: str, scheme: str = "light") -> Any:
    """What an expression gives in a page that is 400 px wide, in a light or dark scheme."""
    wrapper = folder / "wrapper.html"
    found = f"<script>onload = () => {{ {LOOK} document.body.textContent = JSON.stringify({look}) }}</script>"
    wrapper.write_text(f'<body><iframe width="400" height="800" src="{page.as_uri()}"></iframe>{found}</body>')
    files = ("--allow-file-access-from-files", f"--blink-settings=preferredColorScheme={int(scheme == 'light')}")
    dumped = chromium(folder, *files, "--virtual-time-budget=3000", "--dump-dom", wrapper.as_uri())
    text = re.search("<body>(.*)</body>", dumped)
    assert text, dumped
    return json.loads(html.unescape(text[1]))


@pytest.fixture(scope="module")
def report(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The report of a run on a cluster with 60 participants; of one job the wait in the queue is not known."""
    places, settings = make_results(tmp_path_factory.mktemp("report"), 60, failed=2, slots=8, nodes=2)
    jobs = read_table(places.profile / "jobs.tsv", "jobs")
    write_table(places.profile / "jobs.tsv", "jobs", [jobs[0] | {"queue_wait_s": None}, *jobs[1:]])
    read_report(places, settings)
    return places.results / "report.html"


def test_a_report_fits_a_telephone_and_its_long_table_is_searched(report: Path, tmp_path: Path) -> None:
    tables = '[...page.querySelectorAll("table")].map((table) => table.tBodies[0].rows.length)'
    boxes = '[...page.querySelectorAll("input[type=search]")].length'
    search = 'box.value = "SUB-0025001 bnu_1", box.dispatchEvent(new Event("input"))'
    look = f"[root.scrollWidth, root.clientWidth, {tables}, {boxes}, shown(), {search}, shown()]"
    width, within, rows, filters, before, *_, after = seen(report, tmp_path, look)
    assert width == within <= 400, "nothing scrolls sideways but tables and figures in their boxes"
    assert filters == sum(count > 30 for count in rows) == 1
    assert (before, after) == (58, 1)


def test_dark_and_light(report: Path, tmp_path: Path) -> None:
    paper = "getComputedStyle(page.body).backgroundColor"
    dark, light = (seen(report, tmp_path, paper, scheme) for scheme in ("dark", "light"))
    assert (dark, light) == ("rgb(24, 24, 24)", "rgb(255, 255, 255)")


def test_unknown_cells_are_sorted_last(report: Path, tmp_path: Path) -> None:
    """Whichever way the order is turned."""
    waits = "columns('Queue wait')[0]()"
    falling, rising = seen(report, tmp_path, f"[click('Queue wait'), {waits}, click('Queue wait'), {waits}]")[1::2]
    known_s = [float(text.removesuffix("\u00a0s")) for text in rising[:-1]]
    assert known_s == [float(wait_s) for wait_s in range(6, 20)], "of 15 jobs, one is not known"
    assert rising[-1] == ""
    assert falling == [*reversed(rising[:-1]), ""]


def test_print_keeps_what_is_folded(report: Path, tmp_path: Path) -> None:
    pdf = tmp_path / "report.pdf"
    chromium(tmp_path, f"--print-to-pdf={pdf}", report.as_uri())
    said = subprocess.check_output([need("pdftotext", "Debian's poppler-utils"), pdf, "-"], text=True)
    assert "image is empty (0 bytes)" in said, "of what was skipped"
    assert "Show rows with" not in said
