"""Figures of the comparison: numbers are the tables', titles say the finding, nothing breaks at the edges."""

from __future__ import annotations

from pathlib import Path

import pandas as pd
import pytest
from comparison_rows import Rows, compared, published, repeated
from neurotier.pages.comparison import PAGE
from neurotier.pages.comparison.figures import differences, makespan, wall_time
from neurotier.pages.comparison.statistics import Comparison
from neurotier.pages.kit.chart import Chart
from neurotier.run.compared import Condition
from page_reader import read_plain

CONDITION = ("origin", "tool", "cache", "parallelism", "placement")
TIERS = {"tmpfs": 1.0, "slow": 4.0}


def charts(tables: tuple[Rows, Rows, Rows]) -> dict[str, Chart]:
    """The chart of every figure."""
    return {figure.chart.__name__: figure.chart(Comparison(*tables)) for figure in PAGE.figures}


@pytest.fixture(scope="module")
def small() -> tuple[Rows, Rows, Rows]:
    return compared(TIERS)


@pytest.fixture(scope="module")
def figures(small: tuple[Rows, Rows, Rows], tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Figures of a small campaign."""
    folder = tmp_path_factory.mktemp("campaign")
    for name, chart in charts(small).items():
        chart.save(folder / name)
    return folder


def test_as_many_jobs_as_were_published_stay_small(tmp_path: Path) -> None:
    differences(Comparison(*published(685, 3))).save(tmp_path / "differences")
    assert len(read_plain(tmp_path / "differences.tsv")) == 2 * 685
    for path in tmp_path.glob("*.svg"):
        assert path.stat().st_size < 3_000_000, path.name


def test_the_title_of_makespans_names_the_shortest() -> None:
    runs = repeated({"disk": (200.0, 210.0, 190.0), "tmpfs": (100.0, 90.0, 110.0)})
    shortest = "tmpfs, 2 at once, cache cold, brainextractor: 100 s (90.0 to 110, 3 runs)"
    assert makespan(Comparison(runs)).says == f"Makespan is shortest with {shortest}"
    spoilt = [run | {"valid": "invalid: swap was used"} if run["placement"] == "disk" else run for run in runs]
    assert makespan(Comparison(spoilt)).says == f"Makespan with {shortest}"


def test_wall_time_is_divided_by_what_is_known() -> None:
    """By causes where the runs have an account, else into CPU time and I/O as the paper counts it."""
    own, other = compared(TIERS, (2,), 1)[0], published(3, 1)[0]
    for row in wall_time(Comparison(own + other)).table:
        names = ("account_user", "io") if row["origin"] == "published" else ("io", "account_user")
        unknown, known = (f"{name}_s_median_s" for name in names)
        (run,) = [one for one in own + other if Condition.of(one) == Condition(*(row[name] for name in CONDITION))]
        assert row[unknown] is None
        assert row[known] == run[known.replace("_s_median", "_sum")]


def test_numbers_are_the_tables(figures: Path, small: tuple[Rows, Rows, Rows]) -> None:
    lane = ["placement", "parallelism"]
    drawn = {
        name: pd.read_csv(figures / f"{name}.tsv", sep="\t", na_values="n/a").set_index(lane, drop=False)
        for name in ("makespan", "wall_time", "phases", "tier_bytes")
    }
    runs, jobs = (pd.DataFrame(rows) for rows in small[:2])
    phases_of_run = jobs.merge(runs[[*lane, "run"]]).pivot_table("wall_s", [*lane, "run"], "phase", "sum")
    for figure, column, values in (
        ("makespan", "makespan_median_s", runs.groupby(lane).makespan_s.median()),
        ("makespan", "makespan_low_s", runs.groupby(lane).makespan_s.min()),
        ("wall_time", "account_block_io_s_median_s", runs.groupby(lane).account_block_io_sum_s.median()),
        ("phases", "stage_in_median_s", phases_of_run.groupby(lane).stage_in.median()),
    ):
        assert drawn[figure][column].to_dict() == pytest.approx(values.to_dict(), abs=1e-5)
    by_participant = pd.read_csv(figures / "differences.tsv", sep="\t")
    assert len(by_participant) == 2 * 12, "two parallelisms, twelve participants"
    pairs = by_participant.groupby("parallelism")
    assert pairs.difference_s.median().to_dict() == pytest.approx(pairs.median_s.first().to_dict(), abs=1e-5)
    assert drawn["tier_bytes"].query("tier == 'results'").read_median_bytes.isna().all()
