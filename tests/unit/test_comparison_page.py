"""The page of the comparison and its figures: verdict first, numbers of the tables, written whatever is missing."""

from __future__ import annotations

from itertools import chain
from pathlib import Path

import pandas as pd
import pytest
from comparison_rows import compared, job_rows, published, repeated, run_row
from neurotier.core.tables import Rows
from neurotier.pages.comparison import PAGE
from neurotier.pages.comparison.page import makespan, tier_bytes, wall_time
from neurotier.pages.comparison.verdict import Comparison, counts_text, judge
from neurotier.pages.kit.findings import MEANINGS
from neurotier.run.compared import Condition
from page_reader import Reader, read

EVIL = "<script>alert(1)</script><img src=x onerror=alert(2)> a$b_1$ &amp; \\frac{1}{2} µ\"'" + "x" * 80


def page(tables: tuple[Rows, Rows, Rows], folder: Path) -> Reader:
    """Write the page and read it."""
    PAGE.render(Comparison(*tables), folder, None)
    return read(folder / "comparison.html")


def test_verdict_then_a_figure_then_lists_and_what_is_left_out_and_oversubscribed(tmp_path: Path) -> None:
    folder = tmp_path / "a folder #1"
    each = compared({"tmpfs": 1.0, "slow": 4.0}, tool="bet"), published(12, 1)
    runs, jobs, traffic = (list(chain(*rows)) for rows in zip(*each, strict=True))
    runs[1] = runs[1] | {"valid": "invalid: swap was used"}
    runs[2] = runs[2] | {"oversubscribed": True, "limited_by": "too few participants"}
    data, reader = Comparison(runs, jobs, traffic), page((runs, jobs, traffic), folder)
    places = [reader.text.index(f"{family.headline}.") for family in judge(data)]
    assert places == sorted(places)
    assert len(places) == 4
    assert "no valid run" not in reader.text
    assert places[-1] < reader.text.index(f"{counts_text(data)}. Only valid runs") < reader.text.index("swap was used")
    assert all(f"{line}." in reader.text for family in judge(data) for line in family.reasons)
    html = (folder / "comparison.html").read_text()
    assert html.index('<div class="verdict') < html.index('<figure class="chart"') < html.index("<table")
    assert "Partial" not in reader.text
    assert " were run and timed with neurotier 0.1.0 (the neurotier authors, 2026)." in reader.text
    assert "(Holm, 1979, Scandinavian Journal of Statistics 6(2), 65-70)" in reader.text
    for said in (
        "11 runs compared, 1 left out",
        "campaign tmpfs-2-2 tmpfs 2 2 invalid: swap was used",
        "Oversubscribed: 1 run of 11.",
        "oversubscribed too few participants",  # among the conditions
        *(f"{word} {MEANINGS[word]}" for word in ("valid", "sure", "oversubscribed")),
        "where that is known, no more of its CPU time than validity.others_cpu_share.",  # a key of the user's
    ):
        assert said in reader.text, said
    fine = page(published(6, 1), tmp_path).text
    assert not [said for said in ("Oversubscribed:", "Left out", "Why not as many") if said in fine]


def test_names_are_escaped(tmp_path: Path) -> None:
    runs, jobs, traffic = compared({EVIL: 1.0, f"{EVIL}2": 2.0}, (2,), 1, 3, origin=EVIL, tool=EVIL)
    runs[0] |= {"limited_by": EVIL, "valid": f"invalid: {EVIL}", "logged_makespan_s": 1.0}
    reader = page((runs, jobs, traffic), tmp_path)
    assert reader.tags.count("script") == 1, "the page's own"
    assert reader.text.count("alert(1)") >= 5


def test_no_rows_and_one_run_of_no_job_or_no_time(tmp_path: Path) -> None:
    no_job = run_row("r", "tmpfs", None, mean_parallelism=None, peak_parallelism=0, participants=0)
    for run in (no_job, run_row("r", "tmpfs", 0.0, wall_sum_s=0.0, parallelism=None)):
        assert "tmpfs" in page(([run], [], []), tmp_path).text
    reader = page(([], [], []), tmp_path)
    assert "There is no run to compare." in reader.text
    assert reader.tags.count("h2") == 2, "methods, and what is not shown"
    spoilt = compared({"tmpfs": 1.0}, (2,), 1, 1, valid="invalid: swap was used")
    said = page(spoilt, tmp_path).text
    assert "No run can be compared." in said
    assert "no valid run of tmpfs: see what is left out." in said
    assert "Conditions" in page(compared({"tmpfs": 1.0}, (2,), 1, 1), tmp_path).text


TIERS = {"tmpfs": 1.0, "slow": 4.0}


def test_the_title_of_makespans_names_the_shortest_and_whether_that_is_sure() -> None:
    """Sure of a condition that was tested against every other one, and beats it without any doubt."""

    def title(runs: Rows) -> str:
        return makespan(Comparison(runs, [row for run in runs for row in job_rows(run["run"], [10.0])])).says

    runs = repeated({"disk": (200.0, 210.0, 190.0), "tmpfs": (100.0, 90.0, 110.0)})
    shortest = "tmpfs, 2 at once, cache cold, brainextractor: 100 s (90.0 to 110, 3 runs)"
    assert title(runs) == f"Makespan is shortest with {shortest}"
    spoilt = [run | {"valid": "invalid: swap was used"} if run["placement"] == "disk" else run for run in runs]
    assert title(spoilt) == f"Makespan with {shortest}"
    alike = repeated({"disk": (100.0, 110.0, 90.0), "tmpfs": (99.0, 111.0, 89.0)})
    untested = [*runs, run_row("slow", "tmpfs", 900.0, parallelism=1)]
    rest = [run | {"participants": 9} if run["placement"] == "disk" else run for run in runs]
    assert [title(one).rpartition("; ")[2] for one in (alike, untested, rest)] == ["this is not sure"] * 3
    both = [run | {"run": f"{run['run']} {cache}", "cache": cache} for cache in ("cold", "warm") for run in runs[:3]]
    memory = [run | {"cache": "memory"} for run in runs[3:]]
    assert title(both + memory).endswith("3 runs)"), "tested against both cache states"


def test_wall_time_is_divided_by_what_is_known() -> None:
    """By causes where the runs have an account, else into CPU time and I/O as the paper counts it."""
    own, other = compared(TIERS, (2,), 1)[0], published(3, 1)[0]
    for row in wall_time(Comparison(own + other)).table:
        names = ("account_user", "io") if row["origin"] == "published" else ("io", "account_user")
        unknown, known = (f"{name}_s_median_s" for name in names)
        (run,) = [one for one in own + other if Condition.of(one) == Condition.of(row)]
        assert row[unknown] is None
        assert row[known] == run[known.replace("_s_median", "_sum")]


def test_numbers_are_the_tables() -> None:
    lane, small = ["placement", "parallelism"], compared(TIERS)
    drawn = {each.chart.__name__: pd.DataFrame(each.chart(Comparison(*small)).table) for each in PAGE.figures}
    runs, jobs = (pd.DataFrame(rows) for rows in small[:2])
    phases_of_run = jobs.merge(runs[[*lane, "run"]]).pivot_table("wall_s", [*lane, "run"], "phase", "sum")
    for figure, column, values in (
        ("makespan", "makespan_median_s", runs.groupby(lane).makespan_s.median()),
        ("makespan", "makespan_low_s", runs.groupby(lane).makespan_s.min()),
        ("wall_time", "account_block_io_s_median_s", runs.groupby(lane).account_block_io_sum_s.median()),
        ("phases", "stage_in_median_s", phases_of_run.groupby(lane).stage_in.median()),
    ):
        assert drawn[figure].set_index(lane)[column].to_dict() == pytest.approx(values.to_dict(), abs=1e-5)
    assert len(drawn["differences"]) == 2 * 12, "two parallelisms, twelve participants"
    pairs = drawn["differences"].groupby("parallelism")
    assert pairs.difference_s.median().to_dict() == pytest.approx(pairs.median_s.first().to_dict(), abs=1e-5)
    assert drawn["tier_bytes"].query("tier == 'results'").read_median_bytes.isna().all()
    most = "At least 12.4 MiB cross one tier, such as "
    assert tier_bytes(Comparison(*small)).says.startswith(most), "as many cross the work tier of each placement"
