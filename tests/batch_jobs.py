"""The job of a batch, started as Snakemake starts it, for the tests of it."""

from __future__ import annotations

import subprocess
import sys
import time
from pathlib import Path

import psutil
from support import ENVIRONMENT, PATIENCE_S, ROOT, prepared_results

RUN = "run-of-batches"


def job(results: Path, *names: str, at_once: int = 2, beside: int = 0, **environment: str) -> subprocess.Popen[str]:
    """The job of a batch, running."""
    words = ["analyze-participants", *names, "--results", str(results), "--batch", "0", "--analysis", "analysis"]
    words += ["--at-once", str(at_once), "--beside", str(beside), "--log", str(results / "batch.log")]
    return subprocess.Popen(
        [sys.executable, "-m", "neurotier", *words],
        env={**ENVIRONMENT, "PYTHONPATH": str(ROOT / "workflow"), "NEUROTIER_RUN": RUN, **environment},
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    )


def done_in(results: Path) -> list[str]:
    """Participants that have a record, in order of name."""
    return sorted(file.stem for file in (results / "profile" / "records").rglob("*.json"))


def name_of(process: psutil.Process) -> str:
    """Name of a process; empty if it is gone."""
    try:
        return str(process.name())
    except psutil.NoSuchProcess:
        return ""


def sleepers(process: subprocess.Popen[str], count: int) -> list[psutil.Process]:
    """The tools of participants under way, as soon as there are so many."""
    deadline = time.monotonic() + PATIENCE_S
    while True:
        children = psutil.Process(process.pid).children(recursive=True)
        tools = [child for child in children if name_of(child) == "sleep"]
        if len(tools) == count:
            return tools
        assert time.monotonic() < deadline
        time.sleep(0.02)


def sleeping(folder: Path, sleep_s: float, *labels: str) -> Path:
    """A results folder for participants whose tool sleeps."""
    return prepared_results(folder, labels, tool={"name": "noop", "noop": {"sleep_s": sleep_s}})
