"""GNU parallel has a process for each block: as many as asked, and gone with the engine."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import psutil
import pytest
from bigbrain_blocks import make, plan_of, task_of, voxels
from neurotier.bigbrain.checking import check_task
from neurotier.bigbrain.engines import gnu_parallel
from neurotier.bigbrain.engines.gnu_parallel import run_gnu_parallel
from neurotier.bigbrain.tabulation import records_of, run_row
from neurotier.bigbrain.tasks import PUBLISHED, STREAMING, Task
from neurotier.core.errors import RunError
from neurotier.core.processes import lives, processes_of
from support import ENVIRONMENT, PATIENCE_S, held, wait_for, words_of

pytestmark = pytest.mark.usefixtures("gnu_parallel")

RUN = "gnu-parallel/disk/2/1"
ENGINE = "import sys; from pathlib import Path; from neurotier.bigbrain.engines.gnu_parallel import run_gnu_parallel\n"


@dataclass
class Running:
    """An engine that works in a session of its own, on blocks of which the first one waits."""

    task: Task
    plan: Path
    logs: Path
    mark: str
    process: subprocess.Popen[str]

    def worker(self) -> psutil.Process:
        """The process of the first block."""
        name = self.task.blocks[0].block
        found = [
            one for one in processes_of([self.mark]) if name in words_of(one) and words_of(one)[0] == sys.executable
        ]
        (worker,) = [one for one in found if lives(one)]
        return worker


@contextmanager
def running(folder: Path) -> Iterator[Running]:
    """An engine whose first block is half done: its partial file is there. All others are done."""
    blocks = make(folder)
    task = task_of(folder, blocks, run=RUN)
    plan, logs, mark = plan_of(task), folder / "logs", f"test-{os.getpid()}-{time.monotonic_ns()}"
    with held(Path(blocks[0].file)):
        process = subprocess.Popen(
            [sys.executable, "-c", f"{ENGINE}run_gnu_parallel(Path(sys.argv[1]), Path(sys.argv[2]))", plan, logs],
            env={**ENVIRONMENT, "NEUROTIER_RUN": mark},
            text=True,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            start_new_session=True,
        )
        engine = Running(task, plan, logs, mark, process)
        try:
            wait_for(lambda: partials(task) and task.incomplete() == [blocks[0].block])
            yield engine
        finally:
            for left in processes_of([mark]):
                left.kill()
            process.kill()
            process.communicate(timeout=PATIENCE_S)


def partials(task: Task) -> list[Path]:
    """What is half written."""
    return list(Path(task.folder).rglob(".*"))


def ended(engine: Running) -> str:
    """What an engine said at its end, which it has reached with everything that worked for it."""
    output, said = engine.process.communicate(timeout=PATIENCE_S)
    wait_for(lambda: not processes_of([engine.mark]))
    return output + said


def goes_on(engine: Running) -> None:
    """Start the same again, which does what is left and nothing else."""
    first, *others = engine.task.blocks
    before = [engine.task.record(block, 1).stat().st_mtime_ns for block in others]
    run_gnu_parallel(engine.plan, engine.logs)
    assert all(one.equal for one in check_task(engine.task, lambda _: None))
    assert [engine.task.record(block, 1).stat().st_mtime_ns for block in others] == before
    assert engine.task.record(first, 1).exists()
    assert partials(engine.task) == []


@pytest.mark.parametrize("pairing", [STREAMING, PUBLISHED])
def test_each_block_is_a_command_with_its_own_process_and_record(tmp_path: Path, pairing: str) -> None:
    blocks = make(tmp_path, count=5)
    task = task_of(tmp_path, blocks, run=RUN, iterations=2, pairing=pairing, keep="all")
    began_s = time.time()
    joblog = run_gnu_parallel(plan_of(task), tmp_path / "logs")
    ended_s = time.time()
    assert all(one.equal for one in check_task(task, lambda _: None))
    header, *rows = [line.split("\t") for line in joblog.read_text().splitlines()]
    assert sorted(row[header.index("Command")].split()[4] for row in rows) == sorted(one.block for one in blocks)
    assert {row[header.index("Exitval")] for row in rows} == {"0"}
    records = records_of(task)
    assert len(records) == 10
    apart = ["read"] if pairing == STREAMING else []
    for record in records:
        names = [phase["phase"] for phase in record["phases"]]
        first = ["start_up"] if record["iteration"] == 1 else []
        assert sorted(names) == sorted([*first, "load_header", *apart, "increment", "write"])
        for phase in record["phases"]:
            assert began_s - 0.1 <= phase["start_s"] <= phase["end_s"] <= ended_s + 0.1  # starts are known to 10 ms
    assert run_row(task, records, {}, {})["peak_parallelism"] == 2
    for block in blocks:
        assert (tmp_path / "logs" / f"{block.block}.log").read_text() == f"{block.block}: iterations done: [1, 2]\n"
        assert np.array_equal(voxels(task.file(block, 2)), voxels(block.file) + np.uint16(2))


@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGTERM, signal.SIGINT])
def test_a_block_whose_process_is_ended_is_said_and_done_again(tmp_path: Path, number: int) -> None:
    with running(tmp_path) as engine:
        name = engine.task.blocks[0].block
        engine.worker().send_signal(number)
        assert f"1 of 3 blocks are incomplete: {name}" in ended(engine)
        if number != signal.SIGKILL:
            assert partials(engine.task) == []
    goes_on(engine)


@pytest.mark.parametrize(
    ("number", "send"), [(signal.SIGKILL, os.kill), (signal.SIGTERM, os.kill), (signal.SIGINT, os.killpg)]
)
def test_all_ends_with_the_engine(tmp_path: Path, number: int, send: Callable[[int, int], None]) -> None:
    """Ctrl-C is sent by a terminal to everybody at once."""
    with running(tmp_path) as engine:
        send(engine.process.pid, number)
        said = ended(engine)
        wait_for(lambda: partials(engine.task) == [])
        if number == signal.SIGINT:
            assert said.count("Traceback") == 1  # of this test's own program: the rule's script has one line for it
    goes_on(engine)


def test_what_is_wrong_with_a_block_is_said(tmp_path: Path) -> None:
    blocks = make(tmp_path, count=2)
    task = task_of(tmp_path, blocks)
    os.truncate(blocks[1].file, 400)
    with pytest.raises(
        RunError, match=f"1 of 2 blocks are incomplete: {blocks[1].block}; the first said: .* truncated"
    ):
        run_gnu_parallel(plan_of(task), tmp_path / "logs")
    line = f"neurotier: block {blocks[1].block} ({blocks[1].file}): is truncated: expected 42016 bytes, found 400"
    assert (tmp_path / "logs" / f"{blocks[1].block}.log").read_text().startswith(line)
    assert [file.name for file in Path(task.folder).rglob("*") if file.is_file()] == [f"{blocks[0].block}.nii"]


def test_engine_itself_does_not_load_numpy() -> None:
    """Each start of Snakemake reads it, to see whether GNU parallel is there."""
    show = f"import sys, {gnu_parallel.__name__}; print('numpy' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", show], capture_output=True, text=True).stdout == "False\n"
