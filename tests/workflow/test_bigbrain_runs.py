"""The BigBrain incrementation as a user runs it: each engine, a kill, bad blocks, and a tier that fills."""

from __future__ import annotations

import hashlib
import os
import select
import signal
import socket
import struct
from collections.abc import Callable
from contextlib import ExitStack
from pathlib import Path

import nibabel as nib
import numpy as np
import psutil
import pytest
from conftest import nightly
from published_logs import write_checkout
from shown_values import shown
from spark_cluster import OPTIONS, spark_cluster
from support import PATIENCE_S, Project, listening, processes_in, system, wait_for

pytestmark = pytest.mark.usefixtures("gnu_parallel")

SMALL = {"count": 4, "scale": 0.03, "iterations": 2, "parallelism": [2], "predict": False}
ENGINES = ["snakemake", "gnu-parallel", "spark"]
RUNS = "bigbrain/bigbrain_runs.tsv"
TABLES = ["results/bigbrain/bigbrain_predictions.tsv"]
"""What is asked for where figures and page do not matter, which take as long as small runs; it comes after all runs."""


@pytest.fixture(params=["gnu-parallel", *nightly("snakemake", "spark")])
def engine(request: pytest.FixtureRequest) -> str:
    """Each engine, whose program is real; at once one is tried."""
    if request.param == "spark":
        request.getfixturevalue("spark")
    return str(request.param)


@pytest.fixture(scope="module")
def expected(lasting: Project) -> dict[str, str]:
    """What the voxels of each block must be after all iterations, computed by other means."""
    lasting.succeeds("results/bigbrain/blocks/local.tsv", bigbrain=SMALL)
    blocks = lasting.table("bigbrain/blocks/local.tsv")
    return {block["block"]: voxel_checksum(Path(block["file"]), SMALL["iterations"]) for block in blocks}


def voxel_checksum(file: Path, add: object = 0) -> str:
    voxels = np.asanyarray(nib.load(file).dataobj).astype(np.int64) + np.int64(str(add))
    return hashlib.sha256((voxels % 65536).tobytes(order="F")).hexdigest()


def written(project: Project, iteration: int) -> dict[str, str]:
    """Blocks that a run has kept, to the checksum of their voxels."""
    files = project.folder.glob(f"neurotier-*/bigbrain/*/runs/*/*/*/*/{iteration}/*.nii")
    return {file.stem: voxel_checksum(file) for file in files}


def kill_tree(process: psutil.Process) -> None:
    """End a process and all below it, as a machine does that loses power."""
    for one in [process, *process.children(recursive=True)]:
        try:
            os.kill(one.pid, signal.SIGKILL)
        except ProcessLookupError:
            continue


GADGET = b"\0\0\0\4name\xac\xed\0\5"
"""What Spark's driver, if it trusts whoever sends it, takes for a Java object to be made, of whatever class."""


def answer_of_spark(project: Project) -> bytes:
    """What the JVM says to who sends it an object, in a request of its protocol."""
    (java,) = (one for one in processes_in(project.folder) if one.name() == "java")
    ports = [one.laddr.port for one in java.net_connections("inet") if not one.raddr]
    with ExitStack() as stack:
        sockets = [stack.enter_context(socket.create_connection(("127.0.0.1", port))) for port in ports]
        for one in sockets:
            one.sendall(struct.pack(">qbqi", 21 + len(GADGET), 3, 1, len(GADGET)) + GADGET)
        (first, *_), _, _ = select.select(sockets, [], [], PATIENCE_S)
        return bytes(first.recv(4096))


def test_blocks_are_incremented_and_a_killed_run_is_taken_up_again(
    project: Project, expected: dict[str, str], engine: str
) -> None:
    snakemake = project.start("bigbrain", bigbrain={**SMALL, "engines": [engine], "delay_s": 0.5, "keep": "final"})
    records = project.results / "bigbrain/runs" / engine / "local/2/1/records"
    # two at once: Snakemake has noted one of them
    wait_for(lambda: len(list(records.glob("bigbrain*.json"))) >= 3, snakemake)
    assert listening(project.folder) <= {"127.0.0.1"}
    if engine == "spark":
        assert b"Expected SaslMessage" in answer_of_spark(project)
    kill_tree(psutil.Process(snakemake.pid))
    snakemake.wait(timeout=PATIENCE_S)
    done = {file: file.stat().st_mtime_ns for file in records.glob("bigbrain*.json")}
    assert 0 < len(done) < 8

    project.succeeds(*(["bigbrain"] if engine == "spark" else TABLES))
    assert written(project, 2) == expected
    assert written(project, 1) == {}
    (run,) = project.table(RUNS)
    assert shown(run, "engine tier incomplete_blocks") == f"{engine} local 0"
    assert "it was interrupted and taken up again" in run["valid"]
    assert float(run["makespan_s"]) > 0
    for phase in ("load_header", "read", "increment", "write", "delay"):
        assert len(set(project.columns("block iteration", "bigbrain/bigbrain_phases.tsv", phase=phase))) == 8, phase
    kept = [file for file, changed_ns in done.items() if file.stat().st_mtime_ns == changed_ns]
    assert len(kept) >= len(done) - 2, "but for two at once, what was complete was not done again"
    if engine == "spark":
        assert float(run["start_up_s"]) > 0
        assert set(project.columns("attempt", "bigbrain/bigbrain_spark.tsv")) == {"1", "2"}
    if engine == "gnu-parallel":
        joblogs = sorted((project.results / "logs/run_gnu_parallel").rglob("joblog.*.tsv"))
        assert [file.name for file in joblogs] == ["joblog.1.tsv", "joblog.2.tsv"]
        assert joblogs[1].read_text().startswith("Seq\tHost\tStarttime")


@pytest.mark.nightly
@pytest.mark.usefixtures("spark")
def test_spark_reads_files_itself_as_published(project: Project, expected: dict[str, str]) -> None:
    bigbrain = {**SMALL, "engines": ["spark"], "pairing": "published", "keep": "all", "delay_s": 0.3}
    (line,) = project.fails("bigbrain", bigbrain={**bigbrain, "spark_options": {"spark.driver.memory": "100m"}}).lines(
        "neurotier: engine spark: Spark failed: "
    )
    assert "IllegalArgumentException" in line

    project.succeeds("bigbrain", bigbrain=bigbrain)
    assert written(project, 2) == expected
    (run,) = project.table(RUNS)
    assert shown(run, "incomplete_blocks read_s pairing peak_parallelism") == "0 n/a published 2"
    assert set(project.columns("tasks", "bigbrain/bigbrain_spark.tsv")) == {"8"}  # a block each
    driver_s = sum(map(float, project.columns("sum_s", "bigbrain/bigbrain_spark.tsv", of="driver")))
    assert driver_s == pytest.approx(float(run["makespan_s"]), abs=0.01)
    page = project.page("bigbrain")
    assert "Spark by its parts" in page
    assert "<td>driver</td>" in page


@pytest.mark.alone
@pytest.mark.nightly
@pytest.mark.usefixtures("spark")
def test_spark_runs_on_a_standalone_cluster(project: Project, expected: dict[str, str], tmp_path: Path) -> None:
    bigbrain = {**SMALL, "engines": ["spark"], "keep": "final", "delay_s": 0.3, "spark_options": OPTIONS}
    with spark_cluster(tmp_path / "cluster") as url:
        project.succeeds(f"results/{RUNS}", bigbrain={**bigbrain, "spark_master": url})
    assert written(project, 2) == expected
    assert project.columns("valid peak_parallelism", RUNS) == ["valid 2"]
    started = [line for log in tmp_path.glob("cluster/worker*.log") for line in log.read_text().splitlines()]
    assert sum("Asked to launch executor" in line for line in started) == 2


@pytest.mark.parametrize("engines", [ENGINES[:2], *nightly((ENGINES,))], ids=len)
def test_engines_give_the_same_bytes_and_leave_nothing(
    project: Project, engines: list[str], request: pytest.FixtureRequest
) -> None:
    if "spark" in engines:
        request.getfixturevalue("spark")
    write_checkout(project.folder / "checkout")
    bigbrain = {**SMALL, "tiers": ["local"], "engines": engines}
    ended = project.succeeds("bigbrain", bigbrain=bigbrain, published="checkout")
    runs = project.table(RUNS)
    assert [run["engine"] for run in runs] == engines
    assert len({run["sha256"] for run in runs}) == 1
    assert int(runs[0]["wrapped_voxels"]) > 0
    ended.says(f"BigBrain: outputs of {len(runs)} runs are byte-identical")
    conditions = project.columns("origin engine tier", "bigbrain/figures/bigbrain_phases.tsv")
    here = socket.gethostname()
    # on a busy machine Spark's tasks are over before the next begins: then it is not compared
    compared = [run["engine"] for run in runs if run["engine"] != "spark" or run["valid"] == "valid"]
    expected = [*(f"{here} {engine} local" for engine in compared), "published gnu-parallel DRAM"]
    assert conditions[: len(expected)] == expected
    predicted = [row for row in project.table("bigbrain/figures/bigbrain_makespans.tsv") if row["kind"] == "predicted"]
    assert "fluid measured" in {row["of"] for row in predicted if row["origin"] == "published"}
    for name in ("makespans", "phases", "gantts"):
        assert "gnu-parallel" in (project.results / f"bigbrain/figures/bigbrain_{name}.tsv").read_text()
    ended.says("Report: results/bigbrain.html")
    assert f"Outputs of {len(runs)} runs are byte-identical" in project.page("bigbrain")
    assert list(project.folder.glob("neurotier-*/bigbrain/**/*.nii")) == []
    project.succeeds("bigbrain").says("Nothing to be done")
    others = ENGINES[:2]  # a start of Spark takes its time
    project.succeeds("bigbrain", bigbrain={**bigbrain, "engines": others, "iterations": 1})
    assert set(project.columns("origin", "bigbrain/figures/bigbrain_phases.tsv")) == {here}
    other = project.table("bigbrain/bigbrain_runs.tsv")
    assert [run["iterations"] for run in other] == ["1", "1"]
    assert len({run["sha256"] for run in other + runs}) == 2


@pytest.mark.nightly
def test_what_a_run_takes_is_predicted_without_it(project: Project) -> None:
    engines = [engine for engine in ENGINES if engine != "spark"]  # whose workers cannot be pinned
    bigbrain = {**SMALL, "engines": engines, "predict": True, "numa": "pin"}
    ended = project.succeeds(*TABLES, bigbrain=bigbrain, probe={"time_s": 1, "share": 0.05})
    rows = project.table("bigbrain/bigbrain_predictions.tsv")
    assert [shown(row, "engine member") for row in rows] == [
        f"{engine} {member}" for engine in engines for member in ("paper", "fluid")
    ]
    paper = rows[0]["predicted_s"]
    for row in rows[1::2]:
        assert 0 < float(row["low_s"]) <= float(row["predicted_s"]) <= float(row["high_s"])
        assert float(row["predicted_s"]) > float(paper)  # starting processes is most of it
    runs = project.table(RUNS)
    assert [shown(run, "engine repetition valid") for run in runs] == [f"{engine} 1 valid" for engine in engines]
    several = Path("/sys/devices/system/node/node1").exists()
    assert all((run["pinned"] == "none: one node") != several for run in runs)
    assert bool(ended.lines("NUMA: one node, nothing to pin")) != several
    assert {run["cache"] for run in runs} <= {"cold", "memory"}
    assert list(project.folder.glob("neurotier-*/bigbrain/**/*.nii")) == []


def test_tier_that_fills_is_said_and_every_incomplete_block_is_named(
    project: Project, mount_tmpfs: Callable[..., Path], engine: str
) -> None:
    folder = mount_tmpfs(project.folder / "small", "size=1m")  # five blocks of 0.14 MB, and what is written of them
    bigbrain = {**SMALL, "scale": 0.06, "count": 5, "engines": [engine], "tiers": ["small"], "iterations": 1}
    sections = {"tiers": {"small": folder}, "bigbrain": bigbrain}
    ended = project.fails("bigbrain", **sections)
    ended.says("Tier 'small' will be full before the end: ")
    (run,) = project.table(RUNS)
    records = project.results / "bigbrain/runs" / engine / "small/2/1/records"
    lost = set(project.columns("block", "bigbrain/blocks/small.tsv")) - {
        file.stem.removesuffix("_1") for file in records.glob("bigbrain*.json")
    }
    assert 0 < len(lost) < 5
    assert run["incomplete_blocks"] == str(len(lost))
    assert run["valid"].startswith(f"invalid: {len(lost)} of 5 blocks are incomplete: ")
    assert all(name in run["valid"] for name in lost)
    ended.says(f"{len(lost)} of 5 blocks are incomplete: ")
    assert run["valid"].removeprefix("invalid: ") in project.page("bigbrain")
    ended.says("tier 'small' is full: ")
    assert {file.stem for file in folder.rglob("runs/**/*.nii")}.isdisjoint(lost)
    assert list(folder.rglob(".*.partial")) == []

    other = project.fails("ready", dataset="nowhere")
    assert other.lines("BigBrain: ") == []  # what fails elsewhere leaves these tables alone
    assert project.table(RUNS) == [run]

    system("mount", "-o", "remount,size=8m", folder)
    ended = project.succeeds("results/bigbrain.html", **sections)  # it is there: a part
    (run,) = project.table(RUNS)
    assert run["incomplete_blocks"] == "0"
    assert run["sha256"] != "n/a"
    assert run["valid"].startswith("invalid: it was interrupted and taken up again")


def test_missing_and_truncated_blocks_are_said_and_the_others_done(project: Project, engine: str) -> None:
    run = f"{engine}/local/2/1"
    project.succeeds(
        f"results/bigbrain/runs/{run}/plan.json",
        bigbrain={**SMALL, "engines": [engine], "iterations": 1, "keep": "all"},
    )
    missing, truncated, *whole = project.table("bigbrain/blocks/local.tsv")
    Path(missing["file"]).unlink()
    os.truncate(truncated["file"], 400)
    ended = project.fails("bigbrain", "--keep-going")
    (row,) = project.table("bigbrain/bigbrain_runs.tsv")
    named = f"2 of 4 blocks are incomplete: {missing['block']}, {truncated['block']}"
    assert row["valid"].startswith(f"invalid: {named}")
    ended.says(named)
    said = ended.output + "".join(log.read_text() for log in (project.results / "logs").rglob("*.log"))
    assert f"({missing['file']}): is not there: expected {missing['bytes']} bytes, found no file" in said
    assert f"({truncated['file']}): is truncated: expected {truncated['bytes']} bytes, found 400" in said
    assert set(written(project, 1)) == {block["block"] for block in whole}
