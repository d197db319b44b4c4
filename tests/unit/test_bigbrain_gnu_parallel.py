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

import psutil
import pytest
from bigbrain_blocks import make, plan_of, task_of
from neurotier.bigbrain.checking import check_task
from neurotier.bigbrain.engines.gnu_parallel import run_gnu_parallel
from neurotier.bigbrain.tasks import Task
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
