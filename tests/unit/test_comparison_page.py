"""The page of the comparison: verdict first, what is left out, self-contained, escaped, written whatever is missing."""

from __future__ import annotations

import re
from pathlib import Path
from urllib.parse import unquote

import pytest
from comparison_data import Tables, campaign, published, together
from neurotier.core.files import write_text
from neurotier.core.quantities import seconds
from neurotier.pages.comparison.figures import FIGURES
from neurotier.pages.comparison.page import write_page
from neurotier.pages.comparison.reasons import causes_text, signed
from neurotier.pages.comparison.verdict import judge
from neurotier.pages.kit.figures import figures_of
from neurotier.run.compared import Compared
from page_reader import Reader

EVIL = "<script>alert(1)</script><img src=x onerror=alert(2)>"


def page(tables: Tables, folder: Path, lacking: str = "") -> Reader:
    """Write the page and read it."""
    write_page(Compared(*tables), folder / "figures", folder / "comparison.html", lacking)
    reader = Reader()
    reader.feed((folder / "comparison.html").read_text())
    assert not reader.open
    return reader


def pictures(folder: Path) -> None:
    """Files where figures are; the page does not look into them."""
    for figure in FIGURES:
        for kind in ("svg", "png", "tsv"):
            write_text(folder / "figures" / f"{figure.name}.{kind}", "<svg xmlns='http://www.w3.org/2000/svg'/>")


@pytest.fixture(scope="module")
def tables() -> Tables:
    runs, jobs, traffic = together(campaign({"tmpfs": 1.0, "slow": 4.0}), published(12, 1))
    runs[1] = runs[1] | {"valid": "invalid: swap was used"}
    runs[2] = runs[2] | {"oversubscribed": True, "limited_by": "too few participants"}
    return runs, jobs, traffic


@pytest.fixture(scope="module")
def drawn(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("a folder #1")
    pictures(folder)
    return folder


def test_verdict_then_a_figure_then_lists(tables: Tables, drawn: Path) -> None:
    text = page(tables, drawn).text
    verdict = judge(tables[0], tables[1])
    places = [text.index(f"{family.headline}.") for family in verdict.families]
    assert places == sorted(places)
    assert len(places) == 4
    assert places[-1] < text.index(f"{verdict.counts}. Only valid runs") < text.index("Left out: 1 run")
    assert all(f"{line}." in text for family in verdict.families for line in family.reasons)
    html = (drawn / "comparison.html").read_text()
    first = html.index('<figure class="chart"')
    assert html.index('<div class="verdict') < first < min(html.index(tag) for tag in ("<table", "<ul", "<li"))
    assert "Partial" not in text
    partial = page(tables, drawn, "1 of 4 runs of the campaign are there").text
    assert partial.index("Partial: 1 of 4 runs of the campaign are there.") < partial.index("makespan")


def test_by_how_much_is_a_row_for_each_placement(tables: Tables, tmp_path: Path) -> None:
    text = page(tables, tmp_path).text
    for family in judge(tables[0], tables[1]).families:
        assert text.count(family.name) >= 2, "above its verdict and its rows"
        for one in family.placements[1:]:
            assert one.contrast is not None
            assert one.pair is not None
            assert f"{one.condition.placement} {seconds(one.makespan.median)} " in text
            low, high = one.contrast.ends or (0.0, 0.0)
            interval = f" {low:.2f} to {high:.2f}" if one.contrast.ends else ""
            more = f"{'+' if one.pair.slower == one.condition else '-'}{seconds(one.pair.median_s)}"
            assert f" {one.contrast.ratio:.2f}{interval} {more} 12 participants " in text
            assert causes_text(one.longer) in text
            assert all(signed(cause, more_s) in text for cause, more_s in one.longer.items() if more_s)


def test_equal_tiers_are_not_told_apart_and_two_repetitions_tell_nothing_apart(tmp_path: Path) -> None:
    for repetitions, needed in ((2, "at least 3 are needed"), (3, "10 % needs about 17"), (5, "10 % needs about 11")):
        text = page(campaign({"one": 1.0, "other": 1.0, "third": 1.0}, (2,), repetitions), tmp_path).text
        assert f"not told apart with {repetitions} repetitions; {needed}" in text
        assert " had the shortest makespan, " in text
        assert text.count("not sure not told apart") == 2, "in the table"
    twice = page(campaign({"one": 1.0, "slow": 9.0}, (2,), 2), tmp_path).text
    assert "is fastest" not in twice
    assert "not sure against slow: not told apart with 2 repetitions; at least 3 are needed" in twice
    thrice = page(campaign({"one": 1.0, "slow": 9.0}, (2,), 3), tmp_path).text
    assert re.search(
        r"one is fastest: makespan [\d.]+ s; slow took \d\.\d+ times as long \(\d.*, 3 repetitions\)\.", thrice
    )


def test_a_sentence_that_holds_for_all_is_said_once(tmp_path: Path) -> None:
    runs, jobs, traffic = campaign({"tmpfs": 1.0, "slow": 4.0})
    text = page((runs, jobs, traffic), tmp_path).text
    assert text.count("Whether the inputs were in the page cache is not known of slow, tmpfs") == 1


def test_what_is_left_out_and_oversubscribed_is_said(tables: Tables, tmp_path: Path) -> None:
    text = page(tables, tmp_path).text
    assert "11 runs compared, 1 left out" in text
    assert "campaign tmpfs-2-2 tmpfs 2 2 invalid: swap was used" in text
    assert "1 run of 11 had more jobs at once than the machine has CPUs (oversubscribed)" in text
    assert "tmpfs oversubscribed" in text
    assert "too few participants" in text
    fine = page(published(6, 1), tmp_path).text
    assert "oversubscribed" not in fine
    assert "Left out" not in fine
    assert "Why not as many" not in fine


def test_conditions_and_published_makespans(tables: Tables, tmp_path: Path) -> None:
    text = page(tables, tmp_path).text
    run = next(run for run in tables[0] if run["origin"] == "published")
    times = f"{seconds(run['makespan_s'] - 7)} {seconds(run['makespan_s'])} 7.00 s"
    assert f"{run['run']} {run['placement']} {run['parallelism']} 12 {times}" in text
    assert "campaign: bet, page cache cold" in text
    assert "published: bids-app-example, page cache as found" in text
    assert "Published makespans" not in page(campaign({"tmpfs": 1.0}, (2,), 1, 1), tmp_path).text


def test_figures_are_there_or_why_they_are_not(tables: Tables, drawn: Path, tmp_path: Path) -> None:
    reader = page(tables, drawn)
    for figure in figures_of("comparison", FIGURES, Compared(*tables)):
        assert figure.finding.shown
        assert any(f": {figure.finding.sentence}." in alt for alt in reader.alts), figure.name
        assert ("href", f"figures/{figure.name}.tsv") in reader.addresses
    assert "The same participant with two placements" in reader.text
    only_published = published(4, 1)
    pictures(tmp_path)
    reader = page(only_published, tmp_path)
    assert "Not drawn: no run has an account of its wall time" in reader.text
    assert not any("figures/accounts" in address for _, address in reader.addresses), "no box that is empty"


def test_links_lead_somewhere_and_bytes_repeat(tables: Tables, drawn: Path) -> None:
    (drawn / "compared_runs.tsv").write_text("")
    reader = page(tables, drawn)
    assert "compared_runs.tsv" in [address for _, address in reader.addresses]
    for _, address in reader.addresses:
        there = address[1:] in reader.ids if address.startswith("#") else (drawn / unquote(address)).exists()
        assert there or address.startswith("data:image/"), address
    assert len(reader.ids) == len(set(reader.ids))
    text = (drawn / "comparison.html").read_text()
    page(tables, drawn)
    assert (drawn / "comparison.html").read_text() == text, "equal data give equal bytes"


def test_names_are_escaped(tmp_path: Path) -> None:
    runs, jobs, traffic = campaign({EVIL: 1.0, f"{EVIL}2": 2.0}, (2,), 1, 3, origin=EVIL, tool=EVIL)
    runs[0] |= {"limited_by": EVIL, "valid": f"invalid: {EVIL}", "logged_makespan_s": 1.0}
    reader = page((runs, jobs, traffic), tmp_path)
    assert reader.tags.count("script") == 1, "the page's own"
    assert reader.text.count("alert(1)") >= 5


def test_no_rows_and_one_run(tmp_path: Path) -> None:
    text = page(([], [], []), tmp_path).text
    assert "There is no run to compare." in text
    assert "No run is valid and has a makespan." in text
    spoilt = campaign({"tmpfs": 1.0}, (2,), 1, 1, valid="invalid: swap was used")
    assert "None of 1 run can be compared." in page(spoilt, tmp_path).text
    assert "Conditions" in page(campaign({"tmpfs": 1.0}, (2,), 1, 1), tmp_path).text


def test_many_conditions_stay_short(tmp_path: Path) -> None:
    text = page(campaign({"tmpfs": 1.0, "slow": 2.0}, tuple(range(1, 28)), 1, 2), tmp_path).text
    assert "4 more in compared_runs.tsv" in text
