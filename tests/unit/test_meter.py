"""The meter: the whole tree is accounted for, and nothing of it stays; ``neurotier meter`` behaves as the command."""

from __future__ import annotations

import json
import os
import pty
import shlex
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import psutil
import pytest
import yaml
from neurotier.core.processes import start_process
from neurotier.core.tables import checker, columns
from neurotier.meter.function import measure_function
from neurotier.meter.measure import FROZEN_S, STOPPED
from neurotier.meter.traffic import FILE_SIZES
from shown_values import shown
from support import PATIENCE_S, wait_for


def tree_of(process: subprocess.Popen[bytes], count: int) -> list[psutil.Process]:
    """All below a process, once there are so many."""
    while len(tree := psutil.Process(process.pid).children(recursive=True)) != count:
        time.sleep(0.05)
    return tree


def python(script: str, *words: str) -> subprocess.Popen[bytes]:
    return subprocess.Popen([sys.executable, "-c", script, *words], stdout=subprocess.PIPE)


def test_sigkill_of_the_meter_takes_the_phase_with_it() -> None:
    script = (
        "from neurotier.core.processes import start_process\n"
        "from neurotier.meter.function import measure_function\n"
        "measure_function(lambda: start_process(['sleep', '1000']).wait())"
    )
    process = python(script)
    tree = tree_of(process, 2)
    process.kill()
    process.wait()
    assert psutil.wait_procs(tree, timeout=PATIENCE_S)[1] == []


def test_a_tool_begins_with_the_signals_of_a_shell(tmp_path: Path) -> None:
    """Python ignores SIGPIPE; a tool that inherited that would write on into a pipe that nobody reads."""
    with (tmp_path / "status").open("w") as file:
        assert start_process(["grep", "SigIgn", "/proc/self/status"], stdout=file).wait() == 0
    ignored = int((tmp_path / "status").read_text().split()[1], 16)
    assert not ignored & (1 << signal.SIGPIPE - 1 | 1 << signal.SIGXFSZ - 1)


def test_what_a_function_prints_is_printed_once() -> None:
    script = (
        "from neurotier.meter.function import measure_function\n"
        "print('before'); measure_function(lambda: print('inside')); print('after')"
    )
    assert python(script).communicate()[0] == b"before\ninside\nafter\n"


def test_alarms_that_come_as_a_wait_ends_are_no_stop() -> None:
    """Python's sigtimedwait then gives a signal of number 0."""
    before = signal.signal(signal.SIGALRM, lambda *_: None)
    signal.setitimer(signal.ITIMER_REAL, 0.0007, 0.0007)
    try:
        measure_function(lambda: time.sleep(3))
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)


METER = [str(Path(sys.executable).with_name("neurotier")), "meter"]


def meter(*words: str, **options: Any) -> subprocess.CompletedProcess[bytes]:
    return subprocess.run([*METER, *words], capture_output=True, check=False, **options)


def recorded(folder: Path, *words: str, **options: Any) -> Any:
    """The record of a command that ends well in a folder."""
    assert meter("-q", "--record", "record", *words, cwd=folder, **options).returncode == 0
    return json.loads((folder / "record").read_text())


def start(*words: str, **options: Any) -> subprocess.Popen[bytes]:
    """Start the meter, and wait until the command says that it is ready."""
    process = subprocess.Popen([*METER, "-q", *words], stdout=subprocess.PIPE, **options)
    assert process.stdout is not None
    assert process.stdout.readline() == b"ready\n"
    return process


def test_surroundings_are_the_callers(tmp_path: Path) -> None:
    """Streams, environment, folder, open files, limits and what signals do: as without the meter.

    SIGPIPE, which Python ignores, too: or a command would write on after its reader has left.
    """
    show = "cat; env | grep -v ^_= | sort; pwd; cat <&3; umask; ulimit -a; grep -E 'Sig(Blk|Ign|Cgt)' /proc/self/status"
    (tmp_path / "third").write_text("from the third file\n")
    seen = []
    for before in ([], [*METER, "-q", "--"]):
        command = ["bash", "-c", 'exec 3< third; exec "$@"', "bash", *before, "sh", "-c", f"{show}; echo problem >&2"]
        done = subprocess.run(command, cwd=tmp_path, capture_output=True, check=True, input=b"\0words\n")
        seen.append((done.stdout, done.stderr))
    assert seen[0] == seen[1]
    assert seen[0][0].startswith(b"\0words\n")
    assert b"from the third file" in seen[0][0]


def test_looking_for_a_command_reads_nothing(tmp_path: Path) -> None:
    """The child of the meter that becomes the command imports no module before: its reading would be the command's."""
    read = []
    for name in ("true", shutil.which("true") or ""):
        (folder := tmp_path / name.strip("/")).mkdir(parents=True)
        read.append(recorded(folder, name)["logical_read_bytes"])
    assert read[0] == read[1]


@pytest.mark.parametrize(
    ("words", "code"),
    [
        (["sh", "-c", "exit 3"], 3),
        (["sh", "-c", "kill -TERM $$"], -signal.SIGTERM),
        (["sh", "-c", "kill -KILL $$"], -signal.SIGKILL),
        (["/nowhere"], 127),
        (["/etc/passwd"], 126),
    ],
)
def test_ends_as_the_command_ended_though_nobody_reads_the_summary(words: list[str], code: int) -> None:
    assert meter("-q", "--", *words).returncode == code
    for unread in ("2> /dev/full", "2>&-"):
        assert subprocess.run(["sh", "-c", f'exec "$@" {unread}', "sh", *METER, "--", *words]).returncode == code


LIBRARY = """
import sys
from neurotier.meter.measure import Interrupted, measure_command
try: measure_command(["sh", "-c", sys.argv[1]], grace_s=60)
except Interrupted as stop: sys.exit(stop.exit_code)
"""


@pytest.mark.parametrize(
    ("command", "below"),
    [
        ("setsid sleep 1000 & sleep 1001 & echo ready; wait", 3),
        ("sleep 1000 & echo ready", 1),  # the grace time of left-over processes is no time in which a signal is lost
    ],
)
def test_a_signal_ends_the_whole_tree_of_a_call_or_a_command(command: str, below: int) -> None:
    for process, code in (
        (python(LIBRARY, command), 128 + signal.SIGTERM),
        (start("--grace", "60", "sh", "-c", command), -signal.SIGTERM if below > 1 else 0),
    ):
        tree = tree_of(process, below)
        process.send_signal(signal.SIGTERM)
        assert process.wait(timeout=PATIENCE_S) == code
        assert not any(child.is_running() for child in tree)


@pytest.mark.parametrize(("grace_s", "answer", "code"), [("5", "exit 7", 7), ("0.3", "", -signal.SIGKILL)])
def test_a_command_may_answer_to_a_signal_within_the_grace_time(grace_s: str, answer: str, code: int) -> None:
    deaf = f"trap '{answer}' TERM; echo ready; while :; do sleep 0.05; done"
    process = start("--grace", grace_s, "sh", "-c", deaf)
    process.send_signal(signal.SIGTERM)
    assert process.wait(timeout=PATIENCE_S) == code


def test_warning_signals_go_to_the_command_alone(tmp_path: Path) -> None:
    child = "trap 'echo child >> heard' USR1; while :; do sleep 0.05; done"
    script = (
        f"trap 'echo command >> heard; kill $!; exit 4' USR1; sh -c \"{child}\" & echo ready; while :; do wait; done"
    )
    process = start("sh", "-c", script, cwd=tmp_path)
    process.send_signal(signal.SIGUSR1)
    assert process.wait(timeout=PATIENCE_S) == 4
    assert (tmp_path / "heard").read_text() == "command\n"


@pytest.mark.parametrize("paused", ["never", "stopped", "frozen"])
def test_the_wall_time_of_a_command_that_was_paused_is_not_divided(
    tmp_path: Path, request: pytest.FixtureRequest, paused: str
) -> None:
    """Ctrl-Z stops the whole group; `docker pause` and Slurm freeze it without a signal."""
    group = request.getfixturevalue("control_group") if paused == "frozen" else tmp_path
    process = start(
        *("--record", "record", "sh", "-c", "echo ready; until [ -e go ]; do sleep 0.05; done"),
        cwd=tmp_path,
        process_group=0,
        preexec_fn=lambda: (group / "cgroup.procs").write_text("0"),
    )
    if paused == "stopped":
        os.killpg(process.pid, signal.SIGSTOP)
        time.sleep(1)
        os.killpg(process.pid, signal.SIGCONT)
    elif paused == "frozen":
        (group / "cgroup.freeze").write_text("1")
        time.sleep(FROZEN_S + 0.5)
        (group / "cgroup.freeze").write_text("0")
    (tmp_path / "go").touch()
    assert process.wait(timeout=PATIENCE_S) == 0
    said = json.loads((tmp_path / "record").read_text())
    assert (said["account"] is None) == (said["account_reason"] == STOPPED) == (paused != "never")


def test_children_that_the_caller_leaves_are_none_of_the_command_s(tmp_path: Path) -> None:
    """bash leaves them: what takes the summary lives to do so, and what runs in the background goes on."""
    metered = shlex.join([*METER, "--record", "record", "true"])
    script = f"sleep 60 & echo $! >pid; {shlex.join([*METER, 'true'])} 2> >(cat >said); exec {metered}"
    subprocess.run(["bash", "-c", script], cwd=tmp_path, check=True, stderr=subprocess.DEVNULL)
    wait_for(lambda: (tmp_path / "said").read_text().startswith("---"))
    processes = 1 if os.geteuid() == 0 else "-"  # the kernel tells root alone how many there were
    assert shown(json.loads((tmp_path / "record").read_text()), "left_behind processes") == f"0 {processes}"
    os.kill(int((tmp_path / "pid").read_text()), signal.SIGKILL)


def test_who_asks_to_end_by_timeout_stopped_nobody(tmp_path: Path) -> None:
    """timeout sends SIGCONT along."""
    busy = "import signal, sys; signal.signal(15, lambda *_: sys.exit(0))\nwhile True: pass"
    metered = [*METER, "--record", "record", sys.executable, "-c", busy]
    subprocess.run(["timeout", "1", *metered], cwd=tmp_path, capture_output=True)
    assert "stopped" not in (tmp_path / "record").read_text()


def test_what_was_ignored_stays_ignored() -> None:
    """A batch job under ``nohup`` survives the end of its terminal, metered or not."""
    process = start(
        "sh", "-c", "echo ready; sleep 0.5; exit 5", preexec_fn=lambda: signal.signal(signal.SIGHUP, signal.SIG_IGN)
    )
    process.send_signal(signal.SIGHUP)
    assert process.wait(timeout=PATIENCE_S) == 5


def test_no_orphan_stays(tmp_path: Path) -> None:
    """A daemon that outlives the command is given the grace time, then ended; its cost is in the record."""
    daemon = "setsid sh -c 'echo $$ > daemon; sleep 1000' > /dev/null 2>&1 & until [ -s daemon ]; do sleep 0.05; done"
    said = recorded(tmp_path, "--grace", "0.3", "sh", "-c", daemon)
    assert shown(said, "left_behind account") == "1 -", "seconds after the phase are none of its wall time"
    assert not psutil.pid_exists(int((tmp_path / "daemon").read_text()))


def test_meters_that_share_a_record_write_whole_lines_with_every_key_of_the_schema(tmp_path: Path) -> None:
    words = "--record", "record", "--phase", "compute", "--tier", "work=.", "--", "sh", "-c"
    meters = [
        subprocess.Popen([*METER, *words, f"exit {code}"], stderr=subprocess.PIPE, cwd=tmp_path) for code in range(8)
    ]
    for code, process in enumerate(meters):
        assert process.communicate()[1] == b"", "nothing for people where there is no terminal"
        assert process.returncode == code
    lines = [json.loads(line) for line in (tmp_path / "record").read_text().splitlines()]
    assert sorted((line["phase"], line["exit_code"]) for line in lines) == [("compute", code) for code in range(8)]
    for line in lines:
        checker("meter")(line)
        assert set(line) == set(columns("meter"))
        for flow in line["tiers"]:
            checker("flow")(flow)
            assert set(flow) - {FILE_SIZES} == set(columns("flow"))


@pytest.mark.alone  # a campaign of another test would empty the page cache
def test_tier_and_page_cache(tmp_path: Path) -> None:
    image, folder = tmp_path / "image", tmp_path / "tier"
    image.write_bytes(bytes(3_000_000))
    with image.open("rb") as file:
        os.fsync(file.fileno())
        os.posix_fadvise(file.fileno(), 0, 0, os.POSIX_FADV_DONTNEED)
    folder.mkdir()
    script = f"cat {image} > {folder}/copy; sync {folder}/copy"
    measured = recorded(tmp_path, "--tier", f"disk={folder}", "--input", str(image), "sh", "-c", script)
    assert shown(measured, "input_bytes input_resident_before") == "3000000 0"
    assert measured["input_resident_after"] == pytest.approx(1, abs=0.01)  # the kernel may take a page back at any time
    growth = next(flow for flow in measured["tiers"] if flow["traffic_source"] == "growth")
    assert shown(growth, "tier written_bytes written_files") == "disk 3000000 1"
    for flow in measured["tiers"]:
        if flow["traffic_source"] == "device":  # of all processes: at least ours
            assert flow["written_bytes"] >= 3_000_000


def configure(folder: Path, text: str) -> None:
    (folder / "config").mkdir()
    (folder / "config" / "config.yaml").write_text(text)


def test_tier_by_its_name_in_the_configuration(tmp_path: Path) -> None:
    configure(tmp_path, "tiers: {work: {path: $HERE/w, kind: block}}\n")
    (tmp_path / "w").mkdir()
    script = "--tier", "work", "sh", "-c", "echo 1234567 > w/file"
    said = recorded(tmp_path, *script, env=os.environ | {"HERE": str(tmp_path)})
    assert said["tiers"][0]["written_bytes"] == 8


@pytest.mark.parametrize("case", yaml.safe_load(Path(__file__).with_name("meter_options.yaml").read_text()))
def test_wrong_options_are_told_before_the_command_starts(tmp_path: Path, case: list[Any]) -> None:
    words, message, *text = case
    if text:
        configure(tmp_path, *text)
    done = meter(*words, cwd=tmp_path)
    assert done.returncode not in (0, 1)
    (line,) = done.stderr.decode().splitlines()
    assert message in line
    assert not (tmp_path / "ran").exists()


def in_a_terminal(words: list[str], keys: bytes = b"") -> tuple[int, str]:
    """Run a command in a terminal of its own; type keys when it says that it is ready."""
    screen = b""

    def read(terminal: int) -> bytes:
        nonlocal screen
        said = os.read(terminal, 65536)
        screen += said
        if b"ready" in said:
            os.write(terminal, keys)
        return said

    return os.waitstatus_to_exitcode(pty.spawn(words, read)), screen.decode()


def test_summary_on_a_terminal_fits_one_screen() -> None:
    code, screen = in_a_terminal([*METER, "--tier", "shm=/dev/shm", "sleep", "0.3"])
    lines = screen.splitlines()
    assert code == 0
    assert "sleep: exit code 0" in screen
    assert "[wait4]" in screen
    assert len(lines) <= 24
    assert max(map(len, lines)) <= 100


def test_interrupt_key_is_the_commands_own_business() -> None:
    """The terminal tells the command itself: one that heeds Ctrl-C and goes on is not ended behind its back."""
    heeds = (
        "import time\n"
        "try: print('ready', flush=True); time.sleep(20)\n"  # ready only where the key is heeded
        "except KeyboardInterrupt: print('heard once')\n"
        "time.sleep(1); print('went on')"
    )
    code, screen = in_a_terminal([*METER, "-q", "--grace", "0.1", sys.executable, "-c", heeds], keys=b"\x03")
    assert (code, screen.count("heard once"), screen.count("went on")) == (0, 1, 1)
    code, screen = in_a_terminal([*METER, "-q", "sh", "-c", "echo ready; sleep 20"], keys=b"\x03")
    assert code == -signal.SIGINT


def test_pressure_is_that_of_a_control_group_of_ones_own(tmp_path: Path, control_group: Path) -> None:
    """Shared with others, it says nothing of the job."""
    for name, companion in (("alone", ""), ("shared", "sleep 100 &")):
        script = f'echo $$ > {control_group}/cgroup.procs; {companion} "$@"; code=$?; kill $! 2> /dev/null; exit $code'
        record = tmp_path / name
        words = ["sh", "-c", script, "sh", *METER, "-q", "--record", str(record), "--", "sleep", "0.1"]
        subprocess.run(words, check=True)
    sources = [json.loads((tmp_path / name).read_text())["pressure_source"] for name in ("alone", "shared")]
    assert sources == ["cgroup", "machine"]


def test_a_record_that_is_cut_short_is_said(tmp_path: Path) -> None:
    """The system takes what fits, and says nothing until the rest comes."""
    limited = ["sh", "-c", 'ulimit -f 1; exec "$@"', "sh", *METER, "-q", "--record", "record.jsonl", "--", "true"]
    (tmp_path / "record.jsonl").write_text("x" * 500 + "\n")
    ended = subprocess.run(limited, cwd=tmp_path, capture_output=True, text=True, check=False)
    assert ended.stderr == "neurotier: --record record.jsonl: cannot be written: File too large\n"
    assert ended.returncode == 0, "the command's own"
    assert (tmp_path / "record.jsonl").read_text() == "x" * 500 + "\n", "the next line begins a line"
