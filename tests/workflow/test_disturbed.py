"""Runs beside others: what they take is told, and too much of it makes a run's times unfit, and not its results."""

from __future__ import annotations

import os
import re
from contextlib import AbstractContextManager

import pytest
from support import Project, busy_loops, numbered, sleeping

PROCESSORS = len(os.sched_getaffinity(0))


def configure(project: Project, participants: int, **sections: object) -> None:
    """So many participants in jobs of their own, in a run of more than 2 s; disturbed if others take 30 %."""
    project.heads(*numbered(participants))
    validity = {"others_cpu_share": 0.3}
    project.configure(tool=sleeping(0.5), shares={"participants": 1}, validity=validity, **sections)


def busy_machine(project: Project) -> AbstractContextManager[None]:
    """A busy loop per processor while participants are analysed: a run that uses less than one gets half of one."""
    return busy_loops(PROCESSORS, f"{project.folder}/neurotier-*/work/*/*")


@pytest.mark.nightly("long")
def test_a_campaign_beside_busy_loops_ends_after_its_first_run(project: Project) -> None:
    configure(project, 10, campaign={"placements": {"disk": {}}, "parallelism": [1], "repetitions": 3})
    with busy_machine(project):
        ended = project.fails(cores=1)
    (condition,) = project.conditions().values()
    ended.says(f"others use this machine ({condition['valid']}); when they have ended, start the same command")


def test_busy_loops_beside_a_run_spoil_its_times_and_not_its_results(project: Project) -> None:
    configure(project, 6)
    with busy_machine(project):
        ended = project.succeeds(cores=1)
    run = project.only_run
    assert run["valid"].startswith("invalid: disturbed: others took "), run
    assert 0.3 < float(run["others_cpu_share"]) < 1.05
    page = project.page("report")
    for said in ("Results: 6 of 6 participants done", "Timings: not for comparison: disturbed: others took "):
        ended.says(said)
        assert said in page
    first, second = re.findall(r'<div class="verdict (\w*)">', page)
    assert (first, second) == ("good", "open")
    for word in ("Invalid", "I/O time", "I/O takes", "wall - CPU"):
        assert word not in page + ended.output
    (spent,) = re.findall(r"A participant took .* waiting for storage\.", page)
    assert " waiting for a core, " in spent
