"""Figures of the run report: their numbers are the tables', and their sentences the finding."""

from __future__ import annotations

import textwrap
from collections.abc import Callable
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import pandas as pd
import pytest
from matplotlib.collections import LineCollection
from matplotlib.figure import Figure
from neurotier.core.tables import Row
from neurotier.meter.usage import LABELS
from neurotier.pages.kit.chart import TITLE, Chart, house_style, hover
from neurotier.pages.kit.lines import Lines, measured
from neurotier.pages.report import PAGE
from neurotier.pages.report.data import SHOWN_COLUMNS, SUMMED, ReportData, collect, doubts, participant_jobs
from neurotier.pages.report.figures import account, brain_volume, gantt
from neurotier.pages.report.page import participants, time_line
from neurotier.storage.spread import Spread
from report_data import RUN, make_results, phase_row, run_row, sampled, without_account


@pytest.mark.parametrize(("count", "earlier"), [(5, 0), (60, 20)])
def test_numbers_add_up_to_the_table(tmp_path: Path, count: int, earlier: int) -> None:
    places, settings = make_results(tmp_path, count, earlier=earlier)
    content = collect(places, settings)
    PAGE.write(places, settings)
    by_cause, jobs, volumes = (
        pd.read_csv(places.results / "figures" / f"{name}.tsv", sep="\t")
        for name in ("account", "gantt", "brain_volume")
    )
    assert list(by_cause.participant) == [job["participant"] for job in content.jobs]
    profile, columns = pd.DataFrame(content["profile"]), ["wall_s", *LABELS]
    for prefix, rows in (("", profile), ("compute_", profile[profile.phase == "compute"])):
        drawn = by_cause[[f"{prefix}{column}" for column in columns]]
        assert drawn.sum().to_numpy() == pytest.approx(rows[columns].sum().to_numpy(), abs=1e-3)
    assert jobs.participant.nunique() == count - earlier, "only the last run"
    assert jobs.end_s.max() == pytest.approx(content["runs"][-1]["makespan_s"], abs=1e-5)
    assert jobs.start_s.min() == 0
    assert volumes.brain_volume_cm3.sum() == pytest.approx(pd.DataFrame(content["group"]).brain_volume_mm3.sum() / 1000)


def test_titles_stand_in_the_svg_and_ids_are_the_figures_own(tmp_path: Path) -> None:
    class Drawn(Chart):
        def draw(self) -> Figure:
            figure = Figure()
            axes = figure.subplots()
            (bar,) = axes.barh([0], [1])
            bar.set_url(hover("<b> & 'c' \"d\""))
            lines = LineCollection([[(0, 0), (1, 1)], [(0, 1), (1, 0)]])
            lines.set_urls([hover("first"), hover("second")])
            axes.add_collection(lines)
            axes.scatter([0.2, 0.4], [0.2, 0.4], urls=[hover("dot"), hover("other dot")])
            return figure

    with house_style():
        Drawn("says", [{"a": 1}]).save(tmp_path / "a name")
    root = ElementTree.fromstring((tmp_path / "a name.svg").read_text())  # noqa: S314
    said = [part.text for part in root.iter("{http://www.w3.org/2000/svg}title")]
    assert said == ["<b> & 'c' \"d\"", "dot", "other dot", "first", "second"]
    assert all(part.get("id", "a_name-").startswith("a_name-") for part in root.iter())


def made(*phases: tuple[str, float, float, float]) -> list[Row]:
    """Compute phases: participant, start, wall, CPU."""
    return [phase_row(RUN, name, "compute", start, wall, cpu) for name, start, wall, cpu in phases]


def test_many_lines_of_long_names_stand_beside_the_panels_and_below_the_title() -> None:
    names = [*(f"pmem{number}, psync" for number in range(12)), " + ".join(f"pmem{number}" for number in range(12))]
    rows = [measured("", name, 1, Spread((1e9,))) for name in names]
    chart = Lines("; ".join(f"{name} holds 6 writers" for name in names), rows, panels={"": "Writers at once"})
    with house_style():
        figure = chart.draw()
        title = figure.suptitle(textwrap.fill(chart.says, TITLE))
        figure.draw_without_rendering()
    (axes,), whole = figure.axes, figure.bbox
    legend = axes.get_legend().get_window_extent()
    assert whole.y0 <= legend.y0
    assert legend.x1 <= whole.x1
    assert axes.bbox.y1 <= title.get_window_extent().y0
    assert axes.bbox.width > whole.width / 3


def test_among_many_participants_those_whose_wall_time_is_shown_are_named() -> None:
    """Of 398 two of the five had one, by chance."""
    rows = made(*((f"sub-{number:03}", 0.0, 400.0 - number, 5.0) for number in range(398)))
    with house_style():
        _, axes, _ = account(ReportData({"profile": rows}, None)).draw().axes
    names = [text.get_text() for text in axes.get_yticklabels()]
    assert sorted(names) == ["sub-000", "sub-099", "sub-198", "sub-297", "sub-397"]
    assert len(axes.texts) == len(names)


def test_the_verdict_says_where_the_time_went_of_those_who_have_an_account() -> None:
    """Of 10 s with 5 s on a CPU, half of the rest is waiting for a core, and 0.3 of it for storage."""
    (known,), (unknown,) = made(("sub-1", 0.0, 10.0, 5.0)), made(("sub-2", 0.0, 1.0, 0.5))
    some, none = (participant_jobs([*rows, without_account(unknown)]) for rows in ([known], []))
    where = "10.0 s (medians): 5.00 s computing, 2.50 s waiting for a core, 1.50 s waiting for storage."
    assert time_line(some) == f'A participant took {where} <a href="#account">Where the time went</a>.'
    assert time_line(none) == "A participant took 1.00 s (medians): 0.50 s of CPU time.", "there is no such figure"


def test_causes_of_a_participant_are_unknown_if_its_longest_phase_has_no_account() -> None:
    """Only the 0.1 s of staging had an account, and of a participant it was said: "0.050 s computing"."""
    rows = [row | {"phase": "stage_in"} for row in made(("sub-1", 0.0, 0.1, 0.05))]
    rows += [without_account(row) for row in made(("sub-1", 0.1, 20.0, 9.95))]
    (job,) = participant_jobs(rows)
    assert time_line([job]) == "A participant took 20.1 s (medians): 10.0 s of CPU time."
    assert (job["account_run_queue_s"], job["account_block_io_s"]) == (None, None)


def test_columns_that_are_summed_are_read_and_shown(tmp_path: Path) -> None:
    data = collect(*make_results(tmp_path, 2))
    columns = participants(data).columns.split()
    assert {*SUMMED} <= {*columns} & {*SHOWN_COLUMNS["profile"]}
    assert all(job.keys() >= {*SUMMED} for job in data.jobs)


def test_sentences_state_the_finding(tmp_path: Path) -> None:
    places, settings = make_results(tmp_path, 5)
    rows = made(("SiteA/sub-1", 0.0, 10.0, 9.0), ("SiteA/sub-2", 5.0, 31.2, 29.4))

    def said(chart: Callable[[ReportData], Chart], **tables: Any) -> str:
        return chart(ReportData(tables, settings, places)).says

    shares = "3 % waiting for a core, 2 % waiting for storage, 1 % asleep"
    assert said(account, profile=rows) == f"Time of 2 participants: 93 % on a CPU, {shares}"
    assert said(account, profile=rows[:1]).startswith("Time of SiteA/sub-1: 90 % on a CPU")
    about = said(account, profile=[sampled(row, 0.5) for row in rows])
    assert about.startswith("Time of 2 participants: about 93 % on a CPU")
    waits = "Time of sub-1: 50 % waiting for a core, 30 % waiting for storage, 20 % asleep"
    assert said(account, profile=made(("sub-1", 0, 10, 0))) == waits
    assert said(account, profile=made(("sub-1", 0, 0, 0))) == "No time was measured for sub-1"
    assert said(account) == said(gantt) == "no participant finished"
    at_once = "Makespan 36.2 s for 2 participants, 1.14 at a time on average, 2 at most"
    assert said(gantt, profile=rows, runs=[run_row(RUN, rows)]) == at_once
    group = collect(places, settings)["group"]
    assert said(brain_volume) == "no brain mask was made"
    assert said(brain_volume, group=group[:1]).startswith("Brain volume of the one image is ")
    assert f"of {len(group)} images); 1 mask to be looked at" in said(brain_volume, group=group)


@pytest.mark.parametrize(
    ("volume_mm3", "plausible"),
    [(879e3, False), (881e3, True), (1_949e3, True), (1_951e3, False)],
)
def test_volumes_that_no_adult_has_are_pointed_out(volume_mm3: float, plausible: bool) -> None:
    """The bounds that the page states with their source; whatever the other images have."""
    row = {"brain_volume_mm3": volume_mm3, "outlier": False, "robust_z": 0.0}
    assert doubts(row) == ("" if plausible else "outside the range of adults")
