"""A checkout with damaged logs: each is named and skipped, and the figures of the others are what they were."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest
from neurotier.core.errors import InputError
from neurotier.core.tables import Row, read_table
from neurotier.published.replay import read_published, write_tables
from neurotier.published.skipped import DAMAGED, UNNAMED
from published_logs import DISK_BENCH, bids_tasks, spark_log, task, whole_log, write_checkout, write_log

GOOD = whole_log(2.0)
GNU, SPARK = "99-tmpfsAD_1it_25cpus_40bb-{}.out", "spark-99-tmpfs_1it_25cpus_20bb-{}.out"
TASKS = bids_tasks(2)
TWO = task(0, 0.0) + task(1, 1.0)
BLOCKS = [
    (TWO.replace("1572374320.25", "soon"), "no times"),
    (TWO.replace("1572374320.25", "nan"), "no times"),
    (TWO.replace("1572374320.25", "1572374399.25"), "ends before it starts"),
    (TWO.replace("read_file", "read_disk"), "'read_disk' is no phase"),
    (spark_log(), "has 1 fields"),
]
PEOPLE = [
    ("", "no whole log"),
    ("[]", "no whole log"),
    ('{"tasks": [1]}', "no whole log"),
    ('{"jobs": []}', "'tasks'"),
    (TASKS.replace('"Name"', '"name"'), "'Name'"),
    (TASKS.replace("2m0.000s", "60"), "no duration"),
    (TASKS.replace("Tue Sep  3 17:20:00 EDT 2019", "soon"), "no time of day"),
    (TASKS.replace("17:22:00", "17:19:00"), "ends before it starts"),
    (TASKS.replace('"0m30.000s"', "30.5"), "no whole log"),
]
DAMAGES = {
    **{f"results/40bb_redo/{GNU.format(n)}": (text.encode(), said) for n, (text, said) in enumerate(BLOCKS, 80)},
    **{f"bids-app-example/disk-{n}/tasks.json": (text.encode(), said) for n, (text, said) in enumerate(PEOPLE, 10)},
    "results/40bb_redo/" + GNU.format(91): (GOOD[: len(GOOD) // 2 - 7].encode(), "ends within a line"),
    "results/40bb_redo/" + GNU.format(92): (b"", "is empty"),
    "results/40bb_redo/" + GNU.format(93): (GOOD.replace("read_file", "read_f\u00efle", 1).encode(), "is not text"),
    "results/40bb_redo/" + GNU.format(94): (b"\x00\xff\xfe" * 100, "is not text"),
    "results/40bb_redo/" + GNU.format(95): (GOOD.replace(" 14003\n", "\n", 1).encode(), "has 4 fields"),
    "results/20bb_redo/" + SPARK.format(96): (spark_log()[:-9].encode(), "ends within a line"),
    "system_conf/mem_diskbench.out": (f"{DISK_BENCH}tmpfs,fast,1 GB/s,1 GB/s\n".encode(), "no bandwidth"),
    "bids-app-example/disk-7/tasks.json": (TASKS[: len(TASKS) // 2].encode(), "no whole log"),
    "bids-app-example/disk-8/tasks.json": (b"\xff\xfe{", "no whole log"),
    "bids-app-example/disk-9/makespan_seconds": (b"soon\n", "no number of seconds"),
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
    room = whole / "experiments"
    write_log(room / "bids-app-example" / "disk-9", "tasks.json", bids_tasks(3))
    results = room / "bigbrain-incrementation"
    before = tables_of(whole, tmp_path / "before")
    spoiled = tmp_path / "spoiled"
    shutil.copytree(whole, spoiled)
    for name, (content, _) in DAMAGES.items():
        folder = spoiled / results.relative_to(whole) if name.startswith("results") else spoiled / "experiments"
        file = folder / name
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_bytes(content)
    after = tables_of(spoiled, tmp_path / "after")
    assert before == after, "the figures of what is whole are what they were"
    rows = {row["path"]: row for row in read_table(tmp_path / "after" / "published_skipped.tsv", "published_skipped")}
    for name, (_, said) in DAMAGES.items():
        (row,) = [row for path, row in rows.items() if path.endswith(name)]
        assert row["kind"] == DAMAGED
        assert said in row["reason"]
        assert "\n" not in row["reason"]
    others = {row["kind"] for path, row in rows.items() if not any(path.endswith(name) for name in DAMAGES)}
    assert others == {UNNAMED}
    assert len(rows) == len(DAMAGES) + 1


def test_a_checkout_of_nothing_else_says_what_is_wrong_with_the_first(tmp_path: Path) -> None:
    for number in range(3):
        write_log(tmp_path, GNU.format(number), "")
    with pytest.raises(InputError, match=r"is empty \(and 2 more files cannot be read\)"):
        read_published(tmp_path)
