"""The report of a run on a cluster: nodes, queue and attempts; and nothing of that where there was one machine."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path

import pandas as pd
import pytest
from neurotier.core.places import Places
from neurotier.core.tables import Row, read_table, write_table
from neurotier.pages.report.data import collect
from page_reader import read_plain
from report_data import make_results, read_report


def change(places: Places, edit: Callable[[Row], Row]) -> None:
    """Edit each row of the table of jobs."""
    path = places.profile / "jobs.tsv"
    write_table(path, "jobs", [row | edit(row) for row in read_table(path, "jobs")])


def test_the_page_shows_nodes_queue_and_efficiency(tmp_path: Path) -> None:
    places, settings = make_results(tmp_path, 24, slots=12, nodes=3)
    data = collect(places, settings)
    page = read_report(places, settings)
    medians_s = pd.DataFrame(data.last_jobs).groupby("node").wall_s.median().sort_values()
    (fast, fast_s), *_, (slow, slow_s) = medians_s.items()
    said = f"The median participant took {fast_s:.1f} s on {fast} to {slow_s:.1f} s on {slow}"
    assert any(said in alternative for alternative in page.alts)
    for said in (
        "Jobs of the cluster",
        "24 participants in 6 jobs on 3 nodes: n1, n2, n3",
        "Jobs waited in the queue for 7.50 s (median), at most for 10.0 s (job 105)",
        "at a time on average, 12 at most",
    ):
        assert said in page.text, said
    share = 100 * sum(row["cpu_s"] for row in data["profile"]) / sum(4 * row["elapsed_s"] for row in data["jobs"])
    assert re.search(rf"participants used [\d.]+ \({share:.0f} %\)", page.text)
    assert {row["node"] for row in read_plain(places.results / "figures" / "gantt.tsv")} == {"n1", "n2", "n3"}
    assert len(read_plain(places.results / "figures" / "nodes.tsv")) == 24


def test_without_accounting_what_is_missing_is_said_once_and_is_never_0(tmp_path: Path) -> None:
    places, settings = make_results(tmp_path, 8, slots=8, nodes=2)
    unknown = ("submitted_s", "queue_wait_s", "elapsed_s", "asked_cpus", "asked_memory_bytes", "max_rss_bytes", "cpu_s")
    change(places, lambda _: dict.fromkeys(unknown) | {"source": "job", "reason": "there is no sacct"})
    text = read_report(places, settings).text
    assert text.count("there is no sacct") == 1
    assert "How long jobs waited in the queue is not known" in text
    assert "How many CPU-hours the jobs held is not known" in text


UNKNOWN = ("node", "started_s", "ended_s", "members", "cpus", "slots", "state")


@pytest.mark.parametrize("everywhere", [False, True])
def test_whatever_is_not_known_of_jobs_the_page_is_written(tmp_path: Path, everywhere: bool) -> None:
    """Of one job each, or of all."""
    places, settings = make_results(tmp_path, 4 * len(UNKNOWN), slots=8, nodes=2)
    lacking = iter([UNKNOWN if everywhere else (name,) for name in UNKNOWN])
    change(places, lambda _: dict.fromkeys(next(lacking)))
    assert "Jobs of the cluster" in read_report(places, settings).text
