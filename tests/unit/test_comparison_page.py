"""The page of the comparison: verdict first, what is left out, self-contained, escaped, written whatever is missing."""

from __future__ import annotations

from itertools import chain
from pathlib import Path
from urllib.parse import unquote

import pytest
from comparison_rows import Rows, compared, published, run_row
from neurotier.core.tables import Row
from neurotier.pages.comparison import PAGE
from neurotier.pages.comparison.statistics import Comparison
from neurotier.pages.comparison.verdict import counts_text, judge
from neurotier.pages.kit.findings import MEANINGS
from page_reader import Reader, read

EVIL = "<script>alert(1)</script><img src=x onerror=alert(2)> a$b_1$ &amp; \\frac{1}{2} µ\"'" + "x" * 80


def page(tables: tuple[Rows, Rows, Rows], folder: Path, lacking: str = "") -> Reader:
    """Write the page and read it."""
    PAGE.render(Comparison(*tables, lacking=lacking), folder, None)
    return read(folder / "comparison.html")


@pytest.fixture(scope="module")
def tables() -> tuple[Rows, Rows, Rows]:
    each = compared({"tmpfs": 1.0, "slow": 4.0}, tool="bet"), published(12, 1)
    runs, jobs, traffic = (list(chain(*rows)) for rows in zip(*each, strict=True))
    runs[1] = runs[1] | {"valid": "invalid: swap was used"}
    runs[2] = runs[2] | {"oversubscribed": True, "limited_by": "too few participants"}
    return runs, jobs, traffic


@pytest.fixture(scope="module")
def written(tables: tuple[Rows, Rows, Rows], tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Reader]:
    """The folder of a page, and its content."""
    folder = tmp_path_factory.mktemp("a folder #1")
    return folder, page(tables, folder)


def test_verdict_then_a_figure_then_lists(tables: tuple[Rows, Rows, Rows], written: tuple[Path, Reader]) -> None:
    folder, reader = written
    data = Comparison(*tables)
    places = [reader.text.index(f"{family.headline}.") for family in judge(data)]
    assert places == sorted(places)
    assert len(places) == 4
    assert places[-1] < reader.text.index(f"{counts_text(data)}. Only valid runs") < reader.text.index("swap was used")
    assert all(f"{line}." in reader.text for family in judge(data) for line in family.reasons)
    html = (folder / "comparison.html").read_text()
    assert html.index('<div class="verdict') < html.index('<figure class="chart"') < html.index("<table")
    assert "Partial" not in reader.text
    assert "For a paper: participant jobs of bet" in reader.text
    assert " were run and timed with neurotier 0.1.0 (the neurotier authors, 2026)." in reader.text
    assert "(Holm, 1979, Scandinavian Journal of Statistics 6(2), 65-70)" in reader.text


def test_what_is_left_out_and_oversubscribed_is_said(written: tuple[Path, Reader], tmp_path: Path) -> None:
    text = written[1].text
    assert "11 runs compared, 1 left out" in text
    assert "campaign tmpfs-2-2 tmpfs 2 2 invalid: swap was used" in text
    assert "Oversubscribed: 1 run of 11." in text
    assert "oversubscribed too few participants" in text, "among the conditions"
    fine = page(published(6, 1), tmp_path).text
    assert "Oversubscribed:" not in fine
    words = ("valid", "makespan", "on its device", "sure", "not told apart", "oversubscribed")
    assert all(f"{word} {MEANINGS[word]}" in text for word in words)
    assert "Left out" not in fine
    assert "Why not as many" not in fine


def test_links_lead_somewhere_and_bytes_repeat(tables: tuple[Rows, Rows, Rows], written: tuple[Path, Reader]) -> None:
    folder, reader = written
    for _, address in reader.addresses:
        there = address[1:] in reader.ids if address.startswith("#") else (folder / unquote(address)).exists()
        assert there or address.startswith("data:image/"), address
    assert len(reader.ids) == len(set(reader.ids))
    before = {path: path.read_bytes() for path in folder.rglob("*.*")}
    page(tables, folder)
    assert {path: path.read_bytes() for path in folder.rglob("*.*")} == before, "equal data give equal bytes"


def test_names_are_escaped(tmp_path: Path) -> None:
    runs, jobs, traffic = compared({EVIL: 1.0, f"{EVIL}2": 2.0}, (2,), 1, 3, origin=EVIL, tool=EVIL)
    runs[0] |= {"limited_by": EVIL, "valid": f"invalid: {EVIL}", "logged_makespan_s": 1.0}
    reader = page((runs, jobs, traffic), tmp_path)
    assert reader.tags.count("script") == 1, "the page's own"
    assert reader.text.count("alert(1)") >= 5


@pytest.mark.parametrize(
    "run",
    [
        run_row("r", "tmpfs", None, mean_parallelism=None, peak_parallelism=0, participants=0),
        run_row("r", "tmpfs", 0.0, wall_sum_s=0.0, parallelism=None),
    ],
    ids=["no job", "no time"],
)
def test_the_edges_are_drawn(tmp_path: Path, run: Row) -> None:
    assert "tmpfs" in page(([run], [], []), tmp_path).text


def test_no_rows_and_one_run(tmp_path: Path) -> None:
    reader = page(([], [], []), tmp_path)
    assert "There is no run to compare." in reader.text
    assert reader.tags.count("h2") == 2, "methods, and what is not shown"
    spoilt = compared({"tmpfs": 1.0}, (2,), 1, 1, valid="invalid: swap was used")
    assert "None of 1 run can be compared." in page(spoilt, tmp_path).text
    assert "Conditions" in page(compared({"tmpfs": 1.0}, (2,), 1, 1), tmp_path).text
