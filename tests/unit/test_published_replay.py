"""The replay of the published experiment: from logs made by hand, the published ones, and damaged ones."""

from __future__ import annotations

import re
import shutil
from pathlib import Path

import pytest
from neurotier.bigbrain.conditions import IncrementCondition
from neurotier.core.errors import InputError
from neurotier.core.tables import Row, read_table, write_table
from neurotier.pages.bigbrain.tables import published_name
from neurotier.pages.kit.chart import Chart
from neurotier.pages.published import PAGE, replayed
from neurotier.published.claims import CONTRADICTED, HOLDS, PARTLY, UNKNOWN, claim_rows, counts_text
from neurotier.published.conditions import condition, key_cells, missing_conditions
from neurotier.published.replay import Replay, read_published, write_tables
from neurotier.published.skipped import DAMAGED, UNNAMED
from page_reader import read
from published_logs import DISK_BENCH, bids_tasks, spark_log, task, whole_log, write_checkout, write_log
from shown_values import shown

DRAM = condition(40, "gnu-parallel", 25, "DRAM")
OPTANE = condition(40, "gnu-parallel", 25, "Optane, Memory mode")


@pytest.fixture(scope="module")
def replay(tmp_path_factory: pytest.TempPathFactory) -> Replay:
    return read_published(write_checkout(tmp_path_factory.mktemp("checkout")))


def charts_of(replay: Replay, predictions: list[Row]) -> dict[str, Chart]:
    """Each figure that is drawn, by its name."""
    data = replayed(replay, predictions, validation=validation_of(predictions))
    names = [(figure, *one) for figure in PAGE.figures for one in figure.names(None).items()]
    charts = {name: figure.chart(data, *given) for figure, name, (_, given) in names}
    return {name: chart for name, chart in charts.items() if chart.table}


def prediction(one: IncrementCondition, member: str, predicted_s: float, measured_s: float) -> Row:
    ends = {"low_s": 0.9 * predicted_s, "high_s": 1.1 * predicted_s, "ratio": predicted_s / measured_s}
    about = {"member": member, "stalled": 0, "limit": "x", "predicted_s": predicted_s, "measured_s": measured_s}
    return key_cells(one) | about | ends


PREDICTIONS = [
    prediction(DRAM, "fluid measured", 16.5, 15.0),
    prediction(DRAM, "paper", 60.0, 15.0),
    prediction(OPTANE, "fluid measured", 27.0, 30.0),
]


def validation_of(predictions: list[Row]) -> list[Row]:
    """Rows of the validation without each condition, and without its device: twice as far off."""
    judged = {"close": False, "in_interval": True}
    return [
        one | judged | {"held_out": held_out, "ratio": factor * one["ratio"]}
        for one in predictions
        for held_out, factor in (("condition", 1.0), ("device", 2.0))
    ]


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
    missing = missing_conditions(replay.conditions)
    assert missing[1] == ["Optane, App Direct", "local SSD, Memory mode", "Isilon, Memory mode", "Isilon, App Direct"]
    assert {number: missing[number] for number in (5, 6, 7, 8)} == {number: ["all"] for number in (5, 6, 7, 8)}


def test_tables(replay: Replay, tmp_path: Path) -> None:
    write_tables(replay, tmp_path)
    runs = {Path(row["run"]).name: row for row in read_table(tmp_path / "published_runs.tsv", "published_runs")}
    assert len(runs) == 8
    first = runs["10-tmpfsAD_1it_25cpus_40bb-0.out"]
    assert shown(first, "valid makespan_s incomplete_blocks") == "valid 10 0"
    assert runs["8-isilon_1it_25cpus_40bb-0.out"]["valid"] == "invalid: 124 blocks are not in the log"
    assert runs["13-localAD_1it_25cpus_40bb-0.out"]["incomplete_blocks"] == 2
    phases = read_table(tmp_path / "published_phases.tsv", "published_phases")
    ssd = {row["phase"]: row for row in phases if "localAD" in row["run"]}
    assert list(ssd) == ["load header", "read+increment", "write", "task"]
    assert ssd["write"]["sum_s"] == pytest.approx(123 * 30.0)
    (bids,) = read_table(tmp_path / "published_bids_app.tsv", "compared_runs")
    assert shown(bids, "makespan_s logged_makespan_s") == "120 113"


def test_figures_with_and_without_predictions(replay: Replay) -> None:
    charts = charts_of(replay, PREDICTIONS)
    assert list(charts) == [
        *("predicted", "table_one", "bigbrain_makespans", "bigbrain_phases", "gantt_40um_25", "gantt_40um_96"),
        *("bids_makespan", "bids_cpu_io"),
    ]
    assert charts["bigbrain_makespans"].says.startswith(
        "Incrementing 125 blocks took 15.0 s (gnu-parallel on DRAM, 25 at once)"
    )
    assert "off by" not in charts["bigbrain_makespans"].says, "the page says so once, without outliers"
    assert charts["predicted"].says == (
        "Without their own runs, predictions are off by a factor of 4.00 (Eq. (1)), 1.11 (fluid, measured) on average"
    )
    assert "predicted" not in charts_of(replay, [])
    drawn = charts["bigbrain_makespans"].table
    assert [row["makespan_s"] for row in drawn if row["kind"] == "measured"][:3] == [10.0, 20.0, 30.0]
    dram = {row["of"]: row["makespan_s"] for row in drawn if row["tier"] == "DRAM" and row["kind"] != "measured"}
    assert dram == {"paper": 60.0, "fluid measured": 16.5}, "the table's Eq. (1) goes before our own"
    assert {row["variant"] for row in drawn} == {"", "60delay withpc", "in results"}
    gantt = [row["lane"] for row in charts["gantt_40um_25"].table if row["tier"].startswith("local SSD")]
    assert (len({*gantt}), len(gantt)) == (25, 125 + 125 + 123)


def test_the_page_says_what_is_absent_skipped_and_known_to_be_wrong(replay: Replay, tmp_path: Path) -> None:
    claims = claim_rows(replay)
    data = replayed(replay, PREDICTIONS, validation=validation_of(PREDICTIONS), claims=claims)
    PAGE.render(data, tmp_path, None)
    reader = read(tmp_path / "published.html")
    page = (tmp_path / "published.html").read_text()
    assert page.index("claims that these logs can decide") < page.index("<figure") < page.index("do not have</h2>")
    assert page.index("<figure") < page.index("notes.out"), "what is skipped stands below, folded"
    for said in (
        f"{counts_text(claims)}.",
        *(claim["claim"] for claim in claims),
        "1 file skipped: its name gives no condition",
        "8 BigBrain runs, 1 BIDS App run, the storage benchmark of 4 devices",
        "Figure 5: no run",
        "Figures 9 and 10, 96 processes: no run",
        "notes.out: its name gives no condition",
        "124 blocks are not in the log",
        "Who did what when (20 µm, 25 processes)",  # among what is not shown
    ):
        assert said in reader.text, said
    assert re.search(r"local SSD, App Direct: 2 of 125 blocks not written.* 300\.00 s", reader.text)
    assert reader.text.count("has the end of the task whose name sorts last") == 1
    own = ("#", "data:", "published/")
    assert all(at.startswith(own) or at.endswith("workflow/measures.md") for _, at in reader.addresses)
    assert charts_of(replay, PREDICTIONS).keys() < set(reader.ids)


def test_the_published_subset(reference: Path) -> None:
    replay = read_published(reference)
    assert replay.skipped == []
    logs = [path for path in reference.rglob("*.out") if "cpu" in path.name]
    assert sorted(run.path for run in replay.runs) == sorted(logs)
    assert [run.path.name for run in replay.runs if run.invalid_because] == []
    printed = [one for one in replay.bandwidths if one.published]
    assert [one.device for one in printed] == ["DRAM", "Optane", "local SSD", "Isilon"]
    for one in printed:
        assert tuple(round(value, 1) for value in one.means) == one.published
    assert missing_conditions(replay.conditions).keys() == {5, 6, 7, 8}
    assert charts_of(replay, [])["bigbrain_makespans"].says.endswith("954 s (spark on Optane, App Direct, 25 at once)")
    estimates = [replay.equation_one_s(condition) for condition in replay.conditions]
    assert [round(value or 0) for value in estimates[:7]] == [37, 55, 55, 467, 467, 1342, 1342]


TWELVE = "App Direct is approximately 12x slower than Memory mode"
SIMILAR = "25 to 96: performance improved by a similar factor on all devices"


def verdicts(checkout: Path) -> dict[str, Row]:
    return {row["claim"]: row for row in claim_rows(read_published(checkout))}


@pytest.mark.parametrize(("times", "verdict"), [(12, HOLDS), (13, HOLDS), (10, PARTLY), (20, CONTRADICTED)])
def test_a_claim_is_judged_by_the_figure_of_the_logs(tmp_path: Path, times: int, verdict: str) -> None:
    write_log(tmp_path / "40bb_redo", "1-tmpfs_1it_25cpus_40bb-0.out", whole_log(4.0))
    write_log(tmp_path / "40bb_redo", "1-optaneAD_1it_25cpus_40bb-0.out", whole_log(4.0 * times))
    found = verdicts(tmp_path)[TWELVE]
    assert shown(found, "place verdict found") == f"III-A1 {verdict} {times:.1f} times"


def test_without_its_runs_a_claim_cannot_be_told(tmp_path: Path) -> None:
    found = verdicts(write_checkout(tmp_path))
    no_run = "no run of Optane, App Direct with 25 processes at 40 µm, GNU Parallel"
    assert shown(found[TWELVE], "verdict found") == f"{UNKNOWN} {no_run}"
    assert found[SIMILAR]["verdict"] == UNKNOWN


def test_the_published_claims(reference: Path, tmp_path: Path) -> None:
    rows = claim_rows(read_published(reference))
    write_table(tmp_path / "published_claims.tsv", "published_claims", rows)
    assert read_table(tmp_path / "published_claims.tsv", "published_claims") == rows
    found = {row["claim"]: row for row in rows}
    assert len(found) == len(rows)
    said = {claim for claim, row in found.items() if row["verdict"] == CONTRADICTED}
    assert said == {
        "we used the entire CoRR dataset",
        "local SSD was approximately 1.4x slower than expected, in both modes",
        "Spark's writes are 1.4-1.6x longer with Optane",
        "Isilon is limited by the network speed of 10 Gbps",
    }
    assert "as drawn: 3.78 times; by Table I: 5.36 times" in found["Memory mode is 3.8x faster than expected"]["found"]
    unknown = [row for row in rows if row["verdict"] == UNKNOWN]
    assert all("no run" in row["found"] or "too few" in row["found"] for row in unknown), "what is missing is named"
    table_one = [row for row in rows if row["claim"].startswith("Table I")]
    assert [(row["place"], row["verdict"]) for row in table_one] == [("II-A", HOLDS)] * 2


@pytest.mark.parametrize(
    ("direct_s", "verdict"),
    [((100.0, 101.0, 99.5), HOLDS), ((100.0, 160.0, 70.0), UNKNOWN), ((200.0, 201.0, 199.0), CONTRADICTED)],
)
def test_no_difference_holds_only_where_the_repetitions_can_tell(
    tmp_path: Path, direct_s: tuple[float, ...], verdict: str
) -> None:
    """p > 0.05 of three repetitions says nothing by itself: the ratio has to be known to a tenth."""
    for device in ("local", "isilon"):
        for label, times_s in ((device, (100.0, 100.5, 99.0)), (f"{device}AD", direct_s)):
            for repetition, time_s in enumerate(times_s):
                log = whole_log(time_s / 5)
                write_log(tmp_path / "40bb_redo", f"1-{label}_1it_25cpus_40bb-{repetition}.out", log)
    found = verdicts(tmp_path)["other than for Optane, no significant difference between the modes"]
    assert found["verdict"] == verdict
    assert "ratio" in found["found"]


GOOD = whole_log(2.0)
GNU, SPARK = "99-tmpfsAD_1it_25cpus_40bb-{}.out", "spark-99-tmpfs_1it_25cpus_20bb-{}.out"
TASKS = bids_tasks(2)
TWO = task(0, 0.0) + task(1, 1.0)
BLOCKS = [
    (TWO.replace("1572374320.25", "soon"), "not times"),
    (TWO.replace("1572374320.25", "nan"), "not times"),
    (TWO.replace("1572374320.25", "1572374399.25"), "ends before it starts"),
    (TWO.replace("read_file", "read_disk"), "'read_disk' is not a phase"),
    (spark_log(), "has 1 fields"),
]
PEOPLE = [
    ("", "not a whole log"),
    ("[]", "not a whole log"),
    ('{"tasks": [1]}', "not a whole log"),
    ('{"jobs": []}', "'tasks'"),
    (TASKS.replace('"Name"', '"name"'), "'Name'"),
    (TASKS.replace("2m0.000s", "60"), "not a duration"),
    (TASKS.replace("Tue Sep  3 17:20:00 EDT 2019", "soon"), "not a time of day"),
    (TASKS.replace("17:22:00", "17:19:00"), "ends before it starts"),
    (TASKS.replace('"0m30.500s"', "30.5"), "not a whole log"),
]
LOGS = "bigbrain-incrementation/results"
DAMAGES = {
    **{f"{LOGS}/40bb_redo/{GNU.format(number)}": each for number, each in enumerate(BLOCKS, 80)},
    **{f"bids-app-example/disk-{number}/tasks.json": each for number, each in enumerate(PEOPLE, 10)},
    f"{LOGS}/40bb_redo/{GNU.format(91)}": (GOOD[: len(GOOD) // 2 - 7], "ends within a line"),
    f"{LOGS}/40bb_redo/{GNU.format(92)}": ("", "is empty"),
    f"{LOGS}/40bb_redo/{GNU.format(93)}": (GOOD.replace("read_file", "read_f\u00efle", 1), "is not text"),
    f"{LOGS}/40bb_redo/{GNU.format(94)}": ("\x00\udcff\udcfe" * 100, "is not text"),
    f"{LOGS}/40bb_redo/{GNU.format(95)}": (GOOD.replace(" 14003\n", "\n", 1), "has 4 fields"),
    f"{LOGS}/20bb_redo/{SPARK.format(96)}": (spark_log()[:-9], "ends within a line"),
    "system_conf/mem_diskbench.out": (f"{DISK_BENCH}tmpfs,fast,1 GB/s,1 GB/s\n", "not a bandwidth"),
    "bids-app-example/disk-7/tasks.json": (TASKS[: len(TASKS) // 2], "not a whole log"),
    "bids-app-example/disk-8/tasks.json": ("\udcff\udcfe{", "not a whole log"),
    "bids-app-example/disk-9/makespan_seconds": ("soon\n", "not a number of seconds"),
}
"""File below `experiments`, to its content and what is said of it."""


def tables_of(checkout: Path, folder: Path) -> dict[str, list[Row]]:
    """All tables of a checkout but that of what was skipped."""
    write_tables(read_published(checkout), folder)
    names = {"published_bids_app": "compared_runs"}
    return {
        file.stem: read_table(file, names.get(file.stem, file.stem))
        for file in sorted(folder.glob("*.tsv"))
        if file.stem != "published_skipped"
    }


def test_a_folder_of_damaged_logs(tmp_path: Path) -> None:
    whole = write_checkout(tmp_path / "whole")
    write_log(whole / "experiments" / "bids-app-example" / "disk-9", "tasks.json", bids_tasks(3))
    before = tables_of(whole, tmp_path / "before")
    spoiled = tmp_path / "spoiled"
    shutil.copytree(whole, spoiled)
    for name, (content, _) in DAMAGES.items():
        write_log(spoiled / "experiments", name, "").write_text(content, "utf-8", "surrogateescape")
    assert before == tables_of(spoiled, tmp_path / "after"), "the figures of what is whole are what they were"
    rows = {row["path"]: row for row in read_table(tmp_path / "after" / "published_skipped.tsv", "published_skipped")}
    for name, (_, said) in DAMAGES.items():
        row = rows.pop(f"experiments/{name}")
        assert row["kind"] == DAMAGED
        assert re.search(rf"\A.*{re.escape(said)}.*\Z", row["reason"])
    assert [row["kind"] for row in rows.values()] == [UNNAMED]


def test_a_checkout_of_nothing_else_says_what_is_wrong_with_the_first(tmp_path: Path) -> None:
    for number in range(3):
        write_log(tmp_path, GNU.format(number), "")
    with pytest.raises(InputError, match=r"is empty \(and 2 more files cannot be read\)"):
        read_published(tmp_path)
