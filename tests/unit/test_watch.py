"""A run that is watched: who is done, running, failed and left; what is planted or damaged harms no one who looks."""

from __future__ import annotations

import os
import pty
import socket
import subprocess
import sys
import termios
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import psutil
import pytest
from neurotier.core.errors import SettingsError, StateError
from neurotier.core.files import read_json, write_json, write_text
from neurotier.core.places import Places
from neurotier.core.processes import RUN
from neurotier.run.jobs import load_settings
from neurotier.run.journal import Step, read_steps
from neurotier.watch.command import Look, rows, watch
from pool_jobs import prepared_results
from support import ENVIRONMENT, PATIENCE_S

LABELS = ["01", "02", "03", "04"]
WATCH = [sys.executable, "-m", "neurotier", "watch"]


@pytest.fixture
def places(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Places:
    """Results of a run that this process has begun a minute ago: nobody is done yet."""
    places = Places.from_settings(load_settings(prepared_results(tmp_path, LABELS)))
    monkeypatch.setenv(RUN, "now")
    begin(places)
    return places


def begin(places: Places, **facts: Any) -> None:
    started_s = max(psutil.Process().create_time(), time.time() - 60)
    known = {"run": "now", "host": socket.gethostname(), "pid": os.getpid(), "parallelism": 2, "started_s": started_s}
    write_json(places.runs / "now.json", known | facts)
    write_text(places.latest_run, "now\n")


@pytest.mark.parametrize("change", [{"placement": None}, {"placement": {}}, {"tiers": {"disk": {}}}])
def test_settings_of_another_version_are_named(places: Places, change: dict[str, Any]) -> None:
    write_json(places.settings_file, read_json(places.settings_file) | change)
    with pytest.raises(StateError, match="is damaged") as raised:
        load_settings(places.results)
    assert raised.value.where == str(places.settings_file)


def shown(places: Places, *before: str) -> subprocess.CompletedProcess[str]:
    """What the command prints once; words may come before it."""
    command = [*before, *WATCH, str(places.results), "--once"]
    return subprocess.run(command, env=ENVIRONMENT, capture_output=True, text=True, timeout=PATIENCE_S)


def line(seen: Look) -> str:
    return "; ".join(text for *_, text in rows(seen, "results") if text)


def end(places: Places, name: str) -> None:
    write_json(places.record(name), {"phases": [{"start_s": time.time() - 10, "end_s": time.time()}]})


def fail(places: Places, name: str, reason: str, exit_code: int = 70) -> None:
    write_json(places.failure(name), {"participant": name, "reason": reason, "exit_code": exit_code, "run": "now"})


def test_everyone_is_counted_once(places: Places) -> None:
    for label in LABELS[:3]:
        write_text(places.log(f"sub-{label}"), "")
    end(places, "sub-01")
    fail(places, "sub-02", "image is truncated")
    seen = Look(places.results)
    assert (seen.everyone, seen.done, list(seen.running), seen.waiting) == (4, 1, ["sub-03"], 1)
    assert seen.failed == [("sub-02", "image is truncated")]
    assert "1 of 4 done, 1 running, 1 failed, 1 waiting" in line(seen)
    assert "last failure: sub-02: image is truncated" in line(seen)


@pytest.mark.parametrize(("facts", "failed", "waiting"), [({"pid": 0}, 0, 4), ({"ended_s": time.time()}, 1, 3)])
def test_who_was_stopped_with_a_killed_run_has_not_failed(
    places: Places, facts: dict[str, Any], failed: int, waiting: int
) -> None:
    """The next start forgets such failures; a run that ended has forgotten them, and this is another's signal."""
    fail(places, "sub-02", "stopped by SIGTERM", exit_code=143)
    begin(places, **facts)
    seen = Look(places.results)
    assert (seen.alive, len(seen.failed), seen.waiting) == (False, failed, waiting)


def test_a_campaign_shows_the_tiers_of_its_placements(tmp_path: Path) -> None:
    """It showed those of the placement, on which none of its runs may be."""
    tiers = {name: {"path": str(tmp_path), "kind": "block"} for name in ("disk", "one", "other")}
    campaign = {"placements": {"first": {"work": "one"}, "second": {"work": "other", "results": None}}}
    results = prepared_results(tmp_path, ["01"], tiers=tiers, campaign=campaign)
    begin(Places.from_settings(load_settings(results)))
    seen = Look(results)
    assert seen.everyone == 0, "also before it has begun, of earlier versions, or if its page is asked for by its name"
    roles = {name: said for name, said, *_ in seen.rooms}
    assert roles == {"disk": "dataset, results", "one": "work", "other": "work"}


def test_nobody_waits_in_a_run_that_is_not_for_all_participants(places: Places) -> None:
    """Of advise, which analyses two, it said how long all would take, and of a probe that this is not known yet."""
    end(places, "sub-01")
    assert "1 of 4 done" in line(Look(places.results))
    begin(places, without_participants=True)
    said = [name for name, *_ in rows(Look(places.results), "results")]
    assert not {"participants", "left"} & {*said}


def test_a_run_that_clears_up_first_is_starting(places: Places) -> None:
    write_text(places.latest_run, "next\n")
    seen = Look(places.results)
    assert seen.alive is None
    assert " is starting; " in line(seen)


@pytest.mark.parametrize(("succeeded", "code"), [(True, 0), (False, 1)])
def test_watching_ends_with_the_run(
    places: Places, succeeded: bool, code: int, capsys: pytest.CaptureFixture[str]
) -> None:
    begin(places, ended_s=time.time(), succeeded=succeeded)
    assert watch(places.results, 1.0, once=False) == code
    assert len(capsys.readouterr().out.splitlines()) == 1


def test_a_folder_without_a_run_is_refused(tmp_path: Path) -> None:
    with pytest.raises(SettingsError, match="no run has begun here"):
        watch(tmp_path, 1.0, once=True)


@pytest.mark.parametrize("every", ["0", "-1", "nan", "inf", "1e10"])
def test_a_pause_that_is_none_or_has_no_end_is_refused(places: Places, every: str) -> None:
    with pytest.raises(SettingsError, match=r"--every .*: is not a time"):
        watch(places.results, float(every), once=True)


def test_a_failure_cannot_write_to_the_terminal(places: Places, capsys: pytest.CaptureFixture[str]) -> None:
    fail(places, "sub-01", "\x1b]0;title\x07\x1b[2Jgone\r\nforged line")
    watch(places.results, 1.0, once=True)
    printed = capsys.readouterr().out
    assert "gone" in printed
    assert "\x1b" not in printed
    assert len(printed.splitlines()) == 1


@pytest.mark.parametrize("spoilt", ["{", "[]", '{"name": 1}', os.mkfifo, partial(os.symlink, "/etc/passwd"), None])
def test_damaged_notes_are_passed_over(places: Places, spoilt: str | Callable[[Path], None] | None) -> None:
    Step(places, "clone_dataset", print).note("half of it")
    assert [note.progress for note in Look(places.results).steps] == ["half of it"]
    end(places, "sub-01")
    for file in (*places.journal("now").iterdir(), places.record("sub-01")):
        file.unlink()
        if isinstance(spoilt, str):
            file.write_text(spoilt)
        elif spoilt:
            spoilt(file)
    assert Look(places.results).steps == []


@pytest.mark.parametrize("name", ["state/latest_run", "state/settings.json", "index/images.tsv"])
def test_a_pipe_in_place_of_a_file_blocks_nobody(places: Places, name: str) -> None:
    (places.results / name).unlink()
    os.mkfifo(places.results / name)
    looked = shown(places)
    assert looked.returncode == (65 if name == "state/settings.json" else 0)
    assert len((looked.stdout + looked.stderr).splitlines()) == 1


def test_a_step_reports_now_and_then_and_nothing_at_its_end(places: Places, monkeypatch: pytest.MonkeyPatch) -> None:
    said: list[str] = []
    now_s = [1000.0]
    monkeypatch.setattr(time, "monotonic", lambda: now_s[0])
    step = Step(places, "index_dataset", said.append)
    for count in range(260):
        now_s[0] += 0.25
        step.tell(f"site {count}")
    assert said == ["index_dataset: site 119", "index_dataset: site 239"]  # every 30 s
    assert read_steps(places, "now")[0].progress.startswith("site 25")
    (file,) = places.journal("now").iterdir()
    assert 60 <= len(file.read_text().splitlines()) <= 66
    assert read_steps(places, "another run") == []
    step.note(None)
    assert read_steps(places, "now") == []


def test_a_closed_output_gets_no_trace(places: Places) -> None:
    looked = shown(places, "sh", "-c", 'exec "$@" >&-', "sh")
    assert (looked.returncode, looked.stderr) == (0, "")


def test_a_terminal_gets_one_screen(places: Places) -> None:
    """What a terminal shows is cut to its width, and each look takes the place of the one before."""
    fail(places, "sub-01", "\x1b[31mlong " * 100)
    master, terminal = pty.openpty()
    termios.tcsetwinsize(terminal, (24, 60))
    command = [*WATCH, str(places.results), "--every", "0.1"]
    environment = {name: value for name, value in ENVIRONMENT.items() if name not in ("COLUMNS", "LINES")}
    printed = b""
    with subprocess.Popen(command, stdin=terminal, stdout=terminal, env=environment) as watching:
        os.close(terminal)
        while printed.count(b"\x1b[J") < 3:
            printed += os.read(master, 4096)
        watching.terminate()
    os.close(master)
    screen = printed.decode().split("\x1b[J")[1]
    lines = screen.split("\r\n")[:-1]
    assert lines[0].startswith("run")
    assert any(text.startswith("failed") for text in lines)
    assert max(map(len, lines)) <= 59
    assert f"\x1b[{len(lines)}A" in screen
    assert b"\x1b[31m" not in printed
