"""The verdicts about the paper's claims: on logs that were made to agree with one, and not to, and on the published."""

from __future__ import annotations

from pathlib import Path

import pytest
from neurotier.core.tables import Row, read_table, write_table
from neurotier.published.claims import CONTRADICTED, HOLDS, PARTLY, UNKNOWN, claim_rows
from neurotier.published.replay import read_published
from published_logs import whole_log, write_checkout, write_log

TWELVE = "App Direct is approximately 12x slower than Memory mode"
SIMILAR = "25 to 96: performance improved by a similar factor on all devices"


def verdicts(checkout: Path) -> dict[str, Row]:
    return {row["claim"]: row for row in claim_rows(read_published(checkout))}


@pytest.mark.parametrize(("times", "verdict"), [(12, HOLDS), (13, HOLDS), (10, PARTLY), (20, CONTRADICTED)])
def test_a_claim_is_judged_by_the_figure_of_the_logs(tmp_path: Path, times: int, verdict: str) -> None:
    write_log(tmp_path / "40bb_redo", "1-tmpfs_1it_25cpus_40bb-0.out", whole_log(4.0))
    write_log(tmp_path / "40bb_redo", "1-optaneAD_1it_25cpus_40bb-0.out", whole_log(4.0 * times))
    found = verdicts(tmp_path)[TWELVE]
    assert (found["place"], found["verdict"], found["found"]) == ("III-A1", verdict, f"{times:.1f} times")


def test_without_its_runs_a_claim_cannot_be_told(tmp_path: Path) -> None:
    found = verdicts(write_checkout(tmp_path))
    assert found[TWELVE]["verdict"] == UNKNOWN
    assert found[TWELVE]["found"] == "no run of Optane, App Direct with 25 processes at 40 µm, GNU Parallel"
    assert found[SIMILAR]["verdict"] == UNKNOWN


def test_the_published_claims(reference: Path, tmp_path: Path) -> None:
    rows = claim_rows(read_published(reference))
    write_table(tmp_path / "published_claims.tsv", "published_claims", rows)
    assert read_table(tmp_path / "published_claims.tsv", "published_claims") == rows
    found = {row["claim"]: row for row in rows}
    assert len(found) == len(rows)
    said = {claim for claim, row in found.items() if row["verdict"] == CONTRADICTED}
    assert said == {
        "we used the entire CoRR dataset",
        "local SSD was approximately 1.4x slower than expected, in both modes",
        "Spark's writes are 1.4-1.6x longer with Optane",
        "memory required at any moment did not exceed the available DRAM (20 µm)",
        "Isilon is limited by the network speed of 10 Gbps",
    }
    assert "as drawn: 3.78 times; by Table I: 5.36 times" in found["Memory mode is 3.8x faster than expected"]["found"]
    unknown = [row for row in rows if row["verdict"] == UNKNOWN]
    assert all("no run" in row["found"] or "too few" in row["found"] for row in unknown), "what is missing is named"
    table_one = [row for row in rows if row["claim"].startswith("Table I")]
    assert [(row["place"], row["verdict"]) for row in table_one] == [("II-A", HOLDS)] * 2


@pytest.mark.parametrize(
    ("direct_s", "verdict"),
    [((100.0, 101.0, 99.5), HOLDS), ((100.0, 160.0, 70.0), UNKNOWN), ((200.0, 201.0, 199.0), CONTRADICTED)],
)
def test_no_difference_holds_only_where_the_repetitions_can_tell(
    tmp_path: Path, direct_s: tuple[float, ...], verdict: str
) -> None:
    """p > 0.05 of three repetitions says nothing by itself: the ratio has to be known to a tenth."""
    for device in ("local", "isilon"):
        for label, times_s in ((device, (100.0, 100.5, 99.0)), (f"{device}AD", direct_s)):
            for repetition, time_s in enumerate(times_s):
                log = whole_log(time_s / 5)
                write_log(tmp_path / "40bb_redo", f"1-{label}_1it_25cpus_40bb-{repetition}.out", log)
    found = verdicts(tmp_path)["other than for Optane, no significant difference between the modes"]
    assert found["verdict"] == verdict
    assert "ratio" in found["found"]
