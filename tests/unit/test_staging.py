"""Data staging with its engines: bytes, response times, what fails in a line and leaves nothing; grid and answers."""

from __future__ import annotations

import itertools
import json
import multiprocessing
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, suppress
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

import numpy as np
import psutil
import pytest
from conftest import missing
from neurotier.core.errors import TierError, ToolError
from neurotier.core.private import private_folder, read_private
from neurotier.core.processes import marked
from neurotier.core.tables import Row
from neurotier.meter.usage import BYTES
from neurotier.pages.staging import scaling
from neurotier.storage.spread import MEASURED
from neurotier.storage.staging import program, supervise
from neurotier.storage.staging.adios2 import answers, start_clients
from neurotier.storage.staging.curves import longest_wait
from neurotier.storage.staging.exchange import Exchange, Sink, Source
from neurotier.storage.staging.supervise import Outcome, require_engine, run_exchange
from neurotier.storage.staging.walk import scratch
from support import ENVIRONMENT, processes_in, wait_for, words_of
from workloads import MIB, run, settings_of, throttled

TEST = "NEUROTIER_STAGING_TEST"
"""Environment variable that tells the processes of a test."""

THROTTLE_BYTES_PER_S = 20_000_000

TAKEN_S = 1.0
"""What slow contents take."""


def exchange(folder: Path, scratch_folder: Path, **changes: Any) -> Exchange:
    """Three steps of two writers and two readers of 1 MiB each."""
    point = "set", "adios2-bp5", 2, 2, 0, "step", MIB, MIB, 3, False, 1
    return replace(Exchange(*point, seed=1, folder=str(folder), scratch=str(scratch_folder)), **changes)


def run_in(folder: Path, watch: Callable[[Outcome], None], within_s: float = 60.0, **changes: Any) -> None:
    """Run an exchange to its end, watched from outside."""
    with scratch() as scratch_folder:
        run_exchange(exchange(folder, scratch_folder, **changes), scratch_folder / "log", within_s, watch)


def processes() -> list[psutil.Process]:
    """Everything that this test has started; others go on beside it."""
    return marked(TEST, [os.environ[TEST]])


def mapping(folder: Path) -> list[int]:
    """Processes that have a file of a folder mapped, named or not."""
    found = []
    for pid in psutil.pids():
        with suppress(OSError):
            found += [pid] if str(folder) in Path(f"/proc/{pid}/maps").read_text() else []
    return found


@pytest.fixture
def nothing_left(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Afterwards no process, no mapped file, and no socket is left of what a test has staged."""
    monkeypatch.setenv(TEST, str(tmp_path))
    yield
    assert processes() == []
    assert mapping(tmp_path) == []
    assert processes_in(tmp_path) == []
    marks = (private_folder(Path("/tmp")) / "s").glob("*/owner.json")
    assert not [mark for mark in marks if f'"pid": {os.getpid()},' in read_private(mark)]


@pytest.fixture
def slow_disk() -> Iterator[Path]:
    with throttled(512, THROTTLE_BYTES_PER_S) as folder:
        yield folder


def test_every_reader_gets_its_part_of_what_is_written() -> None:
    for writers, readers in itertools.product((1, 2, 3, 4, 8), repeat=2):
        sizes = {"bytes_per_writer": 1536 // writers, "bytes_per_reader": 1536 // readers}
        one = exchange(Path(), Path(), writers=writers, readers=readers, **sizes)
        got = [piece for reader in range(readers) for piece in one.pieces_of_reader(reader)]
        assert got == list(range(writers * one.pieces_per_writer))
    weak = exchange(Path(), Path(), readers=3)
    assert [weak.pieces_of_reader(reader) for reader in range(3)] == [[0], [1], [0]]


def test_bytes_read_from_devices_are_found_by_name(monkeypatch: pytest.MonkeyPatch) -> None:
    """They were the third figure, wherever the meter had them."""
    monkeypatch.setattr(program, "BYTES", ["calls", *BYTES])
    monkeypatch.setattr(program, "read_io", lambda _: [9, *(name == "device_read_bytes" for name in BYTES)])
    assert program.device_read_bytes([1, 2]) == 2


def test_other_bytes_are_seen(tmp_path: Path) -> None:
    one = exchange(tmp_path, tmp_path, writers=1, readers=1)
    source, sink = Source(one, 0), Sink(one, 0)
    first, *_ = source.next_step()
    np.copyto(sink.pieces[0], source.pieces[0])
    assert sink.wrong({0: first}) == []
    assert sink.wrong({0: source.next_step()[0]}) == [0]  # those of the step before
    sink.pieces[0][-1] ^= np.uint64(1)
    assert sink.wrong({0: first}) == [0]


def test_what_contents_take_to_make_and_to_compare_is_no_response_time(
    staging_engines: None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Of several writers, none begins while others make theirs; where one is alone, nobody waits for others."""

    def slow(method: Callable[..., Any]) -> Callable[..., Any]:
        def wrapped(*given: Any) -> Any:
            time.sleep(TAKEN_S * multiprocessing.current_process().name.endswith(" 0"))
            return method(*given)

        return wrapped

    monkeypatch.setattr(Source, "next_step", slow(Source.next_step))
    monkeypatch.setattr(Sink, "wrong", slow(Sink.wrong))
    for count in (2, 1):
        said: list[Row] = []
        folder = tmp_path / str(count)
        folder.mkdir()
        program.run(exchange(folder, folder, writers=count, readers=count), lambda said=said, **one: said.append(one))
        steps = said[1:]
        assert [step["wrong"] for step in steps] == [[]] * 3
        assert max(max(step["write_s"], step["read_s"]) for step in steps) < TAKEN_S
        waiting = longest_wait({**step, "status": MEASURED} for step in steps)
        assert waiting
        assert (waiting[0] == 0) == (count == 1)


def test_ray_and_adios2_stage_on_memory_and_on_a_throttled_disk(
    staging_engines: None, memory_folder: Path, slow_disk: Path, tmp_path: Path, nothing_left: None
) -> None:
    """More writers than readers, and several servers; flushed writes are as fast as the device."""
    uneven = {"writers": [4], "readers": [2], "servers": [2], "bytes": "8 MiB"}
    weak = {"writers": [2], "readers": [4], "bytes": "4 MiB", "per": "client"}  # a throttle gives 2 MB at once
    tiers, rows = {"memory": memory_folder, "slow": slow_disk}, list[Row]()
    both = {"sets": {"uneven": uneven, "weak": weak}, "engines": ["adios2-sst", "adios2-bp5"]}
    for section in (both, {"sets": {"uneven": uneven}}):
        rows += run("staging", settings_of("staging", tmp_path / "results", tiers, steps=2, **section))["staging"]
    assert [row["status"] for row in rows] == ["measured"] * 8
    for row in rows:
        assert row["write_bytes"] == 2 * row["writers"] * row["bytes_per_writer"]
        assert 0 < row["write_client_s"] <= row["write_s"]
        assert 0 < row["read_client_s"] <= row["read_s"]
        assert row["piece_bytes"] == (2 * MIB if row["set"] == "uneven" else 4 * MIB)
        if row["tier"] == "slow" and row["engine"] != "adios2-sst":
            assert row["write_bytes"] / 2 / row["write_s"] < 1.5 * THROTTLE_BYTES_PER_S
    assert [*memory_folder.rglob("*"), *slow_disk.rglob("neurotier*/*/*")] == []


@pytest.mark.parametrize(
    ("engine", "servers", "victim", "line"),
    [
        ("ray", 2, "server", r"^ray: server (0, )?1 of 2 is gone; \d+ of 50 steps were done; start the same command"),
        ("adios2-bp5", 0, "reader", r"^adios2-bp5: (reader|writer) \d is gone \(exit code -9\)$"),
        ("adios2-sst", 0, "reader", r"^adios2-sst: (reader|writer) \d"),
    ],
)
def test_who_is_gone_is_named_and_nothing_is_left(
    staging_engines: None, tmp_path: Path, nothing_left: None, engine: str, servers: int, victim: str, line: str
) -> None:
    killed: list[int] = []

    def kill(outcome: Outcome) -> None:
        if outcome.steps and not killed:
            pid = outcome.servers[1] if victim == "server" else last_client(engine)
            killed.append(pid)
            os.kill(pid, signal.SIGKILL)

    with pytest.raises(ToolError, match=line):
        run_in(tmp_path, kill, engine=engine, servers=servers, steps=50)
    assert killed


def last_client(engine: str) -> int:
    """A process of a reader."""
    if engine == "ray":
        return next(one.pid for one in processes() if "Reader" in " ".join(words_of(one)))
    return max(processes(), key=psutil.Process.create_time).pid  # not the largest number: those wrap


KILLED = """
import json, sys
from pathlib import Path
from neurotier.storage.staging.exchange import Exchange
from neurotier.storage.staging.supervise import run_exchange
from neurotier.storage.staging.walk import scratch
with scratch() as folder:
    exchange = Exchange(**json.loads(sys.argv[1]) | {"scratch": str(folder)})
    run_exchange(exchange, Path(sys.argv[2]), 60.0, lambda outcome: print(folder, flush=True))
"""


def test_who_looks_after_it_is_killed_and_nothing_is_left(
    staging_engines: None, tmp_path: Path, nothing_left: None
) -> None:
    """The kernel tells the processes; what lies in the folder for sockets goes with the next start."""
    plan = json.dumps(asdict(exchange(tmp_path, tmp_path, steps=5000)))
    command = [sys.executable, "-c", KILLED, plan, str(tmp_path / "log")]
    with subprocess.Popen(
        command, stdout=subprocess.PIPE, text=True, env={**ENVIRONMENT, TEST: str(tmp_path)}
    ) as process:
        assert process.stdout is not None
        left = Path(process.stdout.readline().strip())
        assert len(processes()) == 1 + 5
        process.kill()
    wait_for(lambda: not processes())
    assert left.exists()
    with scratch():
        assert not left.exists()


SCRATCH = """
import sys
from neurotier.storage.staging.walk import scratch
with scratch() as folder:
    print(folder, flush=True)
    sys.stdin.read()
"""


@pytest.mark.parametrize(("engine", "before"), [("adios2-sst", [0, 1, 2]), ("adios2-bp5", [0, 0, 0])])
def test_processes_of_sst_start_one_after_the_other(tmp_path: Path, engine: str, before: list[int]) -> None:
    """EVPath gives two processes one name if their numbers plus the seconds at which they start are equal."""

    def work(_: Exchange, number: int, asked: Any) -> None:
        count = len([*tmp_path.iterdir()])
        time.sleep(0.5)
        (tmp_path / f"writer-{number}.bp.sst").touch()
        asked.send(count)

    assert answers(start_clients("writer", work, exchange(tmp_path, tmp_path, engine=engine), 3)) == before


def test_two_containers_have_a_scratch_folder_each() -> None:
    """They share the folder for temporary files and the host's name, and their processes have equal numbers."""
    if os.getuid() != 0:
        missing("a process number space of one's own needs root")
    words = ["unshare", "--pid", "--fork", "--kill-child", sys.executable, "-c", SCRATCH]
    with ExitStack() as stack:
        made = []
        for _ in range(2):
            process = subprocess.Popen(words, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
            stack.callback(process.communicate)
            assert process.stdout is not None
            made.append(Path(process.stdout.readline().strip()))
        first, second = made
        assert first != second
        assert all((folder / "owner.json").exists() for folder in made)
    assert not any(folder.exists() for folder in made)


def test_what_is_said_of_more_readers_is_that_of_the_tier_that_is_named() -> None:
    read_s = {("memory", 1): 1.0, ("memory", 2): 1.2, ("disk", 1): 1.0, ("disk", 2): 2.0, ("disk", 4): 5.0}
    alike: Row = {"status": "measured", "engine": "ray", "set": "a", "per": "client", "writers": 1, "servers": 1}
    rows = [alike | {"tier": tier, "readers": count, "read_s": time_s} for (tier, count), time_s in read_s.items()]
    axes = {"read": "readers"}
    said = scaling(rows, axes, "client")
    assert said.startswith("Reading with 4 times as many readers and bytes takes 5.00 times as long (ray on disk)")
    least = scaling(
        [row | {"read_s": 9.0 / row["read_s"]} for row in rows if row["tier"] == "memory"] + rows[2:4], axes
    )
    assert "with 2 readers in 1 of 2 cases, and with 2 up to 2.00 times as long as with 1 (ray on disk)" in least


def test_a_stall_is_a_result(staging_engines: None, tmp_path: Path, nothing_left: None) -> None:
    def stop(outcome: Outcome) -> None:
        if len(outcome.steps) == 1:
            os.kill(last_client("adios2-bp5"), signal.SIGSTOP)

    with pytest.raises(ToolError, match=r"stalled.*did not end within 2 s"):
        run_in(tmp_path, stop, 2.0, steps=5000)


@pytest.mark.parametrize("engine", ["ray", "adios2-bp5"])
def test_a_full_tier_is_a_line(
    staging_engines: None, tmp_path: Path, mount_tmpfs: Callable[..., Path], nothing_left: None, engine: str
) -> None:
    small = mount_tmpfs(tmp_path / "small", "size=12m")
    sizes = {"bytes_per_writer": 8 * MIB, "bytes_per_reader": 8 * MIB}
    with pytest.raises(TierError, match=r"small: filled up.*; make room, or lower"):
        run_in(small, lambda _: None, engine=engine, servers=int(engine == "ray"), **sizes)


def test_a_ray_that_asks_nobody_for_a_token_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "ray").mkdir()
    (tmp_path / "ray" / "__init__.py").touch()
    (tmp_path / "ray-2.51.1.dist-info").mkdir()
    (tmp_path / "ray-2.51.1.dist-info" / "METADATA").write_text("Name: ray\nVersion: 2.51.1\n")
    monkeypatch.syspath_prepend(tmp_path)
    with pytest.raises(ToolError, match=r"^target staging: Ray 2\.51\.1 lets every user of this machine run programs"):
        require_engine("ray", "target staging")


def test_an_engine_that_is_not_installed_is_named_with_what_installs_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(supervise, "find_spec", lambda _: None)
    line = "target staging: engine adios2-bp5 needs the Python package adios2, which is not installed; pip install"
    with pytest.raises(ToolError, match=f"^{line} 'neurotier\\[adios2\\]', or take another engine$"):
        require_engine("adios2-bp5", "target staging")
