"""The replay of the published experiment from logs made by hand: conditions, tables, figures, footnotes, page."""

from __future__ import annotations

import itertools
import re
import statistics
from pathlib import Path

import pytest
from neurotier.bigbrain.conditions import IncrementCondition
from neurotier.core.tables import Row, read_table
from neurotier.pages.bigbrain.tables import published_name
from neurotier.pages.published import PAGE, Replayed, replayed
from neurotier.published.claims import claim_rows, counts_text
from neurotier.published.conditions import absent, condition, device_and_mode
from neurotier.published.replay import Replay, read_published, write_tables
from page_reader import Reader, read, read_plain
from published_logs import write_checkout

DRAM = condition(40, "gnu-parallel", 25, ("DRAM", "App Direct"))
OPTANE = condition(40, "gnu-parallel", 25, ("Optane", "Memory mode"))


@pytest.fixture(scope="module")
def replay(tmp_path_factory: pytest.TempPathFactory) -> Replay:
    return read_published(write_checkout(tmp_path_factory.mktemp("checkout")))


def said_by(replay: Replay, predictions: list[Row]) -> dict[str, str]:
    """What each figure that is drawn says, by its name."""
    data = replayed(replay, predictions, validation=validation_of(predictions))
    names = [(figure, *one) for figure in PAGE.figures for one in figure.names(None).items()]
    charts = {name: figure.chart(data, *given) for figure, name, (_, given) in names}
    return {name: chart.says for name, chart in charts.items() if chart.table}


def read_page(data: Replayed, results: Path) -> Reader:
    """Write figures and page, and read it."""
    PAGE.render(data, results, None)
    return read(results / "published.html")


def prediction(one: IncrementCondition, member: str, predicted_s: float, measured_s: float) -> Row:
    device, mode = device_and_mode(one)
    about: Row = {"resolution_um": one.resolution_um, "engine": one.engine, "processes": one.parallelism}
    about |= {"device": device, "mode": mode, "member": member, "stalled": 0, "limit": "x"}
    times = {"predicted_s": predicted_s, "low_s": 0.9 * predicted_s, "high_s": 1.1 * predicted_s}
    return about | times | {"measured_s": measured_s, "ratio": predicted_s / measured_s}


PREDICTIONS = [
    prediction(DRAM, "fluid measured", 16.5, 15.0),
    prediction(DRAM, "paper", 60.0, 15.0),
    prediction(OPTANE, "fluid measured", 27.0, 30.0),
]


def validation_of(predictions: list[Row]) -> list[Row]:
    """Rows of the validation without each condition, and without its device: twice as far off."""
    rows = []
    for one, (held_out, factor) in itertools.product(predictions, (("condition", 1.0), ("device", 2.0))):
        predicted_s, ratio = factor * one["predicted_s"], factor * one["ratio"]
        judged = {"close": 1 / 1.2 <= ratio <= 1.2, "in_interval": one["low_s"] <= one["measured_s"] <= one["high_s"]}
        rows.append(one | {"held_out": held_out, "predicted_s": predicted_s, "ratio": ratio} | judged)
    return rows


VALIDATION = validation_of(PREDICTIONS)


def test_conditions_of_the_paper_and_others(replay: Replay) -> None:
    names = [published_name(one) for one in replay.conditions]
    assert names == [
        "40 µm, gnu-parallel on DRAM, 25 at once",
        "40 µm, gnu-parallel on Optane, Memory mode, 25 at once",
        "40 µm, gnu-parallel on Optane, Memory mode, 25 at once, 60delay withpc",
        "40 µm, gnu-parallel on Optane, Memory mode, 25 at once, in results",
        "40 µm, gnu-parallel on local SSD, App Direct, 25 at once",
        "40 µm, gnu-parallel on Isilon, App Direct, 96 at once",
    ], "what was made again is that of the paper, and what is not whole is none"
    assert len(replay.conditions[DRAM]) == 2
    missing = absent(replay.conditions)
    assert missing[1] == ["Optane, App Direct", "local SSD, Memory mode", "Isilon, Memory mode", "Isilon, App Direct"]
    assert {number: missing[number] for number in (5, 6, 7, 8)} == {number: ["all"] for number in (5, 6, 7, 8)}


def test_tables(replay: Replay, tmp_path: Path) -> None:
    write_tables(replay, tmp_path)
    runs = {Path(row["run"]).name: row for row in read_table(tmp_path / "published_runs.tsv", "published_runs")}
    assert len(runs) == 8
    first = runs["10-tmpfsAD_1it_25cpus_40bb-0.out"]
    assert (first["valid"], first["makespan_s"], first["incomplete_blocks"]) == ("valid", 10.0, 0)
    assert runs["8-isilon_1it_25cpus_40bb-0.out"]["valid"] == "invalid: 124 blocks are not in the log"
    assert runs["13-localAD_1it_25cpus_40bb-0.out"]["incomplete_blocks"] == 2
    assert runs["9-tmpfs_1it_25cpus_40bb-0.out"]["variant"] == "in results"
    phases = read_table(tmp_path / "published_phases.tsv", "published_phases")
    ssd = {row["phase"]: row for row in phases if "localAD" in row["run"]}
    assert list(ssd) == ["load header", "read+increment", "write", "task"]
    assert ssd["write"]["sum_s"] == pytest.approx(123 * 30.0)
    (skipped,) = read_table(tmp_path / "published_skipped.tsv", "published_skipped")
    assert skipped["path"] == "experiments/bigbrain-incrementation/results/notes.out"
    (bids,) = read_table(tmp_path / "published_bids_app.tsv", "compared_runs")
    assert (bids["makespan_s"], bids["logged_makespan_s"]) == (120.0, 113.0)


def test_figures_with_and_without_predictions(replay: Replay, tmp_path: Path) -> None:
    said = said_by(replay, PREDICTIONS)
    assert list(said) == [
        *("predicted", "table_one", "bigbrain_makespans", "bigbrain_phases", "gantt_40um_25", "gantt_40um_96"),
        *("bids_makespan", "bids_cpu_io"),
    ]
    assert said["bigbrain_makespans"].startswith(
        "Incrementing 125 blocks took 15.0 s (gnu-parallel on DRAM, 25 at once)"
    )
    assert said["predicted"] == (
        "Without their own runs, conditions are predicted within a factor of 4.00 (Eq. (1)), 1.11 (fluid, measured)"
    )
    assert "predicted" not in said_by(replay, [])
    read_page(replayed(replay, PREDICTIONS, validation=VALIDATION), tmp_path)
    figures = PAGE.figures_folder(tmp_path)
    for name in said:
        assert {path.suffix for path in figures.glob(f"{name}.*")} == {".svg", ".png", ".tsv", ".rst"}
    drawn = read_plain(figures / "bigbrain_makespans.tsv")
    assert [float(row["makespan_s"]) for row in drawn if row["kind"] == "measured"][:3] == [10.0, 20.0, 30.0]
    dram = {row["of"]: float(row["makespan_s"]) for row in drawn if row["tier"] == "DRAM" and row["kind"] != "measured"}
    assert dram == {"paper": 60.0, "fluid measured": 16.5}, "the table's Eq. (1) goes before our own"
    assert {row["variant"] for row in drawn} == {"", "60delay withpc", "in results"}
    gantt = [row for row in read_plain(figures / "gantt_40um_25.tsv") if row["tier"] == "local SSD, App Direct"]
    assert len({row["lane"] for row in gantt}) == 25
    assert len(gantt) == 125 + 125 + 123
    phases = read_plain(figures / "bigbrain_phases.tsv")
    assert float(phases[0]["mean_parallelism"]) == pytest.approx(125 * (1.75 / 10 + 3.75 / 20) / 2)


def test_the_page_says_what_is_absent_skipped_and_known_to_be_wrong(replay: Replay, tmp_path: Path) -> None:
    claims = claim_rows(replay)
    reader = read_page(replayed(replay, PREDICTIONS, validation=VALIDATION, claims=claims), tmp_path)
    page = (tmp_path / "published.html").read_text()
    assert f"{counts_text(claims)}." in reader.text
    assert page.index("claims that these logs can decide") < page.index("<figure") < page.index("do not have</h2>")
    assert page.index("<figure") < page.index("notes.out"), "what is skipped stands below, folded"
    assert "1 file skipped: its name tells no condition" in reader.text
    for claim in claims:
        assert claim["claim"] in reader.text
    assert "8 BigBrain runs, 1 BIDS App run, the storage benchmark of 4 devices" in reader.text
    assert "Figure 5: no run" in reader.text
    assert "Figures 9 and 10, 96 processes: no run" in reader.text
    assert "notes.out: its name does not tell a condition" in reader.text
    assert "124 blocks are not in the log" in reader.text
    assert re.search(r"local SSD, App Direct: 2 of 125 blocks not written.* 300\.00 s", reader.text)
    assert reader.text.count("is the end of the task that is last by name") == 1
    assert "Who did what when (20 µm, 25 processes)" in reader.text, "among what is not shown"
    own = ("#", "data:", "published/")
    assert all(at.startswith(own) or at.endswith("workflow/measures.md") for _, at in reader.addresses)
    assert said_by(replay, PREDICTIONS).keys() < set(reader.ids)


def test_the_published_subset(reference: Path) -> None:
    replay = read_published(reference)
    assert replay.skipped == []
    logs = [path for path in reference.rglob("*.out") if "cpu" in path.name]
    assert sorted(run.path for run in replay.runs) == sorted(logs)
    assert [run.path.name for run in replay.runs if run.invalid_because] == []
    printed = [one for one in replay.bandwidths if one.published]
    assert [one.device for one in printed] == ["DRAM", "Optane", "local SSD", "Isilon"]
    for one in printed:
        assert tuple(round(value, 1) for value in one.of(statistics.fmean)) == one.published
    assert sum(run.resolution_um == 40 for run in replay.runs) == 42  # all; those of 20 um are a part
    assert absent(replay.conditions).keys() == {5, 6, 7, 8}
    assert said_by(replay, [])["bigbrain_makespans"].endswith("Eq. (1) is off by a factor of 2.11 (18 conditions)")
    estimates = [replay.equation_one_s(condition) for condition in replay.conditions]
    assert [round(value or 0) for value in estimates[:7]] == [37, 55, 55, 467, 467, 1342, 1342]
