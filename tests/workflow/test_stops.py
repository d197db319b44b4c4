"""Stops: whatever is stopped by whichever signal goes on with the same command, and leaves nothing behind."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import time
from collections.abc import Callable
from contextlib import suppress
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import psutil
import pytest
from conftest import nightly, too_long
from neurotier.core.places import short_hash
from support import (
    ENVIRONMENT,
    PATIENCE_S,
    STAND_INS,
    Ended,
    Project,
    processes_in,
    script,
    sleeping,
    slow_project,
    wait_for,
)

SIGNALS = [signal.SIGINT, signal.SIGTERM, signal.SIGKILL]
BLOCKS = {"count": 4, "scale": 0.03, "iterations": 2, "parallelism": [2], "predict": False, "delay_s": 1.0}
LASTING = {**BLOCKS, "count": 6, "delay_s": 3.0}
"""What is done already stays, and there is to be something left for several stops."""

GRID = {"block_sizes": ["4 KiB"], "processes": [1, 2], "patterns": ["read"], "file_size": "1 MiB", "seconds": 2.0}
EXCHANGE = {"writers": [1], "readers": [1], "bytes": "1 MiB"}
STAGED = {"tiers": ["local"], "engines": ["ray"], "sets": {"a": EXCHANGE}, "steps": 40}

AT_ONCE_S = 60.0
"""How long a stop may take on a busy machine; a campaign, or what Snakemake waits for, would take longer."""


def configure_campaign(project: Project, runs: int, work: str = "tmpfs") -> None:
    """Runs of two participants with a tool that takes a moment."""
    project.heads("01", "02")
    asked = {"placements": {"one": {"work": work}}, "parallelism": [2], "repetitions": runs}
    project.configure(tool=sleeping(4.0), campaign=asked)


def has_begun(project: Project, count: int) -> bool:
    """Whether so many runs of a campaign have begun; those that were begun twice count once."""
    return len(list(project.results.glob("logs/run_campaign/*/*.log"))) == count


def while_analysing(project: Project, part: str) -> list[psutil.Process]:
    """Processes with a part of a command line beside a job: not a job that SIGKILL has orphaned."""
    return processes_in(project.folder, "analyze-participants") and processes_in(project.folder, part)


def files_on_tiers(project: Project) -> list[Path]:
    """What lies on the tiers for a while only."""
    folders = [*project.folder.glob("neurotier-*"), *Path("/dev/shm").glob("neurotier-*")]
    made = [folder / name for folder in folders for name in ("work", "campaign", "probe", "sweep", "staging")]
    walks = [walk for folder in made for walk in os.walk(folder)]  # which passes over what others remove meanwhile
    paths = [Path(top) / name for top, inner, files in walks for name in (*inner, *files)]
    return [path for path in paths if mine(path, project)]


def mine(path: Path, project: Project) -> bool:
    """Whether a file on a tier is of a project; others work on ``/dev/shm`` at the same time."""
    return path.is_relative_to(project.folder) or short_hash(str(project.results)) in path.parts


def stop(project: Project, reached: Callable[[], Any], number: int, part: str = "", *target: str) -> Ended:
    """Start Snakemake, and send a signal to it, or to the process of its run with a part in its command line, once
    something is so; to the whole tree for the part ``everything``. It ends at once, and with it all but at SIGKILL.
    """
    snakemake = project.start(*target)
    wait_for(reached, snakemake)
    main = psutil.Process(snakemake.pid)
    receivers = [main]
    if part == "everything":
        receivers += main.children(recursive=True)
    elif part:
        receivers = wait_for(lambda: processes_in(project.folder, part), snakemake)[:1]
    for process in receivers:
        with suppress(psutil.NoSuchProcess):
            process.send_signal(number)
    began_s, ended = time.monotonic(), snakemake.ended()
    assert ended.code != 0
    assert time.monotonic() - began_s < AT_ONCE_S
    if number != signal.SIGKILL:
        assert processes_in(project.folder) == []
        assert files_on_tiers(project) == []
    return ended


def go_on(project: Project, *target: str) -> Ended:
    """Start the same command again."""
    ended = project.succeeds(*target)
    assert processes_in(project.folder) == []
    assert files_on_tiers(project) == []
    return ended


STOPS = [
    (signal.SIGINT, ""),
    (signal.SIGTERM, ""),
    (signal.SIGKILL, "run_campaign.py"),
    (signal.SIGKILL, "everything"),
]
INNER = "--replace-workflow-config"


@too_long
def test_a_stopped_campaign_goes_on(project: Project) -> None:
    """Three runs: the second is stopped in whole; then a part of it, and of the third, is told alone."""
    configure_campaign(project, runs=3)
    there: dict[Path, int] = {}

    def second_computes() -> bool:
        return len(project.conditions()) == 1 and bool(processes_in(project.folder, "analyze-participants"))

    def nothing_is_done_again() -> None:
        found = {file: file.stat().st_mtime_ns for file in project.conditions()}
        assert there.items() <= found.items()
        there.update(found)

    for number, part in STOPS:
        stop(project, second_computes, number, part)
        nothing_is_done_again()
        if part != "everything":  # then somebody is left to write it
            page = project.page("comparison")
            assert "Partial: 1 of 3 runs of the campaign are there" in page

    snakemake = project.start()
    for run, part, number in ((2, INNER, signal.SIGKILL), (3, "analyze-participants", signal.SIGTERM)):
        wait_for(partial(has_begun, project, run), snakemake)
        wait_for(partial(while_analysing, project, part), snakemake)[0].send_signal(number)
    assert snakemake.wait(timeout=PATIENCE_S) != 0
    assert processes_in(project.folder) == []

    go_on(project).says("1 of 3 runs are there, 2 to do")
    nothing_is_done_again()
    assert [run["valid"] for run in project.conditions().values()] == ["valid"] * 3
    page = project.page("comparison")
    assert "3 runs compared, 0 left out" in page
    assert "Partial" not in page
    for row in project.table("comparison/compared_runs.tsv"):
        assert float(row["flushed_s"]) >= float(row["makespan_s"])


@pytest.mark.nightly
def test_a_campaign_whose_host_died_goes_on_on_another(project: Project) -> None:
    """What the dead run left on a shared work tier belongs to this campaign, although another host made it."""
    configure_campaign(project, runs=1, work="local")

    def on(host: str) -> Project:
        return replace(project, before=lambda: ["unshare", "--uts", "sh", "-c", f'hostname {host}; exec "$@"', "sh"])

    def computes() -> list[Path]:
        return [*project.folder.glob("neurotier-*/work/*/*/in/*")]

    stop(on("first"), computes, signal.SIGKILL, "everything")
    assert computes()
    go_on(on("second"))
    assert [run["valid"] for run in project.conditions().values()] == ["valid"]


SLOW = {"name": "brainextractor", "brainextractor": {"iterations": 120}}
TARGETS: dict[str, tuple[str, dict[str, Any], str]] = {
    "bet": ("participants", {"tool": "bet"}, "analyze-participants"),
    "participants": ("participants", {"tool": SLOW}, "analyze-participants"),
    "advise": (
        "advise",
        {"tool": SLOW, "probe": {"time_s": 1, "share": 0.01, "streams": 1}},
        "analyze-participants",
    ),
    "probe": ("probe", {"probe": {"tiers": ["local"], "time_s": 4, "share": 0.01, "streams": 2}}, "fio --output"),
    "sweep": ("sweep", {"sweep": {"tiers": ["local"], "sets": {"a": GRID}}}, "fio --output"),
    "staging": ("staging", {"staging": STAGED}, "neurotier.storage.staging.program"),
    "snakemake": ("bigbrain", {"bigbrain": {**BLOCKS, "engines": ["snakemake"]}}, "bigbrain.engines.worker"),
    "gnu-parallel": ("bigbrain", {"bigbrain": {**LASTING, "engines": ["gnu-parallel"]}}, "bigbrain.engines.worker"),
    "spark": ("bigbrain", {"bigbrain": {**BLOCKS, "engines": ["spark"]}}, "pyspark.daemon"),
}
"""Target, configuration and what its command line has, of what takes a moment."""


NIGHTLY_TARGETS: list[tuple[str, list[signal.Signals]]] = [
    ("participants", [signal.SIGTERM]),
    ("gnu-parallel", [signal.SIGTERM, signal.SIGKILL]),
    ("probe", [signal.SIGINT, signal.SIGKILL]),
    *(("spark", [number]) for number in SIGNALS),  # its workers may do all that is left before they end
    ("snakemake", [signal.SIGTERM]),
    ("sweep", [signal.SIGINT]),  # the way of the probe
    ("staging", [signal.SIGKILL]),
]


PROGRAMS = {"gnu-parallel": "gnu_parallel", "spark": "spark", "staging": "staging_engines"}
"""Fixture of the program that a target cannot do without."""


OUTLIVING = {"probe", "sweep", "staging", "gnu-parallel", "spark"}
"""What runs on for a moment when Snakemake was killed."""


@pytest.mark.parametrize(
    ("name", "numbers"),
    [
        ("bet", [signal.SIGINT]),
        *nightly(*NIGHTLY_TARGETS),
        *nightly(("advise", [signal.SIGTERM]), mark=too_long),
    ],  # kills: test_interrupted.py
)
def test_what_was_stopped_goes_on(
    tmp_path: Path, demo_source: Path, request: pytest.FixtureRequest, name: str, numbers: list[signal.Signals]
) -> None:
    """Snakemake alone is told, as a scheduler does, while the tool runs; each time the same command reaches the tool
    again, and at last it goes through.
    """
    if name in PROGRAMS:
        request.getfixturevalue(PROGRAMS[name])
    project = slow_project(tmp_path)
    target, configuration, part = TARGETS[name]
    project.configure(dataset={"source": demo_source, "participants": ["0099001", "0099102"]}, **configuration)
    for number in numbers:
        said = stop(project, lambda: processes_in(project.folder, part), number, "", target).output.splitlines()
        if target == "participants":
            assert [line for line in said if "topped" in line or "failed" in line] == said[-1:], said
            assert re.fullmatch(rf"Stopped by {number.name}: \d of 2 participants done, 0 failed, .*", said[-1])
            assert not list(project.results.glob("state/failures/**/*.json"))
        if number == signal.SIGKILL:  # its scripts look after it, and end what they run
            wait_for(lambda: name not in OUTLIVING or not processes_in(project.folder, part))
    go_on(project, target)
    if target != "participants":
        assert (project.results / f"{'advice' if target == 'advise' else target}.html").exists()


def test_a_point_that_failed_is_measured_again_by_the_next_start(project: Project) -> None:
    target, configuration, part = TARGETS["sweep"]
    snakemake = project.start(target, **configuration)
    wait_for(lambda: list(project.results.glob("sweep/points/local/*.json")), snakemake)
    wait_for(lambda: processes_in(project.folder, part), snakemake)[0].kill()
    snakemake.ended().succeeded()  # the others are measured
    states = [row["status"].split(":")[0] for row in project.table("sweep/sweep.tsv")]
    assert sorted(states) == ["failed", "measured"]
    project.succeeds(target)
    assert project.columns("status", "sweep/sweep.tsv") == ["measured"] * 2


SLOW_START = """import sys, time
if any(".snakemake/scripts/" in word for word in sys.orig_argv):
    open(__file__ + ".reached", "w").close()
    time.sleep(600)
"""
"""Python reads this at its start, and so a script of a rule has not come to its own first line."""


def test_ctrl_c_while_a_script_imports_shows_no_trace(project: Project, monkeypatch: pytest.MonkeyPatch) -> None:
    """A terminal sends SIGINT to all of its processes at once."""
    project.heads("01")
    (project.folder / "slow").mkdir()
    (project.folder / "slow/sitecustomize.py").write_text(SLOW_START)
    monkeypatch.setitem(ENVIRONMENT, "PYTHONPATH", str(project.folder / "slow"))
    snakemake = project.start("participants", start_new_session=True, tool="noop")
    wait_for((project.folder / "slow/sitecustomize.py.reached").exists, snakemake)
    os.killpg(snakemake.pid, signal.SIGINT)
    snakemake.ended().failed()
    assert processes_in(project.folder) == []


def test_work_goes_on_when_the_terminal_is_gone(project: Project) -> None:
    """As in the background of a shell that has ended: whoever is killed then is tried again, and nobody else."""
    project.heads("00", "01")
    tools, terminal = project.folder / "tools", os.openpty()
    dies = f"case $1 in *sub-00*) [ -e {tools}/again ] || {{ touch {tools}/again; kill -9 $PPID; }};; esac"
    waits = f"echo $1 >>{tools}/calls; while [ ! -e {tools}/go ]; do sleep 0.1; done"
    script(tools / "bet", f'{waits}\n{dies}\nexec {STAND_INS}/bet "$@"')
    command = project.command("all", tool="bet")
    options: dict[str, Any] = {"cwd": project.folder, "env": project.environment(tools), "start_new_session": True}
    streams: dict[str, int] = dict.fromkeys(("stdout", "stderr"), terminal[1])
    snakemake = subprocess.Popen(command, stdin=subprocess.DEVNULL, **options | streams)
    os.close(terminal[1])
    wait_for(lambda: (tools / "calls").exists() and len((tools / "calls").read_text().split()) == 2)
    os.close(terminal[0])
    (tools / "go").touch()
    assert snakemake.wait(timeout=PATIENCE_S) == 0
    assert len(project.records()) == 2
    assert len((tools / "calls").read_text().split()) == 3
    assert (project.results / "report.html").exists()
