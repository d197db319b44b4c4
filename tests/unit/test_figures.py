"""Figures: their numbers are the tables', their titles say the finding, and nothing breaks at the edges."""

from __future__ import annotations

from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
from matplotlib.figure import Figure
from neurotier.report.brain_volume import numbered_outliers
from neurotier.report.figures import FIGURES, draw_all
from neurotier.report.findings import (
    brain_volume_finding,
    cpu_io_finding,
    gantt_finding,
    last_run,
    participant_times,
    running_jobs,
    slots,
    summarise,
)
from neurotier.tables import Row, read_table
from report_data import EARLIER, RUN, make_results, phase_row


def tables(folder: Path, count: int, **changes: Any) -> tuple[list[Row], list[Row], list[Row]]:
    """Profile, runs and group of a synthetic results folder, read back from disk."""
    places, _ = make_results(folder, count, **changes)
    return (
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
    draw_all(*tables(tmp_path, count, **changes), tmp_path / "figures")
    for name in FIGURES:
        for kind in ("svg", "png", "tsv"):
            path = tmp_path / "figures" / f"{name}.{kind}"
            assert path.is_file(), path
            assert kind == "tsv" or path.stat().st_size > 1000
    assert len(list((tmp_path / "figures").iterdir())) == 3 * len(FIGURES), "temporary files stayed"


@pytest.mark.parametrize(("count", "earlier"), [(5, 0), (60, 20)])
def test_numbers_add_up_to_the_table(tmp_path: Path, count: int, earlier: int) -> None:
    profile, runs, group = tables(tmp_path, count, earlier=earlier)
    draw_all(profile, runs, group, tmp_path)
    drawn = read_plain(tmp_path / "cpu_io.tsv")
    assert len(drawn) == count
    for column in ("wall_s", "cpu_s", "io_s"):
        expected = sum(row[column] for row in profile)
        assert sum(float(row[column]) for row in drawn) == pytest.approx(expected)
        phases = ("stage_in", "compute", "stage_out")
        assert sum(float(row[f"{phase}_{column}"]) for row in drawn for phase in phases) == pytest.approx(expected)
    assert [row["participant"] for row in drawn] == [time.participant for time in participant_times(profile)]
    jobs = read_plain(tmp_path / "gantt.tsv")
    assert len({row["participant"] for row in jobs}) == count - earlier, "only the last run"
    assert max(float(row["end_s"]) for row in jobs) == pytest.approx(runs[-1]["makespan_s"], abs=1e-5)
    assert min(float(row["start_s"]) for row in jobs) == 0
    volumes = read_plain(tmp_path / "brain_volume.tsv")
    total = sum(float(row["brain_volume_cm3"]) for row in volumes)
    assert total == pytest.approx(sum(row["brain_volume_mm3"] for row in group) / 1000)


def test_bytes_repeat(tmp_path: Path) -> None:
    content = tables(tmp_path, 5)
    for folder in ("first", "second"):
        draw_all(*content, tmp_path / folder)
    for path in (tmp_path / "first").iterdir():
        assert path.read_bytes() == (tmp_path / "second" / path.name).read_bytes(), path.name


def made(*phases: tuple[str, float, float, float], run: str = RUN) -> list[Row]:
    """Compute phases: participant, start, wall, CPU."""
    return [phase_row(run, name, "compute", start, wall, cpu) for name, start, wall, cpu in phases]


def test_titles_state_the_finding() -> None:
    rows = made(("SiteA/sub-1", 0.0, 10.0, 9.0), ("SiteA/sub-2", 5.0, 31.2, 29.4))
    sentence = "CPU takes 93 % of the time of 2 participants; the slowest, SiteA/sub-2, took 31.2 s"
    assert cpu_io_finding(participant_times(rows)) == sentence
    assert cpu_io_finding(participant_times(rows[:1])) == "CPU takes 90 % of the time of SiteA/sub-1, which took 10.0 s"
    assert cpu_io_finding(participant_times(made(("sub-1", 0, 10, 2)))).startswith("I/O takes 80 % of the time")
    assert "180 % of the wall time" in cpu_io_finding(participant_times(made(("sub-1", 0, 10, 18))))
    assert cpu_io_finding([]) == gantt_finding(None) == "no participant finished"
    assert brain_volume_finding([]) == "no brain mask was made"
    summary = summarise(participant_times(rows))
    assert gantt_finding(summary) == "Makespan 36.2 s for 2 participants, 1.14 at a time on average, 2 at most"


def test_brain_volume_title(tmp_path: Path) -> None:
    group = tables(tmp_path, 5)[2]
    assert brain_volume_finding(group[:1]).startswith("Brain volume of the one image is ")
    assert f"of {len(group)} images); 1 stands out" in brain_volume_finding(group)
    (image,) = numbered_outliers(group)
    assert image in {row["image"] for row in group if row["outlier"]}


def test_io_time_below_zero_is_drawn_as_zero_and_said(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from neurotier.report import cpu_io

    notes: list[str] = []

    def listen(_figure: Figure, _title: str, note: str) -> None:
        notes.append(note)

    monkeypatch.setattr(cpu_io, "state", listen)
    cpu_io.draw_cpu_io(made(("sub-1", 0, 10, 18), ("sub-2", 0, 10, 9)), tmp_path / "cpu_io")
    assert "For 1 participant CPU exceeds wall time" in notes[0]
    assert "drawn as 0" in notes[0]
    assert read_plain(tmp_path / "cpu_io.tsv")[0]["io_s"] == "-8.0", "the table keeps the measured value"


def test_a_job_without_duration_and_very_long_names(tmp_path: Path) -> None:
    rows = made(("a" * 200 + "/sub-1", 0.0, 0.0, 0.0), ("sub-$x_1$", 0.0, 0.0, 0.0))
    draw_all(rows, [], [], tmp_path)
    assert (tmp_path / "cpu_io.svg").stat().st_size > 1000


def test_last_run_is_the_tables_last_row_else_the_latest_start() -> None:
    rows = made(("sub-1", 50.0, 1, 1), run=EARLIER) + made(("sub-2", 90.0, 1, 1))
    assert last_run(rows, []) == RUN
    assert last_run(rows, [{"run": RUN}, {"run": EARLIER}]) == EARLIER
    assert last_run([], []) is None


def test_lanes_never_overlap_and_are_as_many_as_the_peak() -> None:
    times = participant_times(made(*((f"sub-{n}", n * 1.0, 2.5 + n % 3, 1.0) for n in range(30))))
    times.sort(key=lambda time: time.start_s)
    lanes = slots(times)
    assert max(lanes) + 1 == max(running_jobs(times)[1])
    for lane in set(lanes):
        own = [time for time, at in zip(times, lanes, strict=True) if at == lane]
        assert all(first.end_s <= second.start_s for first, second in pairwise(own))
