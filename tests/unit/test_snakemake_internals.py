"""What the workflow uses of Snakemake beyond its documentation, where no run shows it."""

from __future__ import annotations

import re
import signal
import subprocess
import sys
import threading
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace

import pytest
from neurotier.core.errors import SettingsError
from neurotier.run.snakemake_internals import announce_pages, end_timers, separate_slurm_logs
from snakemake.common import NOTHING_TO_BE_DONE_MSG
from snakemake.logging import logger
from snakemake.settings.types import OutputSettings
from snakemake_interface_logger_plugins.common import LogEvent
from snakemake_logger_plugin_neurotier import LogHandler
from support import ENVIRONMENT, PATIENCE_S


def test_a_run_that_is_over_does_not_wait_for_its_timers() -> None:
    timer, other = threading.Timer(86_400, print), threading.Thread(target=threading.Event().wait, daemon=True)
    timer.start()
    other.start()
    end_timers()
    timer.join(PATIENCE_S)
    assert not timer.is_alive()
    assert other.is_alive()


def said_by(folder: Path, code: int, snakefile: str, *options: str, **environment: str) -> str:
    """What a Snakemake with this Snakefile says that ends with an exit code; there is no trace in it."""
    (folder / "Snakefile").write_text(snakefile)
    command = [sys.executable, "-m", "snakemake", "--cores", "1", *options]
    done = subprocess.run(command, cwd=folder, env=ENVIRONMENT | environment, capture_output=True, text=True)
    assert done.returncode == code, done.stderr
    assert "Traceback" not in done.stderr, done.stderr
    return done.stderr


THEIRS = """
import sys
from neurotier.run.snakemake_internals import own_names, requested_names

def tell(wildcards):
    print("own:", *sorted(requested_names(names, ["check", "one_check", "two_one_check"])), file=sys.stderr)

rule check:
    input: lambda wildcards: tell(wildcards) or []

names = own_names(workflow)
"""
IN_MODULES = """
include: "theirs.smk"
module one:
    snakefile: "theirs.smk"
use rule * from one as one_*
module two_one:
    snakefile: "theirs.smk"
use rule * from two_one as two_one_*
"""
LOST_FOLDER = """
from pathlib import Path
from neurotier.run.snakemake_internals import hide_traces_of_lost_disks
hide_traces_of_lost_disks(workflow)
folder = Path(workflow._snakemake_tmp_dir.name)
folder.rmdir()
folder.touch()
rule all:
"""
FULL_LOG = """
import os
from neurotier.core.errors import TierError
from neurotier.run.snakemake_internals import errors_as_one_line, hide_traces_of_lost_disks
hide_traces_of_lost_disks(workflow)
full = os.open("/dev/full", os.O_WRONLY)
for name in os.listdir("/proc/self/fd"):
    if os.path.exists(f"/proc/self/fd/{name}") and ".snakemake/log" in os.readlink(f"/proc/self/fd/{name}"):
        os.dup2(full, int(name))
with errors_as_one_line():
    raise TierError("is full", where="tier local")
"""
"""All open files of Snakemake's own log folder are given to a device that is full."""

STOPPED_AT_THE_BEGINNING = """
import os, signal, time
from neurotier.run.snakemake_internals import add_hooks

def begin():
    os.kill(os.getpid(), signal.SIGINT)
    time.sleep(1)

add_hooks(workflow, onstart=begin)
rule all:
    output: touch("made")
"""
STOPPED_BEFORE = """
import os, signal
os.kill(os.getpid(), signal.SIGINT)
"""
STALE_LOG = """
import snakemake.io
exec(compile("def stale(*_): raise OSError(116, 'Stale file handle')", "not the Snakefile", "exec"))
snakemake.io.lutime = stale
rule one:
    output: "done"
    log: "one.log"
    shell: "false"
"""
"""A network file system that is lost while a job fails, whose log Snakemake makes."""

TRIED_TWICE = """
rule one:
    output: "done"
    retries: 1
    shell: "[ ! -e once ] || touch done; touch once; [ -e done ]"
"""

NO_THREAD = """
import threading
threading.stack_size(1 << 46)
rule one:
    output: "done"
    shell: "touch done"
"""
"""No machine has the memory for such a thread, as if the user's memory or processes were limited."""

OF_THE_FUTURE = """
import os, time
open("given", "w").close()
os.utime("given", (time.time() + 3600,) * 2)
rule one:
    input: "given"
    output: "done"
    shell: "touch done"
"""
"""The clock was set back since the input was made."""


@pytest.mark.parametrize("prefix", ["", "one_", "two_one_"])
def test_asked_rules_are_known_by_the_name_that_they_have_in_this_module(tmp_path: Path, prefix: str) -> None:
    (tmp_path / "theirs.smk").write_text(THEIRS)
    said = said_by(tmp_path, 0, IN_MODULES, f"{prefix}check")
    others = {"check", "one_check", "two_one_check"} - {f"{prefix}check"}
    assert f"own: {' '.join(sorted(['check', *(str(tmp_path / name) for name in others)]))}\n" in said


CALM = ["--logger", "neurotier"]
STOPPED = r"(?m)^neurotier: stopped; start the same command again to go on\n"


@pytest.mark.parametrize(
    ("code", "snakefile", "options", "line"),
    [
        (1, FULL_LOG, [], "neurotier: tier local: is full"),
        (1, STOPPED_AT_THE_BEGINNING, [], STOPPED),
        (-signal.SIGINT, STOPPED_BEFORE, CALM, rf"{STOPPED}\Z"),
        (0, LOST_FOLDER, [], ""),  # nothing: Snakemake would show a trace
        (1, STALE_LOG, CALM, r"(?m)^neurotier: .*: Stale file handle; make room"),
        (1, NO_THREAD, CALM, r"(?m)^neurotier: no more memory, threads or processes; see the limits"),
        (1, OF_THE_FUTURE, CALM, r"(?m)^neurotier: the clock was set back.* again\n\Z"),
        (0, TRIED_TWICE, CALM, r"rule one failed; its log: none\nIt is tried again\n"),
    ],
    ids=[
        "full log",
        "Ctrl-C while a run begins",
        "Ctrl-C before",
        "lost folder",
        "lost log",
        "no thread",
        "clock set back",
        "tried again",
    ],
)
def test_what_happens_is_said_in_a_line(
    tmp_path: Path, code: int, snakefile: str, options: list[str], line: str
) -> None:
    """Though the log cannot be written, and the Snakefile has not been read."""
    assert re.search(line, said_by(tmp_path, code, snakefile, *options))


@pytest.mark.parametrize(
    ("output", "command", "full"),
    [
        ("small/deep/er/done", "true", "small/deep/er"),  # the folder of an output
        ("done", "rmdir small/logs; : > small/filler; false", "small/logs"),  # the log of a failed rule
        ("done", "touch done", ".snakemake/metadata"),  # its own notes
        ("done", "", ".snakemake/scripts"),  # its copy of a script
    ],
)
def test_a_full_disk_is_a_line_where_snakemake_itself_has_no_room(
    tmp_path: Path, mount_tmpfs: Callable[..., Path], output: str, command: str, full: str
) -> None:
    own = full.startswith(".")
    mount_tmpfs(tmp_path / (full if own else "small"), f"nr_inodes={1 if own else 2}")  # its own, and one more
    rule = f"rule one:\n  output: {output!r}\n  log: 'small/logs/one.log'\n"
    rule += f"  shell: {command!r}\n" if command else "  script: 'one.sh'\n"
    (tmp_path / "one.sh").touch()
    said = said_by(tmp_path, 1, rule, *CALM)
    assert not {"Error", "RuleException", "permissions"} & {*re.findall(r"\w+", said)}, said
    line = "(XDG_CACHE_HOME moves .cache), and start the same command again"
    assert ": No space left on device; make room " in said
    assert [found for found in said.splitlines() if found.endswith(line)], said
    assert full in said


@pytest.mark.parametrize("why", ["Read-only file system", "Not a directory"])
def test_a_home_that_cannot_be_written_is_a_line(tmp_path: Path, mount_tmpfs: Callable[..., Path], why: str) -> None:
    home = mount_tmpfs(tmp_path / "home", "ro") if why.startswith("Read") else tmp_path / "Snakefile"
    said = said_by(tmp_path, 1, "", *CALM, HOME=str(home))
    assert f"neurotier: {home}/.cache: {why}; make room or allow access there, or mount it again (XDG_" in said


def test_a_file_that_a_user_s_own_lines_cannot_open_is_said_with_the_line(tmp_path: Path) -> None:
    said = said_by(tmp_path, 1, "open('Snakefile/table.tsv')\n", *CALM)
    assert "line 1:" in said
    assert "make room" not in said


def test_a_job_that_slurm_is_not_given_is_a_line(tmp_path: Path) -> None:
    """The plugin refuses this option: it has its own."""
    options = [*["--executor", "neurotier-slurm", "--jobs", "1", "--default-resources"], "slurm_extra='--export=NONE'"]
    said = said_by(tmp_path, 1, 'rule one:\n    output: "x"\n    shell: "touch x"\n', *CALM, *options)
    assert "neurotier: Slurm is given no job of rule one: The --environment-export option is not allowed" in said


def test_a_path_in_which_slurm_would_put_the_number_of_a_job_is_refused() -> None:
    executor, settings = SimpleNamespace(run_uuid="e3a1", slurm_logdir=None), SimpleNamespace(logdir=None)
    workflow = SimpleNamespace(scheduler=SimpleNamespace(_executor=executor), executor_settings=settings)
    separate_slurm_logs(workflow, Path("r%n"))
    assert executor.slurm_logdir == Path("r%n/e3a1")
    line = "r%j: %j in its path is the number of a job to Slurm; choose another folder"
    with pytest.raises(SettingsError, match=line):
        separate_slurm_logs(workflow, Path("r%j"))


def test_a_command_that_runs_no_job_says_all_once(tmp_path: Path) -> None:
    said = said_by(tmp_path, 0, "rule one:\n  output: 'done'\n", *CALM, "--unlock")
    assert said.count("Unlocked working directory.") == 1


def test_a_report_of_what_is_not_there_is_a_line_and_one_of_what_snakemake_did_not_make_is_made(tmp_path: Path) -> None:
    rule = "rule one:\n  output: report('made.txt')\n"
    arguments = [*CALM, "--report", "report.zip"]
    line = "neurotier: --report: made.txt is not there yet; start the same command without --report first"
    assert said_by(tmp_path, 1, rule, *arguments).splitlines() == [line]
    (tmp_path / "made.txt").touch()
    said = said_by(tmp_path, 0, rule, *arguments)
    assert "Missing metadata" not in said
    assert said.splitlines()[-1] == "Report created."


def test_where_nothing_is_to_be_done_the_pages_of_all_modules_are_named(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    one, two, missing = (tmp_path / f"{name}.html" for name in ("one", "two", "missing"))
    one.touch()
    two.touch()
    handler, level = LogHandler(OutputSettings(), None), logger.level
    logger.addHandler(handler)
    logger.setLevel("INFO")
    try:
        logger.info(None, extra={"event": LogEvent.WORKFLOW_STARTED})
        announce_pages([one, missing])
        announce_pages([two])
        logger.info(NOTHING_TO_BE_DONE_MSG)
    finally:
        logger.removeHandler(handler)
        logger.setLevel(level)
    (line,) = capsys.readouterr().err.splitlines()
    assert line.startswith("Nothing to be done")
    assert line.endswith(f"; {one}; {two}")
