"""What others take of the processors: read from this machine, which others may be using, and judged."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from neurotier.meter.others import Reading, others_share
from neurotier.run.disturbance import others, read_readings

BURN = "import time\nend = time.process_time() + {}\nwhile time.process_time() < end: pass"
PROCESSORS = len(os.sched_getaffinity(0))

READ = """
import subprocess, sys, os
from neurotier.meter.others import read_processors
before = read_processors(os.getpid())
burning = [subprocess.Popen([sys.executable, "-c", sys.argv[1]]) for _ in range(25)]
for one in burning:
    one.wait()
after = read_processors(os.getpid())
print(after.tree_s - before.tree_s, after.busy_s - before.busy_s)
"""
"""A tree that reads itself, before and after 25 processes at once: what it used, and all of the machine."""


def test_25_processes_on_fewer_processors_are_the_trees_own() -> None:
    """They have ended when they are read: what they used is in the books of who waited for them."""
    before = os.times()
    printed = subprocess.check_output([sys.executable, "-c", READ, BURN.format(0.2)], text=True)
    after = os.times()
    truth_s = after.children_user + after.children_system - before.children_user - before.children_system
    tree_s, busy_s = map(float, printed.split())
    assert 0.85 < tree_s / truth_s <= 1.02
    assert tree_s <= busy_s * 1.1  # the machine has counted them, too


STEADY = [Reading(float(at), 0.0, 2.0 * at, 1.5 * at, 0.0, 0.0) for at in range(21)]
"""Two processors that are busy all the time, a quarter of it for others."""


@pytest.mark.parametrize(
    ("changes", "share"),
    [
        ({}, 0.25),
        ({"kernel_s": 0.3}, 0.1),  # kernel threads are nobody's
        ({"open_s": 2.0}, 0.15),  # once, and not for each reading
        ({"busy_s": 1.5}, 0.0),
        ({"busy_s": 1.4}, 0.0),  # ticks of the machine and of processes are counted at other moments
    ],
)
def test_the_share_of_others(changes: dict[str, float], share: float) -> None:
    at_once = {key: each for key, each in changes.items() if key == "open_s"}
    readings = [one._replace(**{key: each * one.time_s for key, each in changes.items()} | at_once) for one in STEADY]
    assert others_share(readings, 5.0, 15.0, 2) == pytest.approx(share)


def test_who_leaves_the_tree_takes_its_past_along() -> None:
    """A daemon that outlives its parent, or a kernel thread that ends: what it used long ago is not another's."""
    left = [one._replace(tree_s=one.tree_s - 10 * (one.time_s > 9)) for one in STEADY]
    assert others_share(left, 5.0, 15.0, 2) == pytest.approx(0.25 + 1.5 / 20)  # only what it used in that second
    ended = [one._replace(kernel_s=50.0 * (one.time_s < 9)) for one in STEADY]
    assert others_share(ended, 5.0, 15.0, 2) == pytest.approx(0.25)


@pytest.mark.parametrize(
    ("facts", "host", "span", "reason"),
    [
        ({"elsewhere": True}, "node1", (5.0, 15.0), "a batch system started the jobs"),
        ({}, "node2", (5.0, 15.0), "jobs ran on other machines"),
        ({}, "node1", (5.0, 6.9), "shorter than 2 s"),
        ({}, "node1", (5.0, 25.0), "not watched from its start to its end"),
        ({}, "node1", (-1.0, 15.0), "not watched from its start to its end"),
    ],
)
def test_what_is_not_known_is_empty_and_says_why(
    facts: dict[str, Any], host: str, span: tuple[float, float], reason: str
) -> None:
    row = others({"host": "node1", "cpus": 2, **facts}, [{"host": host}], span, STEADY)
    assert row == {"others_cpu_share": None, "others_cpu_reason": reason}


def test_lines_that_were_cut_short_are_left_out(tmp_path: Path) -> None:
    file = tmp_path / "r1.processors"
    whole = "1.0 2.0 3.0 4.0 5.0 6.0\n"
    file.write_text(f"{whole}2.0 3.0\n2.0 3.0 4.0 x 5 6\n\0\0\0\n{whole}1.0 2.0 3.0 4.0 5.0 6.0 7.0\n3.0 4")
    assert read_readings(file) == [Reading(1.0, 2.0, 3.0, 4.0, 5.0, 6.0)] * 2
    assert read_readings(tmp_path / "none") == []
