"""Commands that run no job: the results folder stays as it is, to the byte, and a dry run says what is to be done."""

from __future__ import annotations

import os
import re
import shutil
from pathlib import Path

import pytest
from conftest import nightly
from snakemake.cli import get_argument_parser
from support import Project

LOOKING = """\
--dry-run --forceall
--summary
--unlock
"""

MORE_LOOKING = """\
--dry-run
--dry-run --quiet
--dag
--rulegraph
--filegraph
--d3dag
--detailed-summary
--list-rules
--list-target-rules
--list-changes input
--list-changes params
--list-changes code
--list-input-changes
--list-params-changes
--list-untracked
--lint
--report {elsewhere}/report.zip
--print-compilation
--containerize
--generate-unit-tests unit-tests
--archive {elsewhere}/archive.tar.gz
--cleanup-metadata results/report.html
--cleanup-shadow
--conda-cleanup-envs
--conda-create-envs-only
--list-conda-envs
--container-cleanup-images
--delete-all-output --dry-run
--delete-temp-output --dry-run
"""

FINDS = ("--lint", "--generate-unit-tests")
"""What ends with an exit code of its own, as by what it has found."""

GO_WITH_A_RUN = """
--export-cwl --conda-cleanup-pkgs --debug-dag --printshellcmds --report-after-run --report-html-path
--report-html-stylesheet-path --report-metadata --report-stylesheet --reporter --skip-script-cleanup
--strict-dag-evaluation
"""
"""With the first, Snakemake (9.27) runs the workflow and exports nothing."""


def test_no_option_that_only_looks_is_left_out() -> None:
    """By the words with which Snakemake names them: one that is new belongs into one of the lists."""
    looks = re.compile(
        "--(dry|unlock|lint|containerize|archive|print|list|report|export|generate|.*(graph|dag|summary|clean|envs))"
    )
    known = {line.split()[0] for line in (LOOKING + MORE_LOOKING).splitlines()} | set(GO_WITH_A_RUN.split())
    options = [set(action.option_strings) for action in get_argument_parser()._actions]
    unknown = [names for names in options if any(map(looks.match, names)) and not names & known]
    assert unknown == []


def state_of(folder: Path) -> dict[str, tuple[int, int, bytes]]:
    """Each file and folder below one: its mode, the time of its last change, and its content."""
    found = {}
    for path in [folder, *folder.rglob("*")]:
        facts = path.lstat()
        found[str(path)] = (facts.st_mode, facts.st_mtime_ns, path.read_bytes() if path.is_file() else b"")
    return found


@pytest.fixture(scope="module")
def damaged(lasting: Project) -> Project:
    """A finished run that has lost a derivative and a table, with what a killed run may have left beside them."""
    lasting.heads("01", "02")
    lasting.succeeds(tool="noop")
    shutil.rmtree(lasting.derivatives / "sub-02")
    (lasting.results / "group/group.tsv").write_text("")
    (lasting.results / "index/.images.tsv.0f.partial").touch()
    (lasting.results / "state/got/any").mkdir(parents=True)
    os.utime(lasting.results / "index/skipped.tsv", (2**31, 2**31))
    return lasting


@pytest.mark.parametrize("option", [*LOOKING.splitlines(), *nightly(*MORE_LOOKING.splitlines())])
def test_a_command_that_only_looks_changes_nothing(damaged: Project, option: str, tmp_path: Path) -> None:
    before = state_of(damaged.results)
    ended = damaged.snakemake(*option.format(elsewhere=tmp_path).split())
    assert ended.code == 0 or option.startswith(FINDS), ended.output
    assert state_of(damaged.results) == before, ended.output
    assert not list(damaged.folder.glob("neurotier-*/work/*"))


def test_a_dry_run_says_what_was_lost_and_plans_it(damaged: Project) -> None:
    ended = damaged.succeeds("--dry-run", cores=0)
    assert ended.analysed == ["sub-02"]
    ended.says(
        "sub-02: its folder is not as it was written; it would be made again",
        "results/group/group.tsv is not as it was written; it would be made again",
        "analyze_participants  ",
        "tabulate_profile  ",
        "write_report  ",
    )
    damaged.succeeds()
    damaged.succeeds("--dry-run").says("Nothing to be done")
