"""Figures of the comparison: numbers are the tables', titles say the finding, nothing breaks at the edges."""

from __future__ import annotations

import re
import statistics
from pathlib import Path
from typing import Any

import pandas as pd
import pytest
from comparison_data import Tables, campaign, published, together
from comparison_rows import run_row
from neurotier.core.quantities import seconds
from neurotier.core.tables import Row
from neurotier.pages.comparison import cpu_io_sums, differences, gantts, makespan, phases
from neurotier.pages.comparison.differences import MOST_PAIRS
from neurotier.pages.comparison.differences import chosen as chosen_pairs
from neurotier.pages.comparison.figures import FIGURES
from neurotier.pages.comparison.gantts import MOST_PANELS, MOST_RUNS, chosen, jobs_of
from neurotier.pages.comparison.names import PAPER_IO, Names
from neurotier.pages.comparison.panels import group_panels
from neurotier.pages.comparison.statistics import paired_differences
from neurotier.pages.kit.figures import draw_all, figures_of
from neurotier.pages.kit.findings import Finding
from neurotier.pages.kit.lanes import Lane, Panel
from neurotier.pages.kit.registry import FILES
from neurotier.run.compared import Compared
from neurotier.run.conditions import Condition
from page_reader import read_plain

TIERS = {"tmpfs": 1.0, "slow": 4.0}
ODD = "a$b_1$ <b>&amp; \\frac{1}{2} µ\"'" + "x" * 80


def findings(tables: Tables) -> dict[str, Finding]:
    """What every figure says."""
    return {figure.name: figure.finding for figure in figures_of("comparison", FIGURES, Compared(*tables))}


def draw(tables: Tables, folder: Path) -> None:
    """Draw every figure."""
    draw_all("comparison", FIGURES, Compared(*tables), folder)


def drawn(folder: Path) -> None:
    """Every figure is there in three files with a caption, and nothing else is."""
    for figure in FIGURES:
        for kind in ("svg", *FILES):
            path = folder / f"{figure.name}.{kind}"
            assert path.is_file(), path
            assert kind in ("tsv", "rst") or path.stat().st_size > 1000
    assert len(list(folder.iterdir())) == 4 * len(FIGURES)


@pytest.fixture(scope="module")
def small() -> Tables:
    return campaign(TIERS)


@pytest.fixture(scope="module")
def figures(small: Tables, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Figures of a small campaign."""
    folder = tmp_path_factory.mktemp("campaign")
    draw(small, folder)
    return folder


def test_every_figure_is_drawn_and_bytes_repeat(tmp_path: Path, small: Tables, figures: Path) -> None:
    draw(small, tmp_path)
    drawn(tmp_path)
    for path in figures.iterdir():
        assert path.read_bytes() == (tmp_path / path.name).read_bytes(), path.name
        assert path.stat().st_size > 0, "a campaign with containers has something to show in every figure"


@pytest.mark.parametrize(
    "tables",
    [
        ([], [], []),
        campaign({"tmpfs": 1.0}, (2,), 1, 1),
        campaign({"tmpfs": 1.0}, (2,), 1, 3, valid="invalid: swap was used"),
        ([run_row("r", "tmpfs", None, mean_parallelism=None, peak_parallelism=0, participants=0)], [], []),
        ([run_row("r", "tmpfs", 0.0, wall_sum_s=0.0, parallelism=None)], [], []),
        campaign({ODD: 1.0, f"{ODD}2": 2.0}, (2,), 1, 3, origin=ODD, tool=ODD),
    ],
    ids=["nothing", "one run", "no valid run", "no job", "no time", "odd names"],
)
def test_the_edges_are_drawn(tmp_path: Path, tables: Tables) -> None:
    draw(tables, tmp_path)
    drawn(tmp_path)
    for finding in findings(tables).values():
        assert finding.sentence


def test_what_is_not_shown_says_why() -> None:
    said = findings(published(6, 1))
    assert not said["accounts"].shown
    assert "published logs know CPU and wall time only" in said["accounts"].sentence
    assert not said["tier_bytes"].shown
    assert said["phases"].sentence == "Published logs know no phases, only whole jobs"
    assert {finding.sentence for name, finding in findings(([], [], [])).items() if name != "gantts"} == {
        "No valid run finished a participant job"
    }
    assert "No two placements" in findings(campaign({"tmpfs": 1.0}, (2,), 1, 2))["differences"].sentence


def test_as_many_jobs_as_were_published_stay_small(tmp_path: Path) -> None:
    tables = Compared(*published())
    gantts.draw(tables, tmp_path / "gantts")
    differences.draw(tables, tmp_path / "differences")
    assert len(read_plain(tmp_path / "gantts.tsv")) == 12 * 685
    for path in tmp_path.glob("*.svg"):
        assert path.stat().st_size < 3_000_000, path.name
    assert b"<image" in (tmp_path / "gantts.svg").read_bytes(), "thousands of bars are pixels"
    assert b"<image" not in (tmp_path / "differences.svg").read_bytes()


def test_bars_say_under_the_pointer_whose_they_are(figures: Path, small: Tables) -> None:
    """Participant, phase and seconds; matplotlib's links, of which the titles are made, are gone."""
    said = (figures / "gantts.svg").read_text()
    job = next(row for row in small[1] if row["phase"] == "compute")
    assert f"<title>{job['participant']}, compute: {seconds(job['wall_s'])}</title>" in said
    assert re.search(
        r"<title>slow, I/O as the paper counts it \(wall - CPU\): [\d.]+ s</title>",
        (figures / "cpu_io_sums.svg").read_text(),
    )
    assert re.search(r"<title>slow: slow, read: [\d.]+ MiB</title>", (figures / "tier_bytes.svg").read_text())
    for path in figures.glob("*.svg"):
        assert "hover:" not in path.read_text()
        assert "<a " not in path.read_text()


def two(slow: tuple[float, ...], fast: tuple[float, ...], **changes: Any) -> list[Row]:
    """Runs of two placements with these makespans, s."""
    return [
        run_row(f"{name}-{number}", name, makespan_s, repetition=number, **changes)
        for name, times in (("disk", slow), ("tmpfs", fast))
        for number, makespan_s in enumerate(times, 1)
    ]


def test_the_title_of_makespans_names_the_widest_gap() -> None:
    runs = two((200.0, 210.0, 190.0), (100.0, 90.0, 110.0))
    assert makespan.finding(Compared(runs)).sentence == (
        "Beside tmpfs, disk took 2.01 times as long (1.38 to 2.91, 3 repetitions)"
    )
    more = [*runs, *two((90.0,), (30.0,), parallelism=8)]
    assert (
        makespan.finding(Compared(more)).sentence
        == "disk and tmpfs, 8 at once, are not told apart with 1 repetition; at least 3 are needed"
    )
    spoilt = [run | {"valid": "invalid: swap was used"} if run["placement"] == "disk" else run for run in runs]
    assert makespan.finding(Compared(spoilt)).sentence == "Makespan with tmpfs: 100 s (90.0 to 110, 3 runs)"


def test_the_title_of_sums_names_the_extremes() -> None:
    runs = [
        run_row("1", "disk", 100.0, cpu_sum_s=100.0, io_sum_s=300.0),
        run_row("2", "tmpfs", 100.0, cpu_sum_s=100.0, io_sum_s=25.0),
    ]
    assert (
        cpu_io_sums.finding(Compared(runs)).sentence
        == f"{PAPER_IO} takes from 20 % of the summed time (tmpfs) to 75 % (disk)"
    )
    assert cpu_io_sums.finding(Compared(runs[:1])).sentence == f"{PAPER_IO} takes 75 % of the summed time"


def test_other_titles(small: Tables) -> None:
    said = {name: finding.sentence for name, finding in findings(small).items()}
    assert said["accounts"] == "85 % of summed time on a CPU; most of the rest is waiting for storage, 8 %"
    assert said["differences"].startswith("The median participant took ")
    assert " longer on slow than on tmpfs, " in said["differences"]
    assert said["differences"].endswith(
        "; their makespans are not told apart with 2 repetitions; at least 3 are needed"
    )
    assert "told apart" not in findings(campaign(TIERS, (2,), 3))["differences"].sentence
    assert "the longest of the other phases, stage_in, takes up to" in said["phases"]
    assert "103 MiB read, 45.78 MiB written" in said["tier_bytes"]
    assert "of the jobs asked for ran at a time" in said["gantts"]


def test_numbers_are_the_tables(figures: Path, small: Tables) -> None:
    lane = ["placement", "parallelism"]
    drawn = {
        name: pd.read_csv(figures / f"{name}.tsv", sep="\t", na_values="n/a").set_index(lane, drop=False)
        for name in ("makespan", "cpu_io_sums", "phases", "gantts", "tier_bytes")
    }
    runs, jobs = (pd.DataFrame(rows) for rows in small[:2])
    phases_of_run = jobs.merge(runs[[*lane, "run"]]).pivot_table("wall_s", [*lane, "run"], "phase", "sum")
    for figure, column, values in (
        ("makespan", "makespan_median_s", runs.groupby(lane).makespan_s.median()),
        ("makespan", "makespan_low_s", runs.groupby(lane).makespan_s.min()),
        ("cpu_io_sums", "io_sum_median_s", runs.groupby(lane).io_sum_s.median()),
        ("phases", "stage_in_median_s", phases_of_run.groupby(lane).stage_in.median()),
    ):
        assert drawn[figure][column].to_dict() == pytest.approx(values.to_dict(), abs=1e-5)
    first = drawn["makespan"].parallelism == 2
    assert (drawn["makespan"].speed_up_median_ratio.isna() == first).all()
    by_participant = pd.read_csv(figures / "differences.tsv", sep="\t")
    assert len(by_participant) == 2 * 12, "two parallelisms, twelve participants"
    pairs = by_participant.groupby("parallelism")
    assert pairs.difference_s.median().to_dict() == pytest.approx(pairs.median_s.first().to_dict(), abs=1e-5)
    assert len(drawn["gantts"]) == len(jobs)
    assert drawn["tier_bytes"].query("tier == 'results'").read_median_bytes.isna().all()


def test_names_say_no_more_than_tells_apart_and_what_is_cut_alike_stays_apart() -> None:
    cold, warm, memory = (
        Condition("campaign", "bet", cache, 4, placement)
        for cache, placement in (("cold", "disk"), ("warm", "disk"), ("memory", "tmpfs"))
    )
    theirs = Condition("published", "app", "as found", 25, "disk")
    names = Names([cold, warm, memory])
    assert [names.of(each) for each in (cold, warm)] == ["disk, cache cold", "disk, cache warm"]
    assert (Names([cold]).of(cold), Names([cold, theirs]).of(theirs)) == ("disk", "disk, 25 at once, published")
    alike = [Condition(f"{'a' * 30}{number}{'b' * 30}", "bet", "cold", 4, "disk") for number in (1, 2)]
    panels: list[Panel[str]] = group_panels(alike, lambda condition: [Lane(condition.placement, "")])
    assert [len(panel.lanes) for panel in panels] == [2, 2]


def test_of_many_runs_one_of_each_condition_is_drawn() -> None:
    runs, jobs, _ = campaign(TIERS, (2, 4), 7, 2)
    small_gantts = jobs_of(Compared(runs, jobs))
    assert len(small_gantts) > MOST_RUNS
    shown, note = chosen(small_gantts)
    assert note == "Of 28 runs, the one of middle makespan of each condition is drawn. "
    for drawn_run, _ in shown:
        name = drawn_run["run"].rpartition("-")[0]
        times = [run["makespan_s"] for run in runs if run["run"].rpartition("-")[0] == name]
        assert drawn_run["makespan_s"] == statistics.median(times)
    runs, jobs, _ = campaign({f"tier{number}": 1.0 for number in range(MOST_PANELS + 2)}, (2,), 1, 1)
    shown, note = chosen(jobs_of(Compared(runs, jobs)))
    assert len(shown) == MOST_PANELS
    assert note.endswith(f", of the first {MOST_PANELS} of {MOST_PANELS + 2} conditions. ")


def test_of_many_pairs_of_placements_those_that_differ_most_are_drawn() -> None:
    runs, jobs, _ = campaign({f"tier{number:02d}": 1.0 + number for number in range(12)}, (2,), 1, 6)
    every = paired_differences(runs, jobs)
    shown, note = chosen_pairs(every)
    assert len(every) == 66 > MOST_PAIRS
    assert len(shown) == MOST_PAIRS
    assert (shown[0].slower.placement, shown[0].faster.placement) == ("tier11", "tier00")
    assert note == " Of 66 pairs of placements, the 60 that differ most are drawn."
    assert chosen_pairs(every[:MOST_PAIRS]) == (every[:MOST_PAIRS], "")


def test_origins_do_not_mix(tmp_path: Path, small: Tables) -> None:
    same_names = campaign(TIERS, origin="another")
    phases.draw(Compared(*together(small, same_names)), tmp_path / "both")
    phases.draw(Compared(*small), tmp_path / "one")
    one = read_plain(tmp_path / "one.tsv")
    both = read_plain(tmp_path / "both.tsv")
    assert [row for row in both if row["origin"] == "campaign"] == one
    assert len(both) == 2 * len(one)
