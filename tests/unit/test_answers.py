"""Answers: every sentence from numbers that can be checked by hand, and none where there is nothing to say."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
import yaml
from neurotier.core.tables import Row
from neurotier.meter.traffic import flow
from neurotier.meter.usage import ACCOUNT, LABELS
from neurotier.pages.kit.causes import CAUSES, sum_causes
from neurotier.pages.report.answers import run_answers
from neurotier.pages.report.data import ReportData, participant_jobs
from report_data import RUN, phase_row, sampled, without_account

SWITCH = "as root: sysctl kernel.task_delayacct=1"
KINDS = {"disk": "block", "nfs": "network", "memory": "tmpfs", "pmem": "fsdax"}
SETTINGS = SimpleNamespace(tiers={name: SimpleNamespace(kind=kind) for name, kind in KINDS.items()})


def spent(phase: str, participant: str = "sub-1", tier: str = "disk", **causes: float) -> Row:
    """A phase whose wall time is the sum of its causes, s: user, system, run_queue, block_io, memory_stall, other.

    What is ``unexplained`` adds to wall time, too.
    """
    cpu_s = causes.get("user", 0.0) + causes.get("system", 0.0)
    account = {column: causes.get(column.removeprefix("account_").removesuffix("_s"), 0.0) for column in ACCOUNT}
    counted = {column.removeprefix("account_"): value_s for column, value_s in account.items()}
    more = {"residual_s": causes.get("unexplained", 0.0), "work_tier": tier, "input_resident_before": None}
    return phase_row(RUN, participant, phase, 0.0, sum(causes.values()), cpu_s) | counted | account | more


def staged(source: str, target: str, participant: str = "sub-1") -> list[Row]:
    """The traffic of a phase ``stage_in``."""
    place = {"run": RUN, "participant": participant, "phase": "stage_in"}
    flows = [flow(source, "staging", read=(1000, 1)), flow(target, "staging", written=(1000, 1))]
    return [{**place, **each} for each in flows]


def texts(rows: list[Row], traffic: Sequence[Row] = ()) -> list[str]:
    return run_answers(ReportData({"profile": rows, "traffic": list(traffic)}, SETTINGS))


@pytest.mark.parametrize("case", yaml.safe_load(Path(__file__).with_name("answers.yaml").read_text()))
def test_what_the_time_was_spent_for_is_said(case: dict[str, Any]) -> None:
    rows = [spent(phase, **causes) for phase, causes in case["phases"].items()]
    assert texts(rows, staged(*case["staged"]) if "staged" in case else ()) == case["said"]


def test_participants_add_up() -> None:
    rows = [spent("compute", "sub-1", user=10.0), spent("compute", "sub-2", run_queue=90.0)]
    assert texts(rows)[1].startswith("Waiting for a core: 90 %")
    slowest, _ = participant_jobs(rows)
    assert slowest["participant"] == "sub-2"


def test_sampled_accounts_say_about() -> None:
    rows = [sampled(spent("compute", user=60.0, block_io=40.0), 0.5), sampled(spent("stage_out", user=20.0), 0.9)]
    place = "most of it in compute on tier disk"
    said = ["A faster tier saves at most about 33 %", f"Waiting for storage: about 33 % of wall time, {place}"]
    assert texts(rows) == said


def test_a_wait_beside_other_threads_is_saved_as_a_whole() -> None:
    """One of two threads waits 50 s beside the other, which computes, then it computes 50 s: in memory, that is all."""
    row = spent("compute", user=67.0, block_io=33.0) | {"account": "scaled", "user_s": 100.0, "block_io_s": 50.0}
    place = "most of it in compute on tier disk"
    said = ["A faster tier saves at most 42 %", f"Waiting for storage: 28 % of wall time, {place}"]
    assert texts([row, spent("stage_out", user=20.0)]) == said
    assert texts([row | {"block_io_s": 900.0}])[0] == "A faster tier saves at most 100 %", "not more than there is"


def test_a_phase_without_an_account_may_have_waited_for_storage_all_the_time() -> None:
    """CPU time is that of a daemon, which also ran after the tool, while this waited for storage."""
    row = without_account(spent("compute", block_io=8.0)) | {"cpu_s": 14.0, "run_queue_s": 3.0, "left_behind": 1}
    assert texts([row, spent("stage_out", user=2.0)])[0] == "A faster tier saves at most 80 %"


def test_without_an_account_nothing_is_claimed() -> None:
    rows = [without_account(spent("compute", user=80.0, run_queue=5.0, other=15.0))]
    split, lacking = "CPU time is 80 % of wall time", "How much of the rest was waiting is not known"
    reason = "the kernel does not account for waits for storage and memory"
    assert texts(rows) == [split, f"{lacking}: {reason}; {SWITCH}"]
    reason = "the kernel does not account for waits, or its records were lost"
    assert texts([rows[0] | {"run_queue_s": None}]) == [split, f"{lacking}: {reason}; {SWITCH}"]
    assert "were not credible" in texts([rows[0] | {"memory_stall_s": 0.0}])[1]
    assert texts([without_account(spent("compute"))]) == ["No time was measured"]


def test_how_much_was_in_the_page_cache_is_said() -> None:
    def said(*cached: tuple[float | None, int], source: str = "disk") -> list[str]:
        rows, traffic = list[Row](), list[Row]()
        for number, (share, size_bytes) in enumerate(cached):
            held = {"input_bytes": size_bytes, "input_resident_before": share}
            rows.append(spent("stage_in", f"sub-{number}", user=1.0) | held)
            traffic += staged(source, "disk", f"sub-{number}")
        return [text.partition(" of the input data was in the page cache; ")[0] for text in texts(rows, traffic)[1:]]

    assert said((1.0, 100), (None, 10**9)) == ["100 %"], "what is not known does not weigh"
    assert said((1.0, 100), (0.0, 300)) == ["25 %"]
    assert said((None, 100)) == []
    assert [said((1.0, 100), source=tier) for tier in ("memory", "pmem")] == [[], []], "files there are in memory"
    assert said((1.0, 100), source="unknown") == []


def test_causes_make_the_wall_time() -> None:
    rows = [
        spent("stage_in", user=1.0, block_io=2.0, unexplained=0.5),
        without_account(spent("compute", user=4.0)),
        sampled(spent("stage_out", system=1.0), 0.5),
    ]
    causes = sum_causes(rows)
    assert sum(causes[cause] for cause in LABELS) == pytest.approx(causes["wall_s"]) == pytest.approx(8.5)
    assert causes["residual_s"] == pytest.approx(4.5), "4 of them in a phase without an account"
    assert len({kind.colour for kind in CAUSES.values()}) == len(LABELS)
