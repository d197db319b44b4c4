"""Plant bugs, one per promise of ``workflow/README.md`` and some of the past, and see whether the referee catches each.

The referee are the tests of ``hostile/``, ``workflow/`` and ``faults/``, which know commands, files and processes only.
Each bug is planted into a copy of this checkout, as it lies here, and the trials that are there for its promise are run
in it; all of them have to pass in a copy without any bug. Exit 1 if a bug is missed. ``make planted-bugs``, or some::

    python tests/planted_bugs.py second-run tier-too-full
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).resolve().parent.parent
FAILED = 1
"""Exit code of pytest when tests ran, and some of them failed."""


class Bug(NamedTuple):
    """A bug: a text of a file below ``workflow/`` that is there once, what takes its place, and who has to catch it."""

    name: str
    promise: str
    file: str
    old: str
    new: str
    trials: tuple[str, ...]


BUGS = (
    Bug(
        "damage-unseen",
        "a derivative that is lost or damaged is made again",
        "neurotier/run/healing.py",
        '        return first_missing(listed, folder) if folder.is_dir() else "its folder"\n',
        '        return ""\n',
        ("workflow/test_looking.py::test_a_dry_run_says_what_was_lost_and_plans_it",),
    ),
    Bug(
        "half-written",
        "nothing half-written has a final name",
        "neurotier/core/files.py",
        "    partial.rename(final)\n",
        "    import subprocess\n    subprocess.run(['cp', '-rT', partial, final])\n    remove_path(partial)\n",
        ("workflow/test_bad_input.py::test_results_tier_that_becomes_full",),
    ),
    Bug(
        "left-running",
        "the next start ends what a killed run left running",
        "neurotier/core/processes.py",
        "    return list({*marked(RUN, runs), *marked(CAMPAIGN, runs)})\n",
        "    return []\n",
        ("hostile/test_outliving.py::test_what_outlives_even_its_guard_is_ended_by_the_next_start",),
    ),
    Bug(
        "failure-unsaid",
        "a participant that fails is named, and the run ends with another exit code than 0",
        "neurotier/run/participants.py",
        "    if left:\n        fix =",
        "    if not names:\n        fix =",
        ("workflow/test_bad_input.py::test_content_that_is_nowhere",),
    ),
    Bug(
        "change-unseen",
        "an input that changed is analysed again",
        "neurotier/dataset/contents.py",
        'key or f"{facts.st_size}-{facts.st_mtime_ns}"',
        'key or "unchanged"',
        ("workflow/test_main_job.py::test_who_is_new_or_gone_is_said_and_content_that_changed_is_analysed_again",),
    ),
    Bug(
        "tier-too-full",
        "a participant for whom there is no room is refused before it begins",
        "neurotier/analysis/staging.py",
        "    if needed_bytes > tier.free_bytes():\n",
        "    if False:\n",
        ("workflow/test_bad_input.py::test_tier_that_is_too_small",),
    ),
    Bug(
        "second-run",
        "two runs cannot use one results folder",
        "neurotier/core/files.py",
        "fcntl.LOCK_EX | fcntl.LOCK_NB",
        "fcntl.LOCK_SH | fcntl.LOCK_NB",
        ("workflow/test_bad_input.py::test_two_runs_of_one_results_folder",),
    ),
    Bug(
        "folder-of-others",
        "a folder that another user made is not used, and nothing in it is touched",
        "neurotier/core/private.py",
        "    if facts.st_uid != os.getuid():\n",
        "    if False:\n",
        ("hostile/test_shared_tiers.py::test_a_folder_at_our_name_is_refused",),
    ),
    Bug(
        "mask-believed",
        "exit codes of tools are not believed: masks are checked",
        "neurotier/analysis/images.py",
        "    if not np.isin(data, (0, 1)).all():\n",
        "    if False:\n",
        ("hostile/test_tool_output.py",),
    ),
    Bug(
        "settings-trace",
        "a wrong setting is said in one line",
        "neurotier/run/snakemake_internals.py",
        "    except EXTERNAL as error:\n        logger.error(",
        "    except ZeroDivisionError as error:\n        logger.error(",
        ("workflow/test_bad_input.py::test_configuration_that_is_wrong",),
    ),
    Bug(
        "table-cut",
        "tables have every phase of everyone who is done",
        "neurotier/run/profile_tables.py",
        '        for phase in record["phases"]\n    ]\n\n\ndef read_timed_rows',
        '        for phase in record["phases"][:-1]\n    ]\n\n\ndef read_timed_rows',
        ("workflow/test_main_job.py::test_profile_accounts_for_every_phase",),
    ),
    Bug(
        "links-followed",
        "links of a dataset lead only into it",
        "neurotier/core/foreign.py",
        "    for root in (str(dataset), *map(os.path.expanduser, links_to)):\n",
        '    for root in (str(dataset), *map(os.path.expanduser, links_to), "/"):\n',
        ("hostile/test_datasets.py::test_links_of_a_plain_folder_lead_nowhere_else_and_nothing_blocks",),
    ),
    Bug(
        "kernel-written",
        "a container of root's writes to nothing of the machine",
        "neurotier/containers/run.py",
        'for place in ("/sys/devices/system", "/proc/sys")]',
        'for place in ("/sys/devices/system",)]',
        ("hostile/test_hostile_containers.py::test_a_container_of_roots_changes_nothing_of_the_machine",),
    ),
    Bug(
        "reckless-clone",
        "nothing of a dataset says how its clone is made",
        "neurotier/dataset/commands.py",
        '"DATALAD_CLONE_RECKLESS": "",',
        "",
        ("hostile/test_datasets.py::test_a_dataset_does_not_say_how_its_clone_is_made",),
    ),
    Bug(
        "dates-believed",
        "files of the future do not stop a run",
        "neurotier/run/healing.py",
        "facts.st_mtime > now_s:",
        "False:",
        ("workflow/test_what_was_spoiled.py::test_what_was_spoiled_is_made_again_and_contents_stay",),
    ),
    Bug(
        "too-many-at-once",
        "no more are analysed at once than Snakemake has granted",
        "neurotier/run/pool.py",
        "concurrency = needs.concurrency((granted.threads or needs.threads) // needs.threads, names)",
        "concurrency = needs.concurrency(len(names), names)",
        ("workflow/test_granted.py::test_no_more_are_analysed_at_once_than_was_granted",),
    ),
    Bug(
        "jobs-of-others",
        "a run knows its own jobs on a cluster, and not those of another module",
        "neurotier/run/snakemake_internals.py",
        "for file in (Path(file) for file in job.log if Path(file).is_relative_to(logs)):",
        'for file in [logs / job.name / "any.log"]:',
        ("workflow/test_slurm.py::test_two_modules_have_jobs_of_their_own",),
    ),
    Bug(
        "planted-results",
        "results below what another user made are refused by all that writes or removes, and nothing is touched",
        "neurotier/run/head.py",
        "            refuse_planted_results(places.results)\n"
        "            for tier in tiers:\n                tier.refuse_planted()\n        starts",
        "            pass\n        starts",
        (
            "hostile/test_shared_tiers.py::test_results_below_what_another_user_made_are_refused",
            "hostile/test_shared_tiers.py::test_a_link_of_another_user_is_refused_by_all_that_removes",
        ),
    ),
    Bug(
        "tool-blamed",
        "a tier that becomes read-only is named, and not the tool",
        "neurotier/analysis/staging.py",
        "if tier.is_read_only():",
        "if False:",
        ("workflow/test_bad_input.py::test_tier_that_becomes_read_only",),
    ),
    Bug(
        "memory-not-doubled",
        "who was killed for want of memory is given more",
        "neurotier/run/needs.py",
        "needed_mb = needed_mb * attempt + work_mb",
        "needed_mb = needed_mb + work_mb",
        ("workflow/test_slurm.py::test_only_what_may_pass_is_tried_again",),
    ),
)


class NotPlantedError(Exception):
    """A bug cannot be planted, or the referee cannot judge it; the text says why."""


@contextmanager
def copy_of_checkout() -> Iterator[Path]:
    """What git tracks of this checkout, as it lies here, in a folder of its own."""
    listed = subprocess.run(["git", "ls-files", "-z"], cwd=ROOT, capture_output=True, text=True, check=True).stdout
    with tempfile.TemporaryDirectory(prefix="checkout-", dir="/var/tmp") as name:
        copy = Path(name) / "checkout"
        for file in filter(None, listed.split("\0")):
            if (ROOT / file).exists():
                (copy / file).parent.mkdir(parents=True, exist_ok=True)
                shutil.copy2(ROOT / file, copy / file, follow_symlinks=False)
        yield copy


@contextmanager
def planted(bug: Bug, checkout: Path) -> Iterator[None]:
    """Have the one place of a file changed that the bug is about."""
    file = checkout / "workflow" / bug.file
    text = file.read_text() if file.exists() else ""
    if text.count(bug.old) != 1:
        raise NotPlantedError(f"{bug.name}: its text is {text.count(bug.old)} times in workflow/{bug.file}, not once")
    file.write_text(text.replace(bug.old, bug.new))
    yield
    file.write_text(text)


def exit_code(trials: tuple[str, ...], checkout: Path) -> int:
    """How pytest ends over trials in a checkout, whose library comes before the installed one."""
    command = [
        sys.executable,
        "-m",
        "pytest",
        "-q",
        "-x",
        "-p",
        "no:cacheprovider",
        f"--basetemp={checkout}-tmp",
    ]
    environment = {**os.environ, "PYTHONPATH": str(checkout / "workflow"), "PYTHONDONTWRITEBYTECODE": "1"}
    environment["NEUROTIER_REQUIRE_ALL"] = "1"  # a trial that is skipped catches nothing
    words = [*command, *(f"tests/{trial}" for trial in trials)]
    return subprocess.run(words, cwd=checkout, env=environment, stdout=subprocess.DEVNULL).returncode


def main(names: list[str]) -> int:
    """Plant bugs of these names, or all; the exit code."""
    bugs = [bug for bug in BUGS if not names or bug.name in names]
    if unknown := set(names).difference(bug.name for bug in bugs):
        print(f"no bug {', '.join(sorted(unknown))}; there are {', '.join(bug.name for bug in BUGS)}", file=sys.stderr)
        return 2
    missed = 0
    try:
        with copy_of_checkout() as checkout:
            for bug in bugs:
                with planted(bug, checkout):  # so that one that cannot be planted is an error at once
                    pass
            if code := exit_code(tuple(sorted({trial for bug in bugs for trial in bug.trials})), checkout):
                raise NotPlantedError(f"without any bug, pytest ends with {code}; run the trials by themselves")
            print("| bug | promise | trials | | s |\n| --- | --- | --- | --- | ---: |", flush=True)
            for bug in bugs:
                begin_s = time.monotonic()
                with planted(bug, checkout):
                    code = exit_code(bug.trials, checkout)
                if code not in (0, FAILED):
                    raise NotPlantedError(f"{bug.name}: pytest ended with {code}")
                caught = code == FAILED
                missed += not caught
                cells = (bug.name, bug.promise, " ".join(f"`{trial}`" for trial in bug.trials))
                verdict = "caught" if caught else "**missed**"
                print(f"| {' | '.join(cells)} | {verdict} | {time.monotonic() - begin_s:.0f} |", flush=True)
    except NotPlantedError as error:
        print(f"planted bugs: {error}", file=sys.stderr)
        return 2
    return 1 if missed else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
