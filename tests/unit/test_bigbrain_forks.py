"""The processes that are forked for blocks: as many as asked, and gone with whoever wants their block."""

from __future__ import annotations

import os
import re
import signal
import socket
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
from neurotier.bigbrain.engines.fork_client import KILLED
from neurotier.bigbrain.engines.gnu_parallel import CLIENT_COMMAND, SERVER_LOG, run_gnu_parallel, serving
from neurotier.bigbrain.tabulation import records_of, run_row
from neurotier.bigbrain.tasks import PUBLISHED, STREAMING, Task
from neurotier.core.errors import InputError, RunError
from neurotier.core.processes import lives, processes_of
from support import ENVIRONMENT, PATIENCE_S, held, words_of

pytestmark = pytest.mark.usefixtures("gnu_parallel")

RUN = "gnu-parallel/disk/2/1"
ENGINE = "import sys; from pathlib import Path; from neurotier.bigbrain.engines.gnu_parallel import run_gnu_parallel\n"
NOBODY = 65534


@dataclass
class Running:
    """An engine that works in a session of its own, on blocks of which the first one waits."""

    task: Task
    plan: Path
    logs: Path
    mark: str
    process: subprocess.Popen[str]

    def own(self, part: str) -> list[psutil.Process]:
        """Its living processes with a part in their command line."""
        found = []
        for process in processes_of([self.mark]):
            try:
                if part in " ".join(process.cmdline()) and lives(process):
                    found.append(process)
            except psutil.NoSuchProcess:
                continue
        return found

    def client(self) -> psutil.Process:
        """GNU parallel's job of the first block."""
        (client,) = [one for one in self.own(self.task.blocks[0].block) if words_of(one)[:1] == [sys.executable]]
        return client

    def server(self) -> psutil.Process:
        """The fork server."""
        children = psutil.Process(self.process.pid).children()
        (server,) = [one for one in children if gnu_parallel.SERVER in " ".join(words_of(one)) and lives(one)]
        return server

    def forked(self) -> psutil.Process:
        """The process of the first block."""
        until(lambda: len(self.working()) == 1)  # those of the others may still be ending
        return self.working()[0]

    def working(self) -> list[psutil.Process]:
        """What the server has forked and lives."""
        return [child for child in self.server().children() if lives(child)]


def until(found: Callable[[], object]) -> None:
    """Wait until something is so."""
    deadline = time.monotonic() + PATIENCE_S
    while not found():
        assert time.monotonic() < deadline
        time.sleep(0.01)


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
            until(lambda: partials(task) and task.incomplete() == [blocks[0].block])
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
    until(lambda: not processes_of([engine.mark]))
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
    assert sorted(row[header.index("Command")].split()[-1] for row in rows) == sorted(one.block for one in blocks)
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
    assert (tmp_path / "logs" / SERVER_LOG).read_text() == ""


@pytest.mark.parametrize(
    ("whom", "number"),
    [
        ("forked", signal.SIGKILL),
        *(("client", number) for number in (signal.SIGKILL, signal.SIGTERM, signal.SIGINT)),
        ("server", signal.SIGKILL),
    ],
)
def test_a_block_whose_process_is_ended_is_said_and_done_again(tmp_path: Path, whom: str, number: int) -> None:
    with running(tmp_path) as engine:
        name = engine.task.blocks[0].block
        getattr(engine, whom)().send_signal(number)
        said = ended(engine)
        assert f"1 of 3 blocks are incomplete: {name}" in said
        if whom != "client":
            assert f"; the first said: block {name}: its process was killed, or failed" in said
            assert "\t137\t0\t" in next(iter(engine.logs.glob("joblog.*"))).read_text()
        if whom != "forked":
            until(lambda: partials(engine.task) == [])
    goes_on(engine)


def test_process_of_a_block_ends_with_its_command_while_others_go_on(tmp_path: Path) -> None:
    first, second = make(tmp_path, count=2)
    task = task_of(tmp_path, (first, second))
    with serving(plan_of(task), tmp_path, None) as address:
        with held(Path(first.file)):
            waiting = subprocess.Popen([*CLIENT_COMMAND, address, first.block])
            until(lambda: partials(task))
            waiting.kill()
            waiting.wait(timeout=PATIENCE_S)
            until(lambda: not partials(task))
        assert client(address, second.block).returncode == 0
    assert task.incomplete() == [first.block]


def test_nobody_waits_for_a_fork_server_that_is_gone_though_a_block_of_it_hangs(tmp_path: Path) -> None:
    with running(tmp_path) as engine:
        address = engine.client().cmdline()[-2]
        forked, server = engine.forked(), engine.server()
        forked.suspend()
        server.kill()
        until(lambda: not lives(server))
        assert client(address, "another").returncode == KILLED
        forked.resume()
        ended(engine)
    goes_on(engine)


def test_blocks_that_come_after_the_end_of_the_fork_server_fail_at_once(tmp_path: Path) -> None:
    blocks = make(tmp_path, count=1)
    with serving(plan_of(task_of(tmp_path, blocks)), tmp_path, None) as address:
        assert client(address, blocks[0].block).returncode == 0
    done = client(address, blocks[0].block)
    assert done.returncode == KILLED
    (line,) = done.stderr.splitlines()
    assert line.startswith(f"neurotier: block {blocks[0].block}: its process was killed, or failed; see {SERVER_LOG}")


@pytest.mark.parametrize(
    ("number", "send"), [(signal.SIGKILL, os.kill), (signal.SIGTERM, os.kill), (signal.SIGINT, os.killpg)]
)
def test_all_ends_with_the_engine(tmp_path: Path, number: int, send: Callable[[int, int], None]) -> None:
    """Ctrl-C is sent by a terminal to everybody at once."""
    with running(tmp_path) as engine:
        send(engine.process.pid, number)
        said = ended(engine)
        until(lambda: partials(engine.task) == [])
        if number == signal.SIGINT:
            assert said.count("Traceback") == 1  # of this test's own program: the rule's script has one line for it
            assert (engine.logs / SERVER_LOG).read_text() == ""
    goes_on(engine)


def client(address: str, block: str) -> subprocess.CompletedProcess[str]:
    """What GNU parallel starts."""
    return subprocess.run([*CLIENT_COMMAND, address, block], capture_output=True, text=True, timeout=PATIENCE_S)


def test_what_is_wrong_with_a_block_is_said_by_its_command(tmp_path: Path) -> None:
    blocks = make(tmp_path, count=2)
    task = task_of(tmp_path, blocks)
    plan = plan_of(task)
    os.truncate(blocks[1].file, 400)
    with serving(plan, tmp_path, None) as address:
        done = client(address, blocks[1].block)
        assert (done.returncode, done.stdout) == (InputError.exit_code, "")
        line = f"neurotier: block {blocks[1].block} ({blocks[1].file}): is truncated: expected 42016 bytes, found 400"
        assert done.stderr.startswith(line)
        assert client(address, "räksmörgås").returncode == InputError.exit_code
        assert client(address, blocks[0].block).returncode == 0
    assert [file.name for file in Path(task.folder).rglob("*") if file.is_file()] == [f"{blocks[0].block}.nii"]
    with pytest.raises(
        RunError, match=f"1 of 2 blocks are incomplete: {blocks[1].block}; the first said: .* truncated"
    ):
        run_gnu_parallel(plan, tmp_path / "logs")


@pytest.mark.skipif(os.getuid() != 0, reason="becoming another user needs root")
def test_another_user_is_not_served(tmp_path: Path) -> None:
    blocks = make(tmp_path, count=1)
    task = task_of(tmp_path, blocks)
    with serving(plan_of(task), tmp_path, None) as address:
        reader, writer = os.pipe()
        child = os.fork()
        if not child:
            try:
                os.setuid(NOBODY)
                with socket.socket(socket.AF_UNIX) as connection:
                    connection.connect(f"\0{address}")
                    connection.sendall(f"{blocks[0].block}\n".encode())
                    os.write(writer, b"answer: " + connection.recv(100))
            except OSError as error:
                os.write(writer, f"refused: {error}".encode())
            finally:
                os._exit(0)
        os.waitpid(child, 0)
        assert re.fullmatch("answer: |refused: .*", os.read(reader, 200).decode())
        os.close(reader)
        os.close(writer)
        assert task.incomplete() == [blocks[0].block]
        assert client(address, blocks[0].block).returncode == 0


def test_a_silent_client_holds_nobody_up(tmp_path: Path) -> None:
    blocks = make(tmp_path, count=1)
    with (
        serving(plan_of(task_of(tmp_path, blocks)), tmp_path, None) as address,
        socket.socket(socket.AF_UNIX) as silent,
    ):
        silent.connect(f"\0{address}")
        assert client(address, blocks[0].block).returncode == 0


def test_command_of_a_block_loads_next_to_nothing() -> None:
    python, *words = CLIENT_COMMAND
    command = [python, "-X", "importtime", *words, "nobody", "block"]
    done = subprocess.run(command, capture_output=True, text=True, timeout=PATIENCE_S)
    loaded = set(re.findall(r"^import time: .*\| +([\w.]+)$", done.stderr, re.MULTILINE))
    assert "_socket" in loaded
    assert not loaded & {"os", "site", "socket", "collections", "typing", "enum", "__future__"}


def test_engine_itself_does_not_load_numpy() -> None:
    """Each start of Snakemake reads it, to see whether GNU parallel is there."""
    show = f"import sys, {gnu_parallel.__name__}; print('numpy' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", show], capture_output=True, text=True).stdout == "False\n"
