"""Figures: their numbers are the tables', their titles say the finding, and nothing breaks at the edges."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from pathlib import Path
from types import ModuleType
from typing import Any
from xml.etree import ElementTree

import pytest
from matplotlib.collections import LineCollection
from matplotlib.figure import Figure
from neurotier.core.parallelism import peak
from neurotier.core.tables import Row
from neurotier.meter.usage import LABELS
from neurotier.pages.kit import style
from neurotier.pages.kit.chart import house_style, hover
from neurotier.pages.kit.figures import draw_all
from neurotier.pages.kit.findings import Finding
from neurotier.pages.kit.gantt import Job, pack
from neurotier.pages.kit.style import save_figure
from neurotier.pages.report import account, brain_volume, gantt
from neurotier.pages.report.data import Tables, collect
from neurotier.pages.report.figures import FIGURES
from report_data import RUN, make_results, phase_row, run_row, sampled, without_account
from report_figures import add_figures


def tables(folder: Path, count: int, **changes: Any) -> Tables:
    """The tables of a synthetic results folder."""
    return collect(*make_results(folder, count, **changes))


def read_plain(path: Path) -> list[dict[str, str]]:
    lines = [line.split("\t") for line in path.read_text().splitlines()]
    return [dict(zip(lines[0], line, strict=True)) for line in lines[1:]]


@pytest.mark.parametrize(
    ("count", "changes"),
    [(0, {}), (1, {}), (5, {"failed": 1}), (40, {}), (41, {"slots": 8}), (700, {"slots": 25, "earlier": 100})],
)
def test_every_figure_is_drawn(tmp_path: Path, count: int, changes: dict[str, Any]) -> None:
    draw_all("report", FIGURES, tables(tmp_path, count, **changes), tmp_path / "figures")
    for entry in FIGURES:
        for kind in ("svg", "png", "tsv", "rst"):
            path = tmp_path / "figures" / f"{entry.name}.{kind}"
            assert path.is_file(), path
            assert kind in ("tsv", "rst") or path.stat().st_size > 1000
    assert len(list((tmp_path / "figures").iterdir())) == 4 * len(FIGURES), "temporary files stayed"


@pytest.mark.parametrize(("count", "earlier"), [(5, 0), (60, 20)])
def test_numbers_add_up_to_the_table(tmp_path: Path, count: int, earlier: int) -> None:
    content = tables(tmp_path, count, earlier=earlier)
    figures = add_figures(tmp_path / "figures", count, earlier=earlier)
    drawn = read_plain(figures / "account.tsv")
    assert [row["participant"] for row in drawn] == [time.participant for time in content.times]
    for prefix, members in (("", ("stage_in", "compute", "stage_out")), ("compute_", ("compute",))):
        rows = [row for row in content.profile if row["phase"] in members]
        for column in ("wall_s", *LABELS):
            total = sum(float(row[f"{prefix}{column}"]) for row in drawn)
            assert total == pytest.approx(sum(row[column] for row in rows), abs=1e-3), column
    jobs = read_plain(figures / "gantt.tsv")
    assert len({row["participant"] for row in jobs}) == count - earlier, "only the last run"
    assert max(float(row["end_s"]) for row in jobs) == pytest.approx(content.runs[-1]["makespan_s"], abs=1e-5)
    assert min(float(row["start_s"]) for row in jobs) == 0
    volumes = read_plain(figures / "brain_volume.tsv")
    total = sum(float(row["brain_volume_cm3"]) for row in volumes)
    assert total == pytest.approx(sum(row["brain_volume_mm3"] for row in content.group) / 1000)


def test_bytes_repeat(tmp_path: Path) -> None:
    add_figures(tmp_path / "first", 5)
    draw_all("report", FIGURES, tables(tmp_path, 5), tmp_path / "second")
    names = sorted(path.name for path in (tmp_path / "first").iterdir())
    assert names == sorted(path.name for path in (tmp_path / "second").iterdir())
    for name in names:
        assert (tmp_path / "first" / name).read_bytes() == (tmp_path / "second" / name).read_bytes(), name


def test_titles_stand_in_the_svg_and_ids_are_the_figures_own(tmp_path: Path) -> None:
    with house_style():
        figure = Figure()
        axes = figure.subplots()
        (bar,) = axes.barh([0], [1])
        bar.set_url(hover("<b> & 'c' \"d\""))
        lines = LineCollection([[(0, 0), (1, 1)], [(0, 1), (1, 0)]])
        lines.set_urls([hover("first"), hover("second")])
        axes.add_collection(lines)
        axes.scatter([0.2, 0.4], [0.2, 0.4], urls=[hover("dot"), hover("other dot")])
        save_figure(figure, tmp_path / "a name", [])
    root = ElementTree.fromstring((tmp_path / "a name.svg").read_text())  # noqa: S314
    said = [part.text for part in root.iter("{http://www.w3.org/2000/svg}title")]
    assert said == ["<b> & 'c' \"d\"", "dot", "other dot", "first", "second"]
    assert all(part.get("id", "a_name-").startswith("a_name-") for part in root.iter())


def made(*phases: tuple[str, float, float, float], run: str = RUN) -> list[Row]:
    """Compute phases: participant, start, wall, CPU."""
    return [phase_row(run, name, "compute", start, wall, cpu) for name, start, wall, cpu in phases]


def said(figure: ModuleType, **rows: Sequence[Row]) -> str:
    """The sentence of a figure of some rows."""
    finding: Finding = figure.finding(Tables(**rows))
    return finding.sentence


def test_titles_state_the_finding(tmp_path: Path) -> None:
    rows = made(("SiteA/sub-1", 0.0, 10.0, 9.0), ("SiteA/sub-2", 5.0, 31.2, 29.4))
    shares = "3 % waiting for a core, 2 % waiting for storage, 1 % asleep"
    assert said(account, profile=rows) == f"93 % of the time of 2 participants on a CPU, {shares}"
    assert said(account, profile=rows[:1]).startswith("90 % of the time of SiteA/sub-1 on a CPU")
    waits = "50 % of the time of sub-1 waiting for a core, 30 % waiting for storage, 20 % asleep"
    assert said(account, profile=made(("sub-1", 0, 10, 0))) == waits
    assert said(account, profile=made(("sub-1", 0, 0, 0))) == "No time was measured for sub-1"
    assert said(account) == said(gantt) == "no participant finished"
    at_once = "Makespan 36.2 s for 2 participants, 1.14 at a time on average, 2 at most"
    assert said(gantt, profile=rows, runs=[run_row(RUN, rows)]) == at_once
    group = tables(tmp_path, 5).group
    assert said(brain_volume) == "no brain mask was made"
    assert said(brain_volume, group=group[:1]).startswith("Brain volume of the one image is ")
    assert f"of {len(group)} images); 1 stands out" in said(brain_volume, group=group)


def test_bars_and_lanes_say_participant_phase_and_seconds(tmp_path: Path) -> None:
    content = tables(tmp_path, 5)
    figures = add_figures(tmp_path / "figures", 5)
    shown = {entry.name: (figures / f"{entry.name}.svg").read_text() for entry in FIGURES}
    slowest = content.times[0]
    compute = f"{slowest.phase('compute', 'wall_s'):.1f} s"
    assert f"<title>{slowest.participant}, compute: {compute}</title>" in shown["gantt"]
    assert f"<title>{slowest.participant}, waiting for a core: " in shown["account"]
    assert "<title>compute, CPU, user: " in shown["account"]
    for row in content.group:
        assert f"<title>{row['image']}: " in shown["brain_volume"]


def note_of(figure: ModuleType, rows: list[Row], folder: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    """The note below a figure."""
    notes: list[str] = []
    monkeypatch.setattr(style, "set_title", lambda _figure, _title, note: notes.append(note))
    figure.draw(Tables(rows), folder / "figure")
    return "".join(notes)


def test_the_account_says_how_it_was_made(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    rows = made(("sub-1", 0, 10, 9), ("sub-2", 0, 10, 9), ("sub-3", 0, 10, 9))
    note = note_of(account, rows, tmp_path, monkeypatch)
    assert note.startswith("Account: exact (one thread active at a time). Asleep")
    assert note.endswith("Unexplained: 0 % of wall time.")
    rows[0] = sampled(rows[0], 0.6)
    rows[1] = rows[1] | {"account": "scaled", "account_user_s": 10.0, "residual_s": -1.9}
    rows[2] = without_account(rows[2])
    note = note_of(account, [*rows, phase_row(RUN, "sub-3", "stage_in", 0, 5, 1)], tmp_path, monkeypatch)
    assert "exact (one thread active at a time); scaled (several threads" in note
    assert "sampled. Of the CPU time of what was sampled, 60 % belongs to threads that were seen." in note
    assert "Where being short of memory is not known, it is part of asleep." in note
    assert "(29 % in phases without an account)" in note, "10 s of 35 s"
    assert "For 1 participant the causes exceed wall time; that is not drawn." in note
    assert note_of(account, rows, tmp_path, monkeypatch).endswith("1 participant without an account is left out.")


def test_without_any_account_the_figure_says_what_to_do(tmp_path: Path) -> None:
    rows = [without_account(row) for row in made(("sub-1", 0, 10, 9), ("sub-2", 0, 10, 9))]
    finding = account.finding(Tables(rows))
    assert not finding.shown
    assert "the kernel accounts no waits" in finding.sentence
    assert "as root: sysctl kernel.task_delayacct=1" in finding.sentence
    account.draw(Tables(rows), tmp_path / "account")
    assert (tmp_path / "account.tsv").read_text() == ""


def test_a_job_without_duration_and_very_long_names(tmp_path: Path) -> None:
    rows = made(("a" * 200 + "/sub-1", 0.0, 0.0, 0.0), ("sub-$x_1$", 0.0, 0.0, 0.0))
    draw_all("report", FIGURES, Tables(rows, [run_row(RUN, made(("a", 0.0, 1.0, 1.0)))]), tmp_path)
    assert (tmp_path / "account.svg").stat().st_size > 1000


def test_lanes_never_overlap_and_are_as_many_as_the_peak() -> None:
    jobs = [Job(f"sub-{n}", n * 1.0, n + 2.5 + n % 3, []) for n in range(30)]
    packed = pack(jobs)
    assert max(lane for lane, _ in packed) + 1 == peak([(job.start_s, job.end_s) for job in jobs])
    for lane in {lane for lane, _ in packed}:
        own = [job for at, job in packed if at == lane]
        assert all(first.end_s <= second.start_s for first, second in pairwise(own))


def test_of_very_many_shapes_are_pixels(tmp_path: Path) -> None:
    for count, pixels in ((200, False), (260, True)):
        content, folder = tables(tmp_path / str(count), count, slots=25), tmp_path / str(count)
        draw_all("report", FIGURES, content, folder)
        shown = {entry.name: (folder / f"{entry.name}.svg").read_text() for entry in FIGURES}
        assert [("data:image/png" in shown[name]) for name in ("account", "gantt")] == [pixels] * 2
        named = [f"<title>{time.participant}, compute: " in shown["gantt"] for time in content.times]
        assert all(named) if not pixels else not any(named)
        outliers = [row["image"] for row in content.group if row["outlier"]]
        assert all(f"<title>{image}: " in shown["brain_volume"] for image in outliers)
