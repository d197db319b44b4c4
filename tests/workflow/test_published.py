"""Target ``published`` from its command line, on a small checkout."""

from __future__ import annotations

from published_logs import write_checkout
from support import Project


def test_a_checkout_is_replayed(project: Project) -> None:
    """Tables, figures and page; no dataset is made and nothing is analysed for it."""
    write_checkout(project.folder / "checkout")
    project.succeeds("published", "--config", "published=checkout").says(
        "Replayed from raw logs: 8 BigBrain runs, 1 BIDS App run"
    )
    runs = project.table("published/published_runs.tsv")
    assert len(runs) == 8
    assert {row["device"] for row in runs} == {"DRAM", "Optane", "local SSD", "Isilon"}
    page = project.page("published")
    assert "The published experiment, replayed" in page
    figures = project.results / "published/figures"
    drawn = (figures / "bigbrain_makespans.tsv").read_text()
    assert all(member in drawn for member in ("paper", "fluid measured")), drawn
    assert (figures / "bigbrain_makespans.svg").exists()
    assert not (figures / "gantt_20um_25.tsv").read_text(), "there is no such run, and the page says so"
    assert "No valid run of the incrementation" in page
    assert not (project.results / "index").exists()
