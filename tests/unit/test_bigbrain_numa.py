"""NUMA: which nodes count, which block takes which, and that a binding reaches the worker."""

from __future__ import annotations

import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import psutil
import pytest
from bigbrain_blocks import make, plan_of, task_of
from configured import settings_at
from neurotier.bigbrain.checking import check_block
from neurotier.bigbrain.engines.gnu_parallel import run_gnu_parallel
from neurotier.bigbrain.engines.numa import node_of, prefix
from neurotier.bigbrain.engines.worker import work
from neurotier.core.errors import SettingsError
from neurotier.storage.numa import usable_nodes

ALL_CPUS = set(range(256))


def write_nodes(folder: Path, *nodes: tuple[str, int]) -> Path:
    """The kernel's folder of nodes, each with its online CPUs and its memory (KiB)."""
    for number, (cpus, kib) in enumerate(nodes):
        place = folder / f"node{number}"
        place.mkdir(parents=True)
        (place / "cpulist").write_text(f"{cpus}\n")
        memory = "Node {0} MemTotal:       {1} kB\nNode {0} MemFree:        1 kB\n"
        (place / "meminfo").write_text(memory.format(number, kib))
    (folder / "power").mkdir()
    (folder / "online").write_text(f"0-{len(nodes) - 1}\n")
    return folder


@pytest.mark.parametrize(
    ("nodes", "expected"),
    [
        ([("0-1", 6383832)], (0,)),
        ([("0-23,48-71", 98765432), ("24-47,72-95", 98765432)], (0, 1)),
        ([("0-23", 98765432), ("24-47", 98765432), ("", 792723456), ("", 792723456)], (0, 1)),  # DCPMM as memory
        ([("0,2-4", 98765432), ("", 98765432)], (0,)),  # all CPUs of the second are offline
        ([("0-23", 98765432), ("24-47", 0)], (0,)),  # a socket without DIMMs
    ],
)
def test_nodes_with_cpus_and_memory_count(
    tmp_path: Path, nodes: list[tuple[str, int]], expected: tuple[int, ...]
) -> None:
    assert usable_nodes(write_nodes(tmp_path / "node", *nodes), ALL_CPUS) == expected


def test_nodes_that_this_process_may_not_use_do_not_count(tmp_path: Path) -> None:
    folder = write_nodes(tmp_path / "node", ("0-3", 1000), ("4-7", 1000), ("8-11", 1000))
    assert usable_nodes(folder, {4, 5, 8}) == (1, 2)
    assert usable_nodes(folder, {0, 4, 8}, {0, 2}) == (0, 2)
    assert usable_nodes(tmp_path / "none", ALL_CPUS) == ()  # a kernel that knows no NUMA


def test_blocks_take_turns_and_keep_their_node(tmp_path: Path) -> None:
    blocks = make(tmp_path, count=5)
    task = task_of(tmp_path, blocks, nodes=(0, 2), iterations=2)
    names = [block.block for block in blocks]
    assert [node_of(task, name) for name in names] == [0, 2, 0, 2, 0]
    work(task, blocks[0], None, None)
    assert [node_of(task, block.block) for block in task.pending()] == [2, 0, 2, 0]
    assert node_of(task_of(tmp_path, blocks), names[1]) is None
    assert prefix(None) == []


def test_pinning_of_spark_is_refused() -> None:
    with pytest.raises(SettingsError, match=r"config key bigbrain\.numa: Spark's tasks .*bigbrain\.spark_master"):
        settings_at(bigbrain={"numa": "pin", "engines": ["spark"]})
    assert settings_at(bigbrain={"numa": "pin"}).bigbrain.numa == "pin"


@pytest.mark.usefixtures("gnu_parallel", "numactl")
def test_gnu_parallel_binds_the_process_of_each_block(tmp_path: Path) -> None:
    blocks = make(tmp_path)
    task = task_of(tmp_path, blocks, nodes=(0,), pinned="1 node", delay_s=1.0)
    plan = plan_of(task)
    found = set[str]()
    with ThreadPoolExecutor(1) as pool:
        engine = pool.submit(run_gnu_parallel, plan, tmp_path / "logs")
        while not engine.done():
            found |= {policy for child in psutil.Process().children(recursive=True) for policy in policies(child.pid)}
            time.sleep(0.02)
        engine.result()
    assert "bind:0" in found
    assert all(check_block(task, block).equal for block in blocks)


def policies(pid: int) -> set[str]:
    """Policies of the memory of a worker; none of others, or once it is gone."""
    try:
        is_worker = psutil.Process(pid).cmdline()[1:3] == ["-m", "neurotier.bigbrain.engines.worker"]
        lines = Path(f"/proc/{pid}/numa_maps").read_text().splitlines() if is_worker else []
    except (psutil.Error, OSError):
        return set()
    return {line.split()[1] for line in lines if " heap " in line}
