"""What the workflow uses of Snakemake beyond its documentation, where no run shows it."""

from __future__ import annotations

import signal
import subprocess
import sys
import threading
from collections.abc import Callable
from pathlib import Path

import pytest
from neurotier.run.snakemake_internals import end_timers, name_pages
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


def ended(folder: Path, snakefile: str, *options: str) -> tuple[int, str]:
    """Exit code of a Snakemake with this Snakefile, and what it says, which has no trace in it."""
    (folder / "Snakefile").write_text(snakefile)
    command = [sys.executable, "-m", "snakemake", "--cores", "1", *options]
    done = subprocess.run(command, cwd=folder, env=ENVIRONMENT, capture_output=True, text=True)
    assert "Traceback" not in done.stderr, done.stderr
    return done.returncode, done.stderr


@pytest.mark.parametrize("prefix", ["", "one_", "two_one_"])
def test_asked_rules_are_known_by_the_name_that_they_have_in_this_module(tmp_path: Path, prefix: str) -> None:
    (tmp_path / "theirs.smk").write_text(
        "import sys\n"
        "from neurotier.run.snakemake_internals import own_names, translated\n"
        "def tell(wildcards):\n"
        "    print('own:', *sorted(translated(names, ['check', 'one_check', 'two_one_check'])), file=sys.stderr)\n"
        "rule check:\n"
        "    input: lambda wildcards: tell(wildcards) or []\n"
        "names = own_names(workflow)\n"
    )
    modules = [
        f"module {name}:\n    snakefile: 'theirs.smk'\nuse rule * from {name} as {name}_*\n"
        for name in ("one", "two_one")
    ]
    code, said = ended(tmp_path, "include: 'theirs.smk'\n" + "".join(modules), f"{prefix}check")
    assert code == 0, said
    others = {"check", "one_check", "two_one_check"} - {f"{prefix}check"}
    assert f"own: {' '.join(sorted(['check', *(str(tmp_path / name) for name in others)]))}\n" in said


def test_snakemake_leaves_a_temporary_folder_that_is_lost(tmp_path: Path) -> None:
    """It would end with a trace: the folder is on a disk that gives errors, or no folder any more."""
    code, said = ended(
        tmp_path,
        "from pathlib import Path\n"
        "from neurotier.run.snakemake_internals import show_no_traces_of_lost_disks\n"
        "show_no_traces_of_lost_disks(workflow)\n"
        "folder = Path(workflow._snakemake_tmp_dir.name)\n"
        "folder.rmdir()\n"
        "folder.touch()\n"
        "rule all:\n",
    )
    assert code == 0, said


def test_a_line_is_said_though_the_log_cannot_be_written(tmp_path: Path) -> None:
    """All open files of Snakemake's own log folder are given to a device that is full."""
    code, said = ended(
        tmp_path,
        "import os\n"
        "from neurotier.core.errors import TierError\n"
        "from neurotier.run.snakemake_internals import errors_in_a_line, show_no_traces_of_lost_disks\n"
        "show_no_traces_of_lost_disks(workflow)\n"
        "full = os.open('/dev/full', os.O_WRONLY)\n"
        "for name in os.listdir('/proc/self/fd'):\n"
        "    if os.path.exists(f'/proc/self/fd/{name}') and '.snakemake/log' in os.readlink(f'/proc/self/fd/{name}'):\n"
        "        os.dup2(full, int(name))\n"
        "with errors_in_a_line():\n"
        "    raise TierError('is full', where='tier local')\n",
    )
    assert code == 1
    assert "neurotier: tier local: is full" in said


def test_ctrl_c_while_a_run_begins_is_a_line(tmp_path: Path) -> None:
    code, said = ended(
        tmp_path,
        "import os, signal, time\n"
        "from neurotier.run.snakemake_internals import call_around\n"
        "def begin():\n"
        "    os.kill(os.getpid(), signal.SIGINT)\n"
        "    time.sleep(1)\n"
        "call_around(workflow, onstart=begin)\n"
        "rule all:\n"
        "    output: touch('made')\n",
    )
    assert code == 1
    assert "neurotier: stopped; start the same command again to go on" in said


def test_ctrl_c_before_the_snakefile_is_read_is_a_line(tmp_path: Path) -> None:
    code, said = ended(tmp_path, "import os, signal\nos.kill(os.getpid(), signal.SIGINT)\n", "--logger", "neurotier")
    assert code == -signal.SIGINT
    assert said.splitlines()[-1] == "neurotier: stopped; start the same command again to go on"


def test_a_job_that_is_tried_again_is_said_to_be(tmp_path: Path) -> None:
    rule = (
        "rule one:\n  output: 'done'\n  retries: 1\n  shell: '[ ! -e once ] || touch done; touch once; [ -e done ]'\n"
    )
    code, said = ended(tmp_path, rule, "--logger", "neurotier")
    assert code == 0, said
    assert "rule one failed; its log: none\nIt is tried again\n" in said


@pytest.mark.parametrize(
    ("output", "command", "full"),
    [
        ("small/deep/er/done", "true", "small/deep/er"),  # the folder of an output
        ("done", "rmdir small/logs; : > small/filler; false", "small/logs"),  # the log of a failed rule
    ],
)
def test_a_full_disk_is_a_line_where_snakemake_itself_has_no_room(
    tmp_path: Path, mount_tmpfs: Callable[..., Path], output: str, command: str, full: str
) -> None:
    mount_tmpfs(tmp_path / "small", "nr_inodes=2")  # its own, and one more
    rule = f"rule one:\n  output: {output!r}\n  log: 'small/logs/one.log'\n  shell: {command!r}\n"
    code, said = ended(tmp_path, rule, "--logger", "neurotier")
    assert code == 1
    assert "Error" not in said, said
    line = ": No space left on device; free some space there, and start the same command again"
    assert [found for found in said.splitlines() if found.endswith(line)], said
    assert full in said


def test_a_full_disk_is_a_line_where_snakemake_has_no_room_for_its_notes(
    tmp_path: Path, mount_tmpfs: Callable[..., Path]
) -> None:
    notes = mount_tmpfs(tmp_path / ".snakemake" / "metadata", "nr_inodes=1")
    code, said = ended(tmp_path, "rule one:\n  output: touch('done')\n", "--logger", "neurotier")
    assert code == 1
    assert "Error" not in said, said
    assert "permissions" not in said, said
    assert f"neurotier: {notes}/" in said
    assert said.splitlines()[-1].endswith(
        ": No space left on device; free some space there, and start the same command again"
    )


def test_a_command_that_runs_no_job_says_all_once(tmp_path: Path) -> None:
    code, said = ended(tmp_path, "rule one:\n  output: 'done'\n", "--logger", "neurotier", "--unlock")
    assert code == 0, said
    assert said.count("Unlocked working directory.") == 1


def test_a_report_of_what_is_not_there_is_a_line_and_one_of_what_snakemake_did_not_make_is_made(tmp_path: Path) -> None:
    rule = "rule one:\n  output: report('made.txt')\n"
    arguments = ["--logger", "neurotier", "--report", "report.zip"]
    code, said = ended(tmp_path, rule, *arguments)
    line = "neurotier: --report: made.txt is not there yet; start the same command without --report first"
    assert (code, said.splitlines()) == (1, [line])
    (tmp_path / "made.txt").touch()
    code, said = ended(tmp_path, rule, *arguments)
    assert code == 0
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
        name_pages([one, missing])
        name_pages([two])
        logger.info(NOTHING_TO_BE_DONE_MSG)
    finally:
        logger.removeHandler(handler)
        logger.setLevel(level)
    (line,) = capsys.readouterr().err.splitlines()
    assert line.startswith("Nothing to be done")
    assert line.endswith(f"; {one}; {two}")
