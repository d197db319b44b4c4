"""Figures: their numbers are the tables', their titles say the finding, and nothing breaks at the edges."""

from __future__ import annotations

from itertools import pairwise
from pathlib import Path
from types import ModuleType
from typing import Any
from xml.etree import ElementTree

import pytest
from matplotlib.collections import LineCollection
from matplotlib.figure import Figure
from neurotier.core.tables import Row, read_table
from neurotier.meter.usage import LABELS
from neurotier.pages.kit import style
from neurotier.pages.kit.figures import draw_all
from neurotier.pages.kit.findings import Finding
from neurotier.pages.kit.gantt import Job, pack
from neurotier.pages.kit.hover import hover
from neurotier.pages.kit.style import house_style, save_figure
from neurotier.pages.report import account, brain_volume, gantt
from neurotier.pages.report.data import Tables
from neurotier.pages.report.figures import FIGURES
from neurotier.pages.report.stacks import Stack, tenths
from neurotier.pages.report.times import participant_times
from report_data import EARLIER, RUN, make_results, phase_row, sampled, without_account
from report_figures import add_figures

TENTH_OF_507 = (50, 51, 51, 50, 51, 51, 50, 51, 51, 51)
"""How many of 507 participants each tenth has."""


def tables(folder: Path, count: int, **changes: Any) -> Tables:
    """Profile, runs and group of a synthetic results folder, read back from disk."""
    places, _ = make_results(folder, count, **changes)
    return Tables(
        read_table(places.profile / "profile.tsv", "profile"),
        read_table(places.profile / "runs.tsv", "runs"),
        read_table(places.group / "group.tsv", "group"),
    )


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
    profile, runs, group = content.profile, content.runs, content.group
    figures = add_figures(tmp_path / "figures", count, earlier=earlier)
    drawn = read_plain(figures / "account.tsv")
    assert len(drawn) == count
    for column in ("wall_s", "account_user_s", "account_run_queue_s", "account_block_io_s"):
        expected = sum(row[column] for row in profile)
        assert sum(float(row[column]) for row in drawn) == pytest.approx(expected)
        phases = ("stage_in", "compute", "stage_out")
        assert sum(float(row[f"{phase}_{column}"]) for row in drawn for phase in phases) == pytest.approx(expected)
    assert [row["participant"] for row in drawn] == [time.participant for time in participant_times(profile)]
    jobs = read_plain(figures / "gantt.tsv")
    assert len({row["participant"] for row in jobs}) == count - earlier, "only the last run"
    assert max(float(row["end_s"]) for row in jobs) == pytest.approx(runs[-1]["makespan_s"], abs=1e-5)
    assert min(float(row["start_s"]) for row in jobs) == 0
    volumes = read_plain(figures / "brain_volume.tsv")
    total = sum(float(row["brain_volume_cm3"]) for row in volumes)
    assert total == pytest.approx(sum(row["brain_volume_mm3"] for row in group) / 1000)


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


def said(figure: ModuleType, rows: list[Row]) -> str:
    """The sentence of a figure of some rows of ``profile.tsv``."""
    finding: Finding = figure.finding(Tables(rows))
    return finding.sentence


def test_titles_state_the_finding() -> None:
    rows = made(("SiteA/sub-1", 0.0, 10.0, 9.0), ("SiteA/sub-2", 5.0, 31.2, 29.4))
    shares = "3 % waiting for a core, 2 % waiting for storage, 1 % asleep"
    assert said(account, rows) == f"93 % of the time of 2 participants on a CPU, {shares}"
    assert said(account, rows[:1]).startswith("90 % of the time of SiteA/sub-1 on a CPU")
    assert said(account, []) == said(gantt, []) == "no participant finished"
    assert brain_volume.finding(Tables()).sentence == "no brain mask was made"
    assert said(gantt, rows) == "Makespan 36.2 s for 2 participants, 1.14 at a time on average, 2 at most"


def test_bars_and_lanes_say_participant_phase_and_seconds(tmp_path: Path) -> None:
    content = tables(tmp_path, 5)
    figures = add_figures(tmp_path / "figures", 5)
    shown = {entry.name: (figures / f"{entry.name}.svg").read_text() for entry in FIGURES}
    slowest = participant_times(content.profile)[0]
    compute = f"{slowest.phase('compute', 'wall_s'):.1f} s"
    assert f"<title>{slowest.participant}, compute: {compute}</title>" in shown["gantt"]
    assert f"<title>{slowest.participant}, waiting for a core: " in shown["account"]
    assert "<title>compute, CPU, user: " in shown["account"]
    for row in content.group:
        assert f"<title>{row['image']}: " in shown["brain_volume"]


def test_brain_volume_title(tmp_path: Path) -> None:
    group = tables(tmp_path, 5).group
    assert brain_volume.finding(Tables(group=group[:1])).sentence.startswith("Brain volume of the one image is ")
    assert f"of {len(group)} images); 1 stands out" in brain_volume.finding(Tables(group=group)).sentence
    (image,) = brain_volume.numbered_outliers(group)
    assert image in {row["image"] for row in group if row["outlier"]}


def test_the_account_adds_up_to_wall_time(tmp_path: Path) -> None:
    profile = tables(tmp_path, 60).profile
    account.draw(Tables(profile), tmp_path / "account")
    drawn = read_plain(tmp_path / "account.tsv")
    assert [row["participant"] for row in drawn] == [time.participant for time in participant_times(profile)]
    for prefix, members in (("", ("stage_in", "compute", "stage_out")), ("compute_", ("compute",))):
        rows = [row for row in profile if row["phase"] in members]
        for cause in LABELS:
            total = sum(float(row[f"{prefix}{cause}"]) for row in drawn)
            assert total == pytest.approx(sum(row[cause] for row in rows), abs=1e-3), cause
        parts = sum(float(row[f"{prefix}{cause}"]) for row in drawn for cause in LABELS)
        assert parts == pytest.approx(sum(row["wall_s"] for row in rows), abs=1e-2)


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


def test_the_title_of_the_account_names_the_largest_causes() -> None:
    rows = made(("sub-1", 0.0, 10.0, 8.0), ("sub-2", 5.0, 30.0, 24.0))
    # of the 8 s of 40 s off the CPU, half was waiting for a core, three tenths for storage, a fifth asleep
    waits = "10 % waiting for a core, 6 % waiting for storage, 4 % asleep"
    sentence = f"80 % of the time of 2 participants on a CPU, {waits}"
    assert said(account, rows) == sentence
    sentence = "50 % of the time of sub-1 waiting for a core, 30 % waiting for storage, 20 % asleep"
    assert said(account, made(("sub-1", 0, 10, 0))) == sentence
    assert said(account, made(("sub-1", 0, 0, 0))) == "No time was measured for sub-1"
    assert said(account, []) == "no participant finished"


@pytest.mark.parametrize("count", [8, 60])
def test_accounts_of_every_kind_are_drawn(tmp_path: Path, count: int) -> None:
    rows = made(*((f"sub-{n}", 0, 10.0 + n, 9.0) for n in range(count)))
    rows += [phase_row(RUN, row["participant"], "stage_in", 0, 1, 0) for row in rows[:2]]
    rows[0], rows[1], rows[2] = without_account(rows[0]), sampled(rows[1], 0.5), without_account(rows[2])
    rows[3] |= {"residual_s": -1.0, "account_user_s": 9.1}
    account.draw(Tables(rows), tmp_path / "account")
    assert len(read_plain(tmp_path / "account.tsv")) == count - 1
    assert (tmp_path / "account.png").stat().st_size > 1000


def test_a_job_without_duration_and_very_long_names(tmp_path: Path) -> None:
    rows = made(("a" * 200 + "/sub-1", 0.0, 0.0, 0.0), ("sub-$x_1$", 0.0, 0.0, 0.0))
    draw_all("report", FIGURES, Tables(rows), tmp_path)
    assert (tmp_path / "account.svg").stat().st_size > 1000


def test_last_run_is_the_tables_last_row_else_the_latest_start() -> None:
    rows = made(("sub-1", 50.0, 1, 1), run=EARLIER) + made(("sub-2", 90.0, 1, 1))
    assert gantt.last_run(Tables(rows)) == RUN
    assert gantt.last_run(Tables(rows, [{"run": RUN}, {"run": EARLIER}])) == EARLIER
    assert gantt.last_run(Tables()) is None


def test_lanes_never_overlap_and_are_as_many_as_the_peak() -> None:
    jobs = [Job(f"sub-{n}", n * 1.0, n + 2.5 + n % 3, []) for n in range(30)]
    packed = pack(jobs)
    assert max(lane for lane, _ in packed) + 1 == max(gantt.running_jobs(jobs)[1])
    for lane in {lane for lane, _ in packed}:
        own = [job for at, job in packed if at == lane]
        assert all(first.end_s <= second.start_s for first, second in pairwise(own))


def test_very_many_are_tenths_the_slowest_and_pixels(tmp_path: Path) -> None:
    content = tables(tmp_path, 260, slots=25)
    for folder in ("first", "second"):
        draw_all("report", FIGURES, content, tmp_path / folder)
    for path in (tmp_path / "first").iterdir():
        assert path.read_bytes() == (tmp_path / "second" / path.name).read_bytes(), path.name
    shown = {entry.name: (tmp_path / "first" / f"{entry.name}.svg").read_text() for entry in FIGURES}
    times = participant_times(content.profile)
    for tenth in ("slowest tenth", "fastest tenth"):
        assert f"<title>{tenth}, CPU, user: " in shown["account"]
    named = [time.participant for time in times if f"<title>{time.participant}, CPU, user: " in shown["account"]]
    assert named == [time.participant for time in times[:50]]
    assert len(read_plain(tmp_path / "first" / "account.tsv")) == 260
    assert "<title>" not in shown["gantt"]
    assert "data:image/png" in shown["gantt"]
    outliers = brain_volume.numbered_outliers(content.group)
    dots = [row["image"] for row in content.group if f"<title>{row['image']}: " in shown["brain_volume"]]
    assert set(dots) == outliers.keys()
    assert len(read_plain(tmp_path / "first" / "brain_volume.tsv")) == len(content.group)


def test_up_to_200_are_drawn_one_by_one(tmp_path: Path) -> None:
    content = tables(tmp_path, 200, slots=8)
    draw_all("report", FIGURES, content, tmp_path)
    assert "tenth" not in (tmp_path / "account.svg").read_text()
    lanes = (tmp_path / "gantt.svg").read_text()
    assert all(f"<title>{time.participant}, compute: " in lanes for time in participant_times(content.profile))


def test_tenths_have_everyone_once() -> None:
    stacks = [Stack(str(number), number, (number / 4, number * 3 / 4)) for number in range(507, 0, -1)]
    means = [mean for mean, _ in tenths(stacks)]
    assert [mean.name for mean in means[:2]] == ["slowest tenth", "tenth 2"]
    assert sum(mean.wall_s * count for mean, count in zip(means, TENTH_OF_507, strict=True)) == pytest.approx(
        sum(stack.wall_s for stack in stacks)
    )
    assert all(sum(mean.parts) == pytest.approx(mean.wall_s) for mean in means)


def test_means_of_running_jobs_keep_their_area() -> None:
    jobs = [Job(f"sub-{n}", n * 0.7, n * 0.7 + 2.5 + n % 3, []) for n in range(900)]
    at, count = gantt.running_jobs(jobs)
    edges, means = gantt.averaged(at, count)
    assert len(edges) == gantt.STEPS + 1
    area = sum((after - before) * mean for (before, after), mean in zip(pairwise(edges), means[:-1], strict=True))
    assert area == pytest.approx(sum(job.end_s - job.start_s for job in jobs))
    assert gantt.averaged(at[:800], count[:800]) == (at[:800], count[:800])
