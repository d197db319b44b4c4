"""Figures of the comparison: numbers are the tables', titles say the finding, nothing breaks at the edges."""

from __future__ import annotations

import statistics
from pathlib import Path
from typing import Any

import pandas as pd
import pytest
from comparison_data import Tables, campaign, published, together
from comparison_rows import run_row
from neurotier.core.tables import Row
from neurotier.pages.comparison import PAGE
from neurotier.pages.comparison.figures import (
    MOST_PAIRS,
    MOST_PANELS,
    MOST_RUNS,
    chosen,
    cpu_io_sums,
    differences,
    gantts,
    makespan,
    phases,
)
from neurotier.pages.comparison.names import PAPER_IO, Names
from neurotier.pages.kit.chart import Chart
from neurotier.run.compared import Compared
from neurotier.run.conditions import Condition
from page_reader import read_plain

TIERS = {"tmpfs": 1.0, "slow": 4.0}
ODD = "a$b_1$ <b>&amp; \\frac{1}{2} µ\"'" + "x" * 80


def charts(tables: Tables) -> dict[str, Chart]:
    """The chart of every figure."""
    return {figure.chart.__name__: figure.chart(Compared(*tables)) for figure in PAGE.figures}


def said(tables: Tables) -> dict[str, str]:
    """What every figure says."""
    return {name: chart.says for name, chart in charts(tables).items()}


@pytest.fixture(scope="module")
def small() -> Tables:
    return campaign(TIERS)


@pytest.fixture(scope="module")
def figures(small: Tables, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Figures of a small campaign."""
    folder = tmp_path_factory.mktemp("campaign")
    for name, chart in charts(small).items():
        chart.save(folder / name)
    return folder


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
    for name, chart in charts(tables).items():
        assert chart.says
        chart.save(tmp_path / name)


def test_what_is_not_shown_says_why() -> None:
    shown = charts(published(6, 1))
    assert not shown["accounts"].table
    assert "published logs know CPU and wall time only" in shown["accounts"].says
    assert not shown["tier_bytes"].table
    assert shown["phases"].says == "Published logs know no phases, only whole jobs"
    assert {says for name, says in said(([], [], [])).items() if name != "gantts"} == {
        "No valid run finished a participant job"
    }
    assert "No two placements" in said(campaign({"tmpfs": 1.0}, (2,), 1, 2))["differences"]


def test_as_many_jobs_as_were_published_stay_small(tmp_path: Path) -> None:
    tables = Compared(*published())
    for draw in (gantts, differences):
        draw(tables).save(tmp_path / draw.__name__)
    assert len(read_plain(tmp_path / "gantts.tsv")) == 12 * 685
    for path in tmp_path.glob("*.svg"):
        assert path.stat().st_size < 3_000_000, path.name


def two(slow: tuple[float, ...], fast: tuple[float, ...], **changes: Any) -> list[Row]:
    """Runs of two placements with these makespans, s."""
    return [
        run_row(f"{name}-{number}", name, makespan_s, repetition=number, **changes)
        for name, times in (("disk", slow), ("tmpfs", fast))
        for number, makespan_s in enumerate(times, 1)
    ]


def test_the_title_of_makespans_names_the_widest_gap() -> None:
    runs = two((200.0, 210.0, 190.0), (100.0, 90.0, 110.0))
    assert makespan(Compared(runs)).says == ("Beside tmpfs, disk took 2.01 times as long (1.38 to 2.91, 3 repetitions)")
    more = [*runs, *two((90.0,), (30.0,), parallelism=8)]
    assert (
        makespan(Compared(more)).says
        == "disk and tmpfs, 8 at once, are not told apart with 1 repetition; at least 3 are needed"
    )
    spoilt = [run | {"valid": "invalid: swap was used"} if run["placement"] == "disk" else run for run in runs]
    assert makespan(Compared(spoilt)).says == "Makespan with tmpfs: 100 s (90.0 to 110, 3 runs)"


def test_the_title_of_sums_names_the_extremes() -> None:
    runs = [
        run_row("1", "disk", 100.0, cpu_sum_s=100.0, io_sum_s=300.0),
        run_row("2", "tmpfs", 100.0, cpu_sum_s=100.0, io_sum_s=25.0),
    ]
    assert cpu_io_sums(Compared(runs)).says == f"{PAPER_IO} takes from 20 % of the summed time (tmpfs) to 75 % (disk)"
    assert cpu_io_sums(Compared(runs[:1])).says == f"{PAPER_IO} takes 75 % of the summed time"


def test_other_titles(small: Tables) -> None:
    text = said(small)
    assert text["accounts"] == "85 % of summed time on a CPU; most of the rest is waiting for storage, 8 %"
    assert text["differences"].startswith("The median participant took ")
    assert " longer on slow than on tmpfs, " in text["differences"]
    assert text["differences"].endswith(
        "; their makespans are not told apart with 2 repetitions; at least 3 are needed"
    )
    assert "told apart" not in said(campaign(TIERS, (2,), 3))["differences"]
    assert "the longest of the other phases, stage_in, takes up to" in text["phases"]
    assert "103 MiB read, 45.78 MiB written" in text["tier_bytes"]
    assert "of the jobs asked for ran at a time" in text["gantts"]


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


def test_names_say_no_more_than_tells_apart() -> None:
    cold, warm, memory = (
        Condition("campaign", "bet", cache, 4, placement)
        for cache, placement in (("cold", "disk"), ("warm", "disk"), ("memory", "tmpfs"))
    )
    theirs = Condition("published", "app", "as found", 25, "disk")
    names = Names([cold, warm, memory])
    assert [names.of(each) for each in (cold, warm)] == ["disk, cache cold", "disk, cache warm"]
    assert (Names([cold]).of(cold), Names([cold, theirs]).of(theirs)) == ("disk", "disk, 25 at once, published")


def test_of_many_runs_one_of_each_condition_is_drawn() -> None:
    runs, jobs, _ = campaign(TIERS, (2, 4), 7, 2)
    assert len(runs) > MOST_RUNS
    shown, note = chosen(runs)
    assert note == "Of 28 runs, the one of middle makespan of each condition is drawn. "
    for drawn in shown:
        name = drawn["run"].rpartition("-")[0]
        times = [run["makespan_s"] for run in runs if run["run"].rpartition("-")[0] == name]
        assert drawn["makespan_s"] == statistics.median(times)
    runs, jobs, _ = campaign({f"tier{number}": 1.0 for number in range(MOST_PANELS + 2)}, (2,), 1, 1)
    chart = gantts(Compared(runs, jobs))
    assert len({row["run"] for row in chart.table}) == MOST_PANELS
    assert f", of the first {MOST_PANELS} of {MOST_PANELS + 2} conditions. " in chart.note


def test_of_many_pairs_of_placements_those_that_differ_most_are_drawn() -> None:
    runs, jobs, _ = campaign({f"tier{number:02d}": 1.0 + number for number in range(12)}, (2,), 1, 6)
    chart = differences(Compared(runs, jobs))
    assert len({(row["slower"], row["faster"]) for row in chart.table}) == MOST_PAIRS
    assert (chart.table[0]["slower"], chart.table[0]["faster"]) == ("tier11", "tier00")
    assert chart.note.endswith(" Of 66 pairs of placements, the 60 that differ most are drawn.")


def test_origins_do_not_mix(small: Tables) -> None:
    same_names = campaign(TIERS, origin="another")
    one, both = phases(Compared(*small)).table, phases(Compared(*together(small, same_names))).table
    assert [row for row in both if row["origin"] == "campaign"] == one
    assert len(both) == 2 * len(one)
